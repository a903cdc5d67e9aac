"""Where partitions end, how far the group has come."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import (
    GroupCoordinatorNotAvailableError,
    GroupIdNotFound,
    IllegalGenerationError,
    NoError,
    RebalanceInProgressError,
    UnknownMemberIdError,
    for_code,
)
from aiokafka.protocol.commit import OffsetCommitRequest
from aiokafka.structs import OffsetAndMetadata

from workers.kafka_tools import absent, admin, consumer, describe, told
from workers.settings import Settings, SettingsError

NOTE_MAX_BYTES = 4096  # of brokers that were not told otherwise
_HAS_MEMBERS = (IllegalGenerationError, RebalanceInProgressError, UnknownMemberIdError)


class Note(NamedTuple):
    """A text of at most `NOTE_MAX_BYTES` beside a committed offset, with the milliseconds that both are kept."""

    text: str
    keep_ms: int


async def committed(settings: Settings, topic: str, partitions: Iterable[int]) -> dict[int, int]:
    """Committed offset of the group for each partition; -1 where it never committed."""
    async with admin(settings, 10.0) as client:
        known = await committed_offsets(client, settings.group, [TopicPartition(topic, part) for part in partitions])
    return {place.partition: offset for place, offset in known.items()}


async def ever_committed(settings: Settings, topic: str, wait_seconds: float) -> bool:
    """Whether the group has committed an offset of this topic.

    Raises:
        KafkaUnreachableError: No broker knew within `wait_seconds`.
    """
    async with admin(settings, wait_seconds) as client:
        found = await describe(client, [topic])
        places = [TopicPartition(topic, partition) for partition in found.get(topic, [])]
        asking = partial(committed_offsets, client, settings.group, places)
        known = await told(asking, wait_seconds, f"group {settings.group} cannot be asked for")
    return any(offset >= 0 for offset in known.values())


async def committed_offsets(
    client: AIOKafkaAdminClient, group: str, places: Sequence[TopicPartition]
) -> dict[TopicPartition, int]:
    """Offset that the group reads next of each partition; -1 where it never committed.

    Raises:
        KafkaError: The group cannot be asked for.
    """
    return {place: known.offset for place, known in (await _known(client, group, places)).items()}


async def notes(client: AIOKafkaAdminClient, group: str, places: Sequence[TopicPartition]) -> dict[TopicPartition, str]:
    """What was noted beside the committed offset of each partition; empty where nothing is.

    Raises:
        KafkaError: The group cannot be asked for.
    """
    return {place: known.metadata for place, known in (await _known(client, group, places)).items()}


async def commit(
    client: AIOKafkaAdminClient, group: str, place: TopicPartition, offset: int, note: Note | None = None
) -> None:
    """Lets a group without members go on at this offset of a partition.

    Raises:
        SettingsError: The group has members, which alone may commit.
        KafkaError: The broker refused for another reason.
    """
    text, keep_ms = note or Note("", OffsetCommitRequest.DEFAULT_RETENTION_TIME)
    rows = [(place.topic, [(place.partition, offset, text)])]
    # A consumer's own commit knows no retention, and the broker's is shorter than that of letters.
    request = OffsetCommitRequest(group, OffsetCommitRequest.DEFAULT_GENERATION_ID, "", keep_ms, rows)
    response = await client._send_request(request, await client.find_coordinator(group))
    for _, answers in response.topics:
        for _, code in answers:
            error = for_code(code)
            if error in _HAS_MEMBERS:
                raise SettingsError(f"group {group} has members: stop its workers first")
            if error is not NoError:
                raise error(f"group {group}: offset {offset} of {place.topic} {place.partition} is not committed")


async def members(client: AIOKafkaAdminClient, group: str) -> int:
    """How many workers are in the group.

    Raises:
        KafkaError: The group cannot be asked for.
    """
    (response,) = await client.describe_consumer_groups([group])
    ((code, _, _, _, _, found, *_),) = response.groups
    if code not in (0, GroupIdNotFound.errno):
        raise for_code(code)(f"group {group} cannot be asked for")
    return len(found)


async def _known(
    client: AIOKafkaAdminClient, group: str, places: Sequence[TopicPartition]
) -> dict[TopicPartition, OffsetAndMetadata]:
    if not places:
        return {}
    known: dict[TopicPartition, OffsetAndMetadata] = await client.list_consumer_group_offsets(
        group, partitions=list(places)
    )
    # A refusal for the whole group comes as an answer without partitions, which aiokafka hands on as it is.
    if len(known) < len(places):
        raise GroupCoordinatorNotAvailableError(f"group {group}: the broker does not tell its offsets")
    return known


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
            raise absent(topic)
    return [TopicPartition(topic, partition) for topic in topics for partition in found[topic]]
