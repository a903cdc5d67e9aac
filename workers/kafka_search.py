"""Single records of a topic found: at an offset, or by their key."""

from aiokafka import TopicPartition
from aiokafka.partitioner import murmur2

from schemas.record import Record
from workers import kafka_records
from workers.kafka_offsets import partitions
from workers.kafka_tools import consumer
from workers.settings import Settings
from workers.show import Progress

FIRST_BLOCK = 1_000  # offsets; each further block is twice as long
LONGEST_BLOCK = 64_000
NOTABLE_SEARCH = 20_000  # from so many offsets on progress is told


async def record_at(settings: Settings, topic: str, partition: int, offset: int, wait_seconds: float) -> Record | None:
    """The record of this offset; None if the topic does not hold it, or not any more.

    Raises:
        KafkaUnreachableError: No broker answered within `wait_seconds`.
    """
    async with consumer(settings, wait_seconds) as client:
        return await kafka_records.record_at(client, TopicPartition(topic, partition), offset)


async def newest_of_key(
    settings: Settings, topic: str, key: bytes, wait_seconds: float, *, quiet: bool
) -> Record | None:
    """The newest record of this key in the partition that producers choose for it; None without one.

    It is searched from the end, so what is fresh is found at once; what is unknown takes the whole partition.

    Raises:
        KafkaUnreachableError: No broker answered within `wait_seconds`.
        SettingsError: The topic does not exist.
    """
    places = await partitions(settings, [topic], wait_seconds)
    place = places[(murmur2(key) & 0x7FFFFFFF) % len(places)]  # as Kafka's own clients choose
    async with consumer(settings, wait_seconds) as client:
        first, end = (await client.beginning_offsets([place]))[place], (await client.end_offsets([place]))[place]
        progress = Progress("searched", end - first, quiet or end - first < NOTABLE_SEARCH)
        found, block = None, FIRST_BLOCK
        while found is None and end > first:
            start = max(first, end - block)
            async for record in kafka_records.between(client, place, start, end):
                found = record if record.key == key else found
            progress.step(end - start)
            end, block = start, min(2 * block, LONGEST_BLOCK)
        progress.end()
        return found
