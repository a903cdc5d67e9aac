"""Read all that a small topic keeps, such as silences, and what comes."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from contextlib import aclosing

from nearstream.schemas.alerts.alert import Silence
from nearstream.schemas.documents.record import ConsumerRecord
from nearstream.schemas.topics.codec import InvalidMessageError, decode_json
from nearstream.schemas.topics.table import SILENCES
from nearstream.workers.config.settings import Settings, SettingsError
from nearstream.workers.kafka.client import consumer
from nearstream.workers.kafka.errors import KafkaError, KafkaUnreachableError
from nearstream.workers.kafka.offsets import partitions
from nearstream.workers.kafka.records import follow

_PAUSE_SECONDS = 60.0

log = logging.getLogger(__name__)


async def read_topic(
    settings: Settings, name: str, take: Callable[[ConsumerRecord], None], wait_seconds: float, *, until_end: bool
) -> None:
    """Hand over each record of a topic, whose name has no prefix, from the oldest one on.

    A record for which `take` raises `InvalidMessageError` is passed over, and logged once a minute. With `until_end`
    reading stops where the topic ended when it began.
    """
    tps = await partitions(settings, [settings.topic_prefix + name], wait_seconds)
    async with (
        consumer(settings, wait_seconds) as client,
        aclosing(follow(client, tps, since_ms=0, until_end=until_end)) as records,
    ):
        passed_over, logged_at = 0, -_PAUSE_SECONDS
        async for record in records:
            try:
                take(record)
            except InvalidMessageError as error:
                passed_over += 1
                if time.monotonic() < logged_at + _PAUSE_SECONDS:
                    continue
                logged_at = time.monotonic()
                log.info(
                    "offset %d of %s holds no message: %s (%d so far)", record.offset, record.topic, error, passed_over
                )


_RETRY_SECONDS = 2.0

Take = Callable[[bytes, Silence | None], None]
"""Is given the record key of what was said, and None if it was taken back."""


async def read_silences(settings: Settings, take: Take, wait_seconds: float, *, until_end: bool) -> None:
    """Hand over what persons have said about alerts, as `read_topic` does."""

    def said(record: ConsumerRecord) -> None:
        take(record.key or b"", decode_json(Silence, record.value) if record.value else None)

    await read_topic(settings, SILENCES.name, said, wait_seconds, until_end=until_end)


def follow_in_thread(settings: Settings, take: Take, wait_seconds: float) -> None:
    """Hand over what is said, in a thread, until the process ends."""

    async def run() -> None:
        while True:
            try:
                await read_silences(settings, take, wait_seconds, until_end=False)
            except (KafkaUnreachableError, SettingsError, KafkaError) as error:
                log.info("no news of silences: %s", error)
            await asyncio.sleep(_RETRY_SECONDS)

    threading.Thread(target=asyncio.run, args=(run(),), name="silences", daemon=True).start()
