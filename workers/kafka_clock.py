"""What the times of records tell of the clocks that made them."""

import time
from collections.abc import Sequence

from workers.kafka_offsets import partitions
from workers.kafka_tools import consumer
from workers.settings import Settings


async def seconds_ahead(settings: Settings, topics: Sequence[str], wait_seconds: float) -> float:
    """How far the first record that is dated later than now is ahead of this machine's clock; 0: there is none.

    Raises:
        KafkaUnreachableError: No broker answered within `wait_seconds`.
        SettingsError: A topic does not exist.
    """
    places = await partitions(settings, topics, wait_seconds)
    async with consumer(settings, wait_seconds) as client:
        now_ms = time.time_ns() // 1_000_000
        found = await client.offsets_for_times(dict.fromkeys(places, now_ms + 1))
    return max((at.timestamp - now_ms for at in found.values() if at is not None), default=0) / 1000
