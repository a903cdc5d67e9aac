"""Read all that a small topic keeps, and what comes."""

import logging
import time
from collections.abc import Callable
from contextlib import aclosing

from nearstream.schemas.documents.record import ConsumerRecord
from nearstream.schemas.topics.codec import InvalidMessageError
from nearstream.workers.config.settings import Settings
from nearstream.workers.kafka.client import consumer
from nearstream.workers.kafka.offsets import partitions
from nearstream.workers.kafka.records import follow

_PAUSE_SECONDS = 60.0

log = logging.getLogger(__name__)


async def read_topic(
    settings: Settings, name: str, take: Callable[[ConsumerRecord], None], wait_seconds: float, *, until_end: bool
) -> None:
    """Hand over each record of a topic, from the oldest one on.

    Args:
        settings: Settings of the deployment.
        name: The topic, without its prefix.
        take: Is given each record. One for which it raises `InvalidMessageError` is passed over, and logged unless
            another one was within the last minute.
        wait_seconds: Longest wait for a broker.
        until_end: Stop where the topic ended when reading began.

    Raises:
        KafkaUnreachableError: No broker answered.
        SettingsError: The topic does not exist.
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
