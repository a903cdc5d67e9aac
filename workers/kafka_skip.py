"""One record passed over by hand: the way out when a bug stops its partition."""

from importlib.metadata import version
from typing import NamedTuple

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from schemas.dead_letter import DeadLetter, Reason, Stage
from schemas.record import Outgoing, Record
from schemas.topics import DEAD_LETTERS, DOCUMENTS, SIGNATURES
from streams.index import Position
from workers import assembly, kafka_offsets
from workers.kafka_records import record_at, sender
from workers.kafka_tools import SESSION_SECONDS, admin, consumer
from workers.letters import Letters
from workers.redis_index import RedisIndex
from workers.settings import Settings

DETAIL = "passed over by hand"


class NotSkippedError(Exception):
    """Nothing was done: the record is not there, or others would be lost; one line says what to do."""


class Target(NamedTuple):
    """The record that is meant."""

    topic: str
    partition: int
    offset: int


async def skip(settings: Settings, target: Target, wait_seconds: float) -> None:
    """Writes the letter about a record, then lets the group go on behind it.

    Args:
        settings: Of the deployment.
        target: A record of `documents` or `signatures`.
        wait_seconds: For Kafka.

    Raises:
        NotSkippedError: The group has members, is past the record or too far behind, or there is no such record.
        KafkaUnreachableError: No broker answered within `wait_seconds`.
        SettingsError: A topic does not exist, or the index is of another scheme or key.
        IndexUnavailableError: Redis does not answer, which has to know of `signatures`.
        IndexLostError: There is no index; the same.
    """
    place, offset = TopicPartition(target.topic, target.partition), target.offset
    await _check_place(settings, place, wait_seconds)
    index = await _index(settings) if place.topic == settings.topic_prefix + SIGNATURES.name else None
    try:
        async with (
            admin(settings, wait_seconds) as asking,
            consumer(settings, wait_seconds) as reading,
            sender(settings, wait_seconds) as send_all,
        ):
            start = await _first_open(settings, asking, reading, place, index)
            record = await record_at(reading, place, offset)
            if record is None:
                raise NotSkippedError(f"{place.topic} {place.partition} has no record at {offset}")
            _check_order(start, offset)
            await send_all([_letter(settings, record)])
            if index is not None:
                await index.pass_over([Position(place.partition, offset, -1)])  # all before it have an outcome
            await kafka_offsets.commit(asking, settings.group, place, offset + 1)
    finally:
        if index is not None:
            await index.close()


async def _check_place(settings: Settings, place: TopicPartition, wait_seconds: float) -> None:
    topics = [settings.topic_prefix + topic.name for topic in (DOCUMENTS, SIGNATURES)]
    if place.topic not in topics:
        raise NotSkippedError(f"{' or '.join(topics)} expected, got {place.topic}")
    if place not in await kafka_offsets.partitions(settings, [place.topic], wait_seconds):
        raise NotSkippedError(f"{place.topic} has no partition {place.partition}")


async def _index(settings: Settings) -> RedisIndex:
    """The index: if it did not know, it would ask the worker for the record."""
    return await RedisIndex.open(assembly.index_address(settings, assembly.hash_key(settings)), may_create=False)


async def _first_open(
    settings: Settings,
    asking: AIOKafkaAdminClient,
    reading: AIOKafkaConsumer,
    place: TopicPartition,
    index: RedisIndex | None,
) -> int:
    """The first offset without outcome."""
    members = await kafka_offsets.members(asking, settings.group)
    if members:
        raise NotSkippedError(
            f"group {settings.group} has {members} members: stop its workers; "
            f"one that crashed is a member for {SESSION_SECONDS:g} s"
        )
    known = await kafka_offsets.committed_offsets(asking, settings.group, [place])
    begins: dict[TopicPartition, int] = await reading.beginning_offsets([place])
    start = known[place]
    if index is not None:
        start = min(start, (await index.checkpoints()).get(place.partition, -1) + 1)
    return max(start, begins[place])


def _check_order(start: int, offset: int) -> None:
    if offset < start:
        raise NotSkippedError(f"the group is past offset {offset}, it goes on at {start}")
    if start < offset:
        raise NotSkippedError(
            f"offsets {start} to {offset - 1} before it have no outcome yet and would be lost: start a worker, it goes "
            "as far as the record that it cannot bear, which its log names"
        )


def _letter(settings: Settings, record: Record) -> Outgoing:
    letters = Letters(
        settings.topic_prefix + DEAD_LETTERS.name,
        f"nearstream/{version('nearstream')} dlq",
        assembly.payload(settings),
    )
    return letters.write(DeadLetter(record, Stage.SKIP, Reason.SKIPPED_BY_OPERATOR, DETAIL))
