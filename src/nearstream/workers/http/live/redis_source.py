"""Watch Redis and the workers for the live page."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from nearstream.schemas.alerts.alert import Alert
from nearstream.streams.store.limits import IndexUnavailableError
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.http.live.feed import Feed
from nearstream.workers.http.live.kafka_source import say_ended
from nearstream.workers.redis.kept.label_guards import LabelGuards
from nearstream.workers.redis.kept.worker_states import worker_states
from nearstream.workers.redis.server.client import Caller

_WATCH_SECONDS = 0.5
_ANSWER_SECONDS = 2.0


@asynccontextmanager
async def watching_redis(client: Caller, namespace: str, guards: LabelGuards, feed: Feed) -> AsyncIterator[None]:
    """Keep what the page knows from Redis up to date while the block runs.

    That are the states of workers, the labels that somebody has decided about, and whether Redis answers.
    """
    task = asyncio.create_task(_watch(client, namespace, guards, feed))
    task.add_done_callback(partial(say_ended, feed))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _watch(client: Caller, namespace: str, guards: LabelGuards, feed: Feed) -> None:
    while True:
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                feed.workers = await worker_states(client, namespace)
                feed.alarms.decide([each for each in feed.alarms.floods() if await _is_decided(guards, each)])
            feed.away.pop("Redis", None)
        except TimeoutError:
            feed.away["Redis"] = f"Redis does not answer within {_ANSWER_SECONDS:g} s"
        except (IndexUnavailableError, SettingsError) as error:
            feed.away["Redis"] = str(error)
        await asyncio.sleep(_WATCH_SECONDS)


async def _is_decided(guards: LabelGuards, flood: Alert) -> bool:
    """Return whether somebody has confirmed the label that too much matches, or has taken it back."""
    guard = await guards.read(flood.collection, flood.subject)
    return guard is None or guard.state != "suspended"
