"""Feed the live page with the events of Kafka, and with the lag of the workers."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

from nearstream.schemas.live import LiveLag
from nearstream.workers.config.settings import Settings, SettingsError
from nearstream.workers.kafka.errors import KafkaError, KafkaUnreachableError
from nearstream.workers.kafka.lag import lag_reader
from nearstream.workers.live.feed import Feed
from nearstream.workers.operations.tail import EventFilter, follow_events

_CONNECT_SECONDS = 30.0
_RETRY_SECONDS = 2.0
_LAG_SECONDS = 5.0
_STOP_SECONDS = 5.0

log = logging.getLogger(__name__)


@asynccontextmanager
async def fed_by_kafka(settings: Settings, feed: Feed, since_ms: int | None) -> AsyncIterator[None]:
    """Feed the live page while the block runs, however often Kafka is away.

    The consumer has no group, so it commits nothing and moves no offset of the workers.

    Args:
        settings: Settings of the deployment.
        feed: What takes the events.
        since_ms: Begin with the events sent at this time or later. None: with the next.
    """
    tasks = {
        asyncio.create_task(_follow(settings, feed, since_ms)),
        asyncio.create_task(_read_lag(settings, feed)),
    }
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=_STOP_SECONDS)


async def _follow(settings: Settings, feed: Feed, since_ms: int | None) -> None:
    """Feed events until this is cancelled, those of an outage included."""
    while True:
        try:
            following = follow_events(settings, _CONNECT_SECONDS, EventFilter(), since_ms=since_ms, until_end=False)
            async with aclosing(following) as arrivals:
                since_ms, feed.why = since_ms or _now_ms(), ""
                async for arrival in arrivals:
                    since_ms = arrival.record.timestamp_ms
                    if arrival.event is not None:
                        sent = arrival.detected_at
                        feed.add(arrival.event, int(sent.timestamp() * 1000) if sent else since_ms)
        except (KafkaUnreachableError, SettingsError, KafkaError) as error:
            feed.why = str(error)
            log.warning("the live page gets no events: %s", error)
        await asyncio.sleep(_RETRY_SECONDS)


async def _read_lag(settings: Settings, feed: Feed) -> None:
    """Keep the lag up to date until this is cancelled."""
    while True:
        try:
            async with lag_reader(settings, _CONNECT_SECONDS) as read_lag:
                while True:
                    rows = await read_lag()
                    seconds = max((row.seconds or 0.0 for row in rows), default=0.0)
                    feed.lag = LiveLag(records=sum(row.records for row in rows), seconds=seconds)
                    await asyncio.sleep(_LAG_SECONDS)
        except (KafkaUnreachableError, SettingsError, KafkaError) as error:
            log.info("the live page shows no lag: %s", error)
            feed.lag = None
        await asyncio.sleep(_LAG_SECONDS)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
