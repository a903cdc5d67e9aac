"""Read all that a small topic keeps, and what comes."""

import logging
from collections.abc import Callable
from contextlib import aclosing

from nearstream.schemas.codec import InvalidMessageError
from nearstream.schemas.record import ConsumerRecord
from nearstream.workers.config.settings import Settings
from nearstream.workers.kafka.client import consumer
from nearstream.workers.kafka.offsets import partitions
from nearstream.workers.kafka.records import follow

log = logging.getLogger(__name__)


async def read_topic(
    settings: Settings, name: str, take: Callable[[ConsumerRecord], None], wait_seconds: float, *, until_end: bool
) -> None:
    """Hand over each record of a topic, from the oldest one on.

    Args:
        settings: Settings of the deployment.
        name: The topic, without its prefix.
        take: Is given each record. A record for which it raises `InvalidMessageError` is logged and passed over.
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
        async for record in records:
            try:
                take(record)
            except InvalidMessageError as error:
                log.info("offset %d of %s holds no message: %s", record.offset, record.topic, error)
