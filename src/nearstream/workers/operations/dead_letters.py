"""Read, count and find dead letters, and remember which of them were replayed.

The replay log is stored as the metadata of a committed offset, in a group of its own that never has members. Commit
metadata needs no further topic, database or permission beyond that group: Kafka stores it for each partition, replaces
it atomically, and deletes it after the time that we ask for, which is the retention of dead letters. Per partition and
reason the log has one offset, up to which a replay has come.
"""

from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field

import msgspec

from nearstream.schemas.documents.record import ConsumerRecord
from nearstream.schemas.topics.dead_letter import NOT_OURS, StoredDeadLetter, read_dead_letter
from nearstream.schemas.topics.table import DEAD_LETTERS
from nearstream.workers.config.settings import Settings, SettingsError
from nearstream.workers.kafka import offsets as kafka_offsets
from nearstream.workers.kafka.client import (
    AIOKafkaAdminClient,
    AIOKafkaConsumer,
    TopicPartition,
    admin,
    consumer,
)
from nearstream.workers.kafka.errors import KafkaError
from nearstream.workers.kafka.offsets import partitions
from nearstream.workers.kafka.records import between, offsets_since
from nearstream.workers.operations.terminal import Progress

_IDS_REMEMBERED = 100_000
ALL_REASONS = ""


@dataclass(frozen=True)
class Replayed:
    """Up to where replays have decided the dead letters of a partition."""

    ends: Mapping[str, int]  # the offset after the last one, by the reason that was asked for, or by `ALL_REASONS`

    def covers(self, reason: str, offset: int) -> bool:
        """Return whether the dead letter with this reason and offset was decided."""
        return offset < max(self.ends.get(ALL_REASONS, 0), self.ends.get(reason, 0))

    def until(self, reason: str, end: int) -> "Replayed":
        """Return a log in which a replay of a reason has come to an offset."""
        return Replayed({**self.ends, reason: max(end, self.ends.get(reason, 0))})

    @property
    def text(self) -> str:
        """The log as text, which `parse_replay_log` reads."""
        return msgspec.json.encode(self.ends).decode()


def parse_replay_log(text: str) -> Replayed:
    """Parse a log from its text. An empty text gives an empty log."""
    try:
        return Replayed(msgspec.json.decode(text or "{}", type=dict[str, int]))
    except msgspec.MsgspecError as error:
        raise ValueError(f"offsets by reason expected: {error}") from None


@dataclass
class RecentIds:
    """The ids of the last dead letters, because a redelivered record soon writes its dead letter again."""

    _ids: dict[str, None] = field(default_factory=dict)

    def add(self, dead_id: str) -> bool:
        """Add an id and return whether it is new."""
        is_new = dead_id not in self._ids
        self._ids[dead_id] = None
        if len(self._ids) > _IDS_REMEMBERED:
            del self._ids[next(iter(self._ids))]
        return is_new


class ReasonCount(msgspec.Struct):
    """The dead letters of one reason."""

    reason: str
    letters: int = 0  # how many there are
    replayed: int | None = None  # How many a replay has decided. None: unknown.
    oldest_ms: int = 0  # when the first one was written
    newest_ms: int = 0  # when the last one was written

    def add(self, written_ms: int, replayed: bool | None) -> None:
        """Count a dead letter."""
        if replayed is not None:
            self.replayed = (self.replayed or 0) + replayed
        self.oldest_ms = min(self.oldest_ms, written_ms) if self.letters else written_ms
        self.newest_ms = max(self.newest_ms, written_ms)
        self.letters += 1


async def ranges(
    settings: Settings, client: AIOKafkaConsumer, since_ms: int, wait_seconds: float
) -> dict[TopicPartition, range]:
    """Return the offsets that each partition holds now, from the first dead letter of a time on."""
    tps = await partitions(settings, [settings.topic_prefix + DEAD_LETTERS.name], wait_seconds)
    ends = await client.end_offsets(tps)
    starts = await offsets_since(client, tps, since_ms)
    return {tp: range(starts[tp], ends[tp]) for tp in tps}


