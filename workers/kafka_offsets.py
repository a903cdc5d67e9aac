"""Where partitions end, how far the group has come."""

import asyncio
from collections.abc import Iterable, Sequence

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import GroupCoordinatorNotAvailableError, KafkaError

from workers.kafka_tools import RETRY_SECONDS, KafkaUnreachableError, admin, consumer, describe, retriable
from workers.settings import Settings, SettingsError


async def committed(settings: Settings, topic: str, partitions: Iterable[int]) -> dict[int, int]:
    """Committed offset of the group for each partition; -1 where it never committed."""
    async with admin(settings, 10.0) as client:
        known = await committed_offsets(client, settings.group, [TopicPartition(topic, part) for part in partitions])
    return {place.partition: offset for place, offset in known.items()}


async def ever_committed(settings: Settings, topic: str, wait_seconds: float) -> bool:
    """Whether the group has committed an offset of this topic.

    Raises:
        KafkaUnreachableError: No broker knew within `wait_seconds`; a fresh one makes its list of groups first.
    """
    deadline = asyncio.get_running_loop().time() + wait_seconds
    async with admin(settings, wait_seconds) as client:
        found = await describe(client, [topic])
        places = [TopicPartition(topic, partition) for partition in found.get(topic, [])]
        while True:
            try:
                known = await committed_offsets(client, settings.group, places)
            except KafkaError as error:
                if not retriable(error) or asyncio.get_running_loop().time() > deadline:
                    raise KafkaUnreachableError(f"group {settings.group} cannot be asked for: {error}") from error
                await asyncio.sleep(RETRY_SECONDS)
            else:
                return any(offset >= 0 for offset in known.values())


async def committed_offsets(
    client: AIOKafkaAdminClient, group: str, places: Sequence[TopicPartition]
) -> dict[TopicPartition, int]:
    """Offset that the group reads next of each partition; -1 where it never committed.

    Raises:
        KafkaError: The group cannot be asked for.
    """
    if not places:
        return {}
    offsets = await client.list_consumer_group_offsets(group, partitions=list(places))
    # A refusal for the whole group comes as an answer without partitions, which aiokafka hands on as it is.
    if len(offsets) < len(places):
        raise GroupCoordinatorNotAvailableError(f"group {group}: the broker does not tell its offsets")
    return {place: known.offset for place, known in offsets.items()}


async def end_offsets(settings: Settings, topic: str, wait_seconds: float) -> dict[int, int]:
    """Offset after the last record of each partition.

    Raises:
        KafkaUnreachableError: No broker answered within `wait_seconds`.
        SettingsError: The topic does not exist.
    """
    places = await partitions(settings, [topic], wait_seconds)
    async with consumer(settings, wait_seconds) as client:
        ends = await client.end_offsets(places)
    return {place.partition: end for place, end in ends.items()}


async def partitions(settings: Settings, topics: Sequence[str], wait_seconds: float) -> list[TopicPartition]:
    """All partitions of these topics.

    Raises:
        KafkaUnreachableError: No broker answered within `wait_seconds`.
        SettingsError: A topic does not exist; it is named.
    """
    async with admin(settings, wait_seconds) as client:
        found = await describe(client, topics)
    for topic in topics:
        if topic not in found:
            raise SettingsError(f"topic {topic} does not exist: run `nearstream topics create`")
    return [TopicPartition(topic, partition) for topic in topics for partition in found[topic]]
