"""Read what persons have said about alerts from its topic."""

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import aclosing

from nearstream.schemas.codec import InvalidMessageError, decode_silence
from nearstream.schemas.silence import Silence
from nearstream.schemas.topics import SILENCES
from nearstream.workers.config.settings import Settings, SettingsError
from nearstream.workers.kafka.client import consumer
from nearstream.workers.kafka.errors import KafkaError, KafkaUnreachableError
from nearstream.workers.kafka.offsets import partitions
from nearstream.workers.kafka.records import follow

_RETRY_SECONDS = 2.0

Take = Callable[[bytes, Silence | None], None]
"""Is given the record key of what was said, and None if it was taken back."""

log = logging.getLogger(__name__)


async def read_silences(settings: Settings, take: Take, wait_seconds: float, *, until_end: bool) -> None:
    """Hand over what the topic keeps, and what comes unless this ends with the topic.

    Args:
        settings: Settings of the deployment.
        take: Is given each.
        wait_seconds: Longest wait for a broker.
        until_end: Stop where the topic ended when reading began.

    Raises:
        KafkaUnreachableError: No broker answered.
        SettingsError: The topic does not exist.
    """
    tps = await partitions(settings, [settings.topic_prefix + SILENCES.name], wait_seconds)
    async with (
        consumer(settings, wait_seconds) as client,
        aclosing(follow(client, tps, since_ms=0, until_end=until_end)) as records,
    ):
        async for record in records:
            try:
                take(record.key or b"", decode_silence(record.value) if record.value else None)
            except InvalidMessageError as error:
                log.info("offset %d of the topic of silences holds none: %s", record.offset, error)


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