async def read(
    client: AIOKafkaConsumer, tp: TopicPartition, offsets: range
) -> AsyncGenerator[tuple[ConsumerRecord, StoredDeadLetter | None]]:
    """Yield the records of a range, each with its dead letter, or None if nearstream did not write it."""
    async for record in between(client, tp, offsets.start, offsets.stop):
        yield record, read_dead_letter(record)


async def decided(
    client: AIOKafkaAdminClient, settings: Settings, tps: Collection[TopicPartition]
) -> dict[TopicPartition, Replayed]:
    """Return which dead letters of each partition earlier replays have decided."""
    group = replay_group(settings)
    metadata = await kafka_offsets.commit_metadata(client, group, list(tps))
    try:
        return {tp: parse_replay_log(text) for tp, text in metadata.items()}
    except ValueError as error:
        raise SettingsError(f"group {group} is not a replay log of nearstream: {error}") from None


def replay_group(settings: Settings) -> str:
    """Return the group without members whose commit metadata is the replay log."""
    return f"{settings.group}.replay"


async def count(
    settings: Settings, reason: str, since_ms: int, wait_seconds: float, progress: Progress
) -> list[ReasonCount]:
    """Count the dead letters of a reason (empty: of all) since a time, the most frequent reason first."""
    counts: dict[str, ReasonCount] = {}
    async with (
        consumer(settings, wait_seconds, fetch_wait_ms=1) as client,
        admin(settings, wait_seconds) as admin_client,
    ):
        found = await ranges(settings, client, since_ms, wait_seconds)
        logs = await _decided_if_allowed(admin_client, settings, found)
        async for record, dead_letter in _selected(client, found, reason, progress):
            its_reason = dead_letter.reason if dead_letter else NOT_OURS
            replay_log = logs.get(TopicPartition(record.topic, record.partition))
            replayed = replay_log.covers(its_reason, record.offset) if replay_log else None
            counts.setdefault(its_reason, ReasonCount(its_reason)).add(record.timestamp_ms, replayed)
    return sorted(counts.values(), key=lambda each: -each.letters)


async def each(
    settings: Settings, reason: str, since_ms: int, wait_seconds: float, progress: Progress
) -> AsyncGenerator[tuple[ConsumerRecord, StoredDeadLetter | None]]:
    """Yield every dead letter of a reason since a time, by partition and there in order of time."""
    async with consumer(settings, wait_seconds, fetch_wait_ms=1) as client:
        found = await ranges(settings, client, since_ms, wait_seconds)
        async with aclosing(_selected(client, found, reason, progress)) as selected:
            async for record, dead_letter in selected:
                yield record, dead_letter


async def _selected(
    client: AIOKafkaConsumer, found: Mapping[TopicPartition, range], reason: str, progress: Progress
) -> AsyncGenerator[tuple[ConsumerRecord, StoredDeadLetter | None]]:
    """Yield the records of these ranges that have the reason, one for each dead id."""
    recent = RecentIds()
    progress.total = sum(map(len, found.values()))
    for tp, offsets in found.items():
        async for record, dead_letter in read(client, tp, offsets):
            progress.step()
            its_reason = dead_letter.reason if dead_letter else NOT_OURS
            if reason in ("", its_reason) and (dead_letter is None or recent.add(dead_letter.dead_id)):
                yield record, dead_letter
    progress.end()


async def _decided_if_allowed(
    client: AIOKafkaAdminClient, settings: Settings, tps: Collection[TopicPartition]
) -> dict[TopicPartition, Replayed]:
    """Return what `decided` does, or nothing for a user who may not read the replay group."""
    try:
        return await decided(client, settings, tps)
    except KafkaError:
        return {}


async def find(settings: Settings, dead_id: str, wait_seconds: float) -> StoredDeadLetter | None:
    """Return the first dead letter with this id, or None."""
    async with consumer(settings, wait_seconds, fetch_wait_ms=1) as client:
        for tp, offsets in (await ranges(settings, client, 0, wait_seconds)).items():
            async for _, dead_letter in read(client, tp, offsets):
                if dead_letter and dead_letter.dead_id == dead_id:
                    return dead_letter
    return None
