"""Committed offsets, end offsets and partitions."""

from collections.abc import Iterable, Sequence
from functools import partial

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import (
    GroupAuthorizationFailedError,
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

from nearstream.workers.config.settings import Settings, SettingsError
from nearstream.workers.kafka.client import admin, consumer, describe, retry_until_answered
from nearstream.workers.kafka.errors import KafkaUnreachableError, missing_topic_error, settings_error_of

_HAS_MEMBERS = (IllegalGenerationError, RebalanceInProgressError, UnknownMemberIdError)


async def committed(settings: Settings, topic: str, partitions: Iterable[int]) -> dict[int, int]:
    """Return the committed offset of each partition, -1 if none."""
    async with admin(settings, 10.0) as client:
        known = await committed_offsets(
            client, settings.group, [TopicPartition(topic, number) for number in partitions]
        )
    return {tp.partition: offset for tp, offset in known.items()}


async def ever_committed(settings: Settings, topic: str, wait_seconds: float) -> bool:
    """Return whether the group has ever committed an offset of this topic."""
    async with admin(settings, wait_seconds) as client:
        found = await describe(client, [topic])
        partitions = [TopicPartition(topic, partition) for partition in found.get(topic, [])]
        ask = partial(committed_offsets, client, settings.group, partitions)
        try:
            known = await retry_until_answered(ask, wait_seconds, f"cannot read the offsets of group {settings.group}")
        except KafkaUnreachableError as error:
            if isinstance(error.__cause__, GroupAuthorizationFailedError):
                raise settings_error_of(error.__cause__, settings.group, "DESCRIBE") from error.__cause__
            raise
    return any(offset >= 0 for offset in known.values())


async def ever_committed_if_known(settings: Settings, topic: str, wait_seconds: float) -> bool | None:
    """Return what `ever_committed` does, None without the permission to read the offsets of the group."""
    try:
        return await ever_committed(settings, topic, wait_seconds)
    except SettingsError as error:
        if isinstance(error.__cause__, GroupAuthorizationFailedError):
            return None
        raise


async def committed_offsets(
    client: AIOKafkaAdminClient, group: str, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, int]:
    """Return the committed offset of each partition, -1 if none."""
    return {tp: known.offset for tp, known in (await _fetch_committed(client, group, partitions)).items()}


async def commit_metadata(
    client: AIOKafkaAdminClient, group: str, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, str]:
    """Return the metadata of each committed offset, empty if none."""
    return {tp: known.metadata for tp, known in (await _fetch_committed(client, group, partitions)).items()}


async def commit(
    client: AIOKafkaAdminClient, group: str, tp: TopicPartition, offset: int, metadata: tuple[str, int] | None = None
) -> None:
    """Commit an offset of a partition for a group without members.

    Its metadata is a text of at most 4096 bytes (Kafka's default `offset.metadata.max.bytes`), and for how many
    milliseconds the broker keeps both.
    """
    text, keep_ms = metadata or ("", OffsetCommitRequest.DEFAULT_RETENTION_TIME)
    rows = [(tp.topic, [(tp.partition, offset, text)])]
    # Send the request directly: a consumer's commit cannot set a retention, and the broker's default is shorter than
    # the retention of dead letters.
    request = OffsetCommitRequest(group, OffsetCommitRequest.DEFAULT_GENERATION_ID, "", keep_ms, rows)
    response = await client._send_request(request, await client.find_coordinator(group))
    for _, answers in response.topics:
        for _, code in answers:
            error = for_code(code)
            if error in _HAS_MEMBERS:
                raise SettingsError(f"group {group} has members: stop its workers first")
            if error is not NoError:
                raise error(f"cannot commit offset {offset} of {tp.topic} partition {tp.partition} for group {group}")


async def members(client: AIOKafkaAdminClient, group: str) -> int:
    """Return the number of members of the group."""
    (response,) = await client.describe_consumer_groups([group])
    ((code, _, _, _, _, found, *_),) = response.groups
    if code not in (0, GroupIdNotFound.errno):
        raise for_code(code)(f"cannot describe group {group}")
    return len(found)


async def end_offsets(settings: Settings, topic: str, wait_seconds: float) -> dict[int, int]:
    """Return the offset after the last record of each partition."""
    wanted = await partitions(settings, [topic], wait_seconds)
    async with consumer(settings, wait_seconds) as client:
        ends = await client.end_offsets(wanted)
    return {tp.partition: end for tp, end in ends.items()}


async def partitions(settings: Settings, topics: Sequence[str], wait_seconds: float) -> list[TopicPartition]:
    """Return all partitions of these topics."""
    async with admin(settings, wait_seconds) as client:
        found = await describe(client, topics)
    for topic in topics:
        if topic not in found:
            raise missing_topic_error(topic)
    return [TopicPartition(topic, partition) for topic in topics for partition in found[topic]]


async def _fetch_committed(
    client: AIOKafkaAdminClient, group: str, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, OffsetAndMetadata]:
    if not partitions:
        return {}
    known: dict[TopicPartition, OffsetAndMetadata] = await client.list_consumer_group_offsets(
        group, partitions=list(partitions)
    )
    # If the broker refuses the whole group, it answers without partitions, and aiokafka returns that as it is.
    if len(known) < len(partitions):
        raise GroupCoordinatorNotAvailableError(f"the broker did not return the offsets of group {group}")
    return known
