"""Send refused records to their topics again, and skip a record that crashes the workers."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256

from nearstream.schemas.documents.record import ConsumerRecord, ProducerRecord
from nearstream.schemas.topics.dead_letter import (
    MAX_REPLAYS,
    NOT_OURS,
    DeadLetter,
    Reason,
    StoredDeadLetter,
    sent_again,
    size_of,
)
from nearstream.schemas.topics.table import DEAD_LETTERS, DOCUMENTS, SIGNATURES
from nearstream.streams.store.store import Position
from nearstream.workers.config.exit_codes import RefusalError
from nearstream.workers.config.settings import Settings
from nearstream.workers.kafka import offsets as kafka_offsets
from nearstream.workers.kafka.client import (
    SESSION_SECONDS,
    AIOKafkaAdminClient,
    AIOKafkaConsumer,
    TopicPartition,
    admin,
    consumer,
)
from nearstream.workers.kafka.errors import KafkaError, refused, retriable
from nearstream.workers.kafka.records import SendAll, record_at, sender
from nearstream.workers.operations import dead_letters
from nearstream.workers.operations.dead_letters import RecentIds, Replayed
from nearstream.workers.operations.terminal import Progress, escaped, print_message
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis.index.index import RedisIndex

SENT = "sent"  # what became of a record, or why it was not sent:
DECIDED_BEFORE = "decided by an earlier replay"
EXHAUSTED = f"already sent again {MAX_REPLAYS} times"
OTHER_TOPIC = "not from a topic that documents or signatures are read from"
GONE = "its topic no longer holds the original"
TOO_LARGE = "larger than its topic allows"
EMPTY = "has neither key nor value, which cannot be sent"

COMMIT_EVERY = 100
_RECORD_BYTES = 64 * 1024  # fetched for one original, more only if its batch is larger
_KEEP_MS = 1000 * (DEAD_LETTERS.retention_seconds or 0)

SaveLog = Callable[[TopicPartition, int, Replayed], Awaitable[None]]


class NotSentError(Exception):
    """A refused record is not sent again. The message says why."""


async def replay_dead_letters(
    deployment: Deployment, reason: str, wait_seconds: float, progress: Progress
) -> Counter[str]:
    """Send the records of the dead letters of a reason (empty: of all) again, each once.

    What was decided is kept in the replay log for as long as dead letters are kept. The numbers of records sent and
    skipped are returned, the latter by cause.
    """
    async with (
        sender(deployment.settings, wait_seconds) as send_all,
        _replaying(deployment, reason, wait_seconds, progress) as replaying,
    ):
        save_log = partial(_commit, replaying.admin, dead_letters.replay_group(deployment.settings))
        return await replace(replaying, send_all=send_all, save_log=save_log).run(wait_seconds)


async def plan_replay(deployment: Deployment, reason: str, wait_seconds: float, progress: Progress) -> Counter[str]:
    """Return what `replay_dead_letters` would do, without sending or saving anything."""
    async with _replaying(deployment, reason, wait_seconds, progress) as replaying:
        return await replaying.run(wait_seconds)


async def _nothing(*_: object) -> None:
    """Neither send nor save."""


@asynccontextmanager
async def _replaying(
    deployment: Deployment, reason: str, wait_seconds: float, progress: Progress
) -> AsyncIterator["_Replay"]:
    """Connect what a replay reads, which sends and saves nothing yet."""
    settings = deployment.settings
    async with (
        consumer(settings, wait_seconds, fetch_wait_ms=1) as dead_letter_client,
        consumer(settings, wait_seconds, fetch_bytes=_RECORD_BYTES, fetch_wait_ms=1) as original_client,
        admin(settings, wait_seconds) as admin_client,
    ):
        yield _Replay(settings, reason, dead_letter_client, admin_client, original_client, progress)


@dataclass
class _Replay:
    settings: Settings
    reason: str  # of the dead letters to decide. Empty: of all
    dead_letters: AIOKafkaConsumer
    admin: AIOKafkaAdminClient  # reads and writes the replay log
    originals: AIOKafkaConsumer  # reads refused records
    progress: Progress
    send_all: SendAll = _nothing
    save_log: SaveLog = _nothing
    outcome: Counter[str] = field(default_factory=Counter)
    recent: RecentIds = field(default_factory=RecentIds)
    max_bytes: Mapping[TopicPartition, int] = field(default_factory=dict)  # of a record in a partition of origin

    async def run(self, wait_seconds: float) -> Counter[str]:
        """Decide every dead letter that the topic holds now."""
        found = await dead_letters.ranges(self.settings, self.dead_letters, 0, wait_seconds)
        prefix = self.settings.topic_prefix
        max_bytes = {prefix + topic.name: topic.max_message_bytes for topic in (DOCUMENTS, SIGNATURES)}
        origins = await kafka_offsets.partitions(self.settings, list(max_bytes), wait_seconds)
        self.max_bytes = {tp: max_bytes[tp.topic] for tp in origins}
        self.progress.total = sum(map(len, found.values()))
        logs = await dead_letters.decided(self.admin, self.settings, found)
        for tp, offsets in found.items():
            await self._replay(tp, offsets, logs[tp])
        self.progress.end()
        return self.outcome

    async def _replay(self, tp: TopicPartition, offsets: range, log: Replayed) -> None:
        reason, saved_until = self.reason, offsets.start
        async for record, dead_letter in dead_letters.read(self.dead_letters, tp, offsets):
            self.progress.step()
            await self._decide(record, dead_letter, log)
            if record.offset + 1 >= saved_until + COMMIT_EVERY:
                saved_until = record.offset + 1
                await self.save_log(tp, saved_until, log.until(reason, saved_until))
        new_log = log.until(reason, offsets.stop)
        if new_log != log:
            await self.save_log(tp, offsets.stop, new_log)

    async def _decide(self, record: ConsumerRecord, dead_letter: StoredDeadLetter | None, log: Replayed) -> None:
        if self.reason not in ("", dead_letter.reason if dead_letter else NOT_OURS):
            return
        if dead_letter is None:
            self.outcome[NOT_OURS] += 1
            return
        is_new = self.recent.add(dead_letter.dead_id)
        if not is_new or log.covers(dead_letter.reason, record.offset):
            self.outcome[DECIDED_BEFORE] += 1
            return
        try:
            await self._send(dead_letter)
        except NotSentError as error:
            self.outcome[str(error)] += 1
            origin = dead_letter.original
            position = f"{escaped(origin.topic)} {origin.partition} offset {origin.offset}"
            print_message(f"not sent: {position}: {error}")
        else:
            self.outcome[SENT] += 1

    async def _send(self, dead_letter: StoredDeadLetter) -> None:
        tp = TopicPartition(dead_letter.original.topic, dead_letter.original.partition)
        if dead_letter.replays >= MAX_REPLAYS:
            raise NotSentError(EXHAUSTED)
        if tp not in self.max_bytes:
            raise NotSentError(OTHER_TOPIC)
        record = sent_again(
            dead_letter, dead_letter.original if dead_letter.is_whole else await self._original(tp, dead_letter)
        )
        if record.key is None and record.value is None:
            raise NotSentError(EMPTY)
        if size_of(record.key, record.value, record.headers) > self.max_bytes[tp]:
            raise NotSentError(TOO_LARGE)
        try:
            await self.send_all([record])
        except KafkaError as error:
            if retriable(error) or refused(error):
                raise
            raise NotSentError(f"refused by Kafka: {type(error).__name__}") from error

    async def _original(self, tp: TopicPartition, dead_letter: StoredDeadLetter) -> ConsumerRecord:
        record = await record_at(self.originals, tp, dead_letter.original.offset)
        # If the topic was deleted and created again, another record may have this offset.
        if record is None or sha256(record.value or b"").hexdigest() != dead_letter.sha256:
            raise NotSentError(GONE)
        return record


async def _commit(client: AIOKafkaAdminClient, group: str, tp: TopicPartition, offset: int, log: Replayed) -> None:
    await kafka_offsets.commit(client, group, tp, offset, (log.text, _KEEP_MS))


DETAIL = "passed over by hand"


async def skip_record(deployment: Deployment, tp: TopicPartition, offset: int, wait_seconds: float) -> None:
    """Write a dead letter for a record of `documents` or `signatures`, then commit past it."""
    settings = deployment.settings
    await _check_partition(deployment, tp, wait_seconds)
    index = await _open_index(deployment, wait_seconds) if tp.topic == deployment.topic(SIGNATURES) else None
    try:
        async with (
            admin(settings, wait_seconds) as admin_client,
            consumer(settings, wait_seconds) as consumer_client,
            sender(settings, wait_seconds) as send_all,
        ):
            next_offset = await _next_offset(settings.group, admin_client, consumer_client, tp, index)
            record = await record_at(consumer_client, tp, offset)
            if record is None:
                raise RefusalError(f"{tp.topic} {tp.partition} has no record at {offset}")
            _check_order(next_offset, offset)
            await send_all([_dead_letter(deployment, record)])
            if index is not None:
                await index.cover([Position(tp.partition, offset)])
            await kafka_offsets.commit(admin_client, settings.group, tp, offset + 1)
    finally:
        if index is not None:
            await index.close()


async def _check_partition(deployment: Deployment, tp: TopicPartition, wait_seconds: float) -> None:
    topics = [deployment.topic(topic) for topic in (DOCUMENTS, SIGNATURES)]
    if tp.topic not in topics:
        raise RefusalError(f"{' or '.join(topics)} expected, got {tp.topic}")
    if tp not in await kafka_offsets.partitions(deployment.settings, [tp.topic], wait_seconds):
        raise RefusalError(f"{tp.topic} has no partition {tp.partition}")


async def _open_index(deployment: Deployment, wait_seconds: float) -> RedisIndex:
    """Open the index, whose checkpoint has to pass the skipped record too."""
    topics = [deployment.topic(SIGNATURES)]
    partitions = len(await kafka_offsets.partitions(deployment.settings, topics, wait_seconds))
    return await RedisIndex.open(deployment.index_address(), partitions=partitions, may_create=False)


async def _next_offset(
    group: str,
    admin_client: AIOKafkaAdminClient,
    consumer_client: AIOKafkaConsumer,
    tp: TopicPartition,
    index: RedisIndex | None,
) -> int:
    members = await kafka_offsets.members(admin_client, group)
    if members:
        raise RefusalError(
            f"group {group} has {members} members: stop its workers; "
            f"a worker that crashed remains a member for {SESSION_SECONDS:g} s"
        )
    committed = await kafka_offsets.committed_offsets(admin_client, group, [tp])
    begins: dict[TopicPartition, int] = await consumer_client.beginning_offsets([tp])
    offset = committed[tp]
    if index is not None:
        offset = min(offset, (await index.checkpoints()).get(tp.partition, -1) + 1)
    return max(offset, begins[tp])


def _check_order(next_offset: int, offset: int) -> None:
    if offset < next_offset:
        raise RefusalError(f"the group is past offset {offset}, its next offset is {next_offset}")
    if next_offset < offset:
        raise RefusalError(
            f"offsets {next_offset} to {offset - 1} before it have no outcome yet and would be lost: start a worker, "
            "which stops at the record it fails on and names it in its log"
        )


def _dead_letter(deployment: Deployment, record: ConsumerRecord) -> ProducerRecord:
    dead_letter = DeadLetter(record, "skip", Reason.SKIPPED_BY_OPERATOR, DETAIL)
    return deployment.dead_letter_writer("dlq").write(dead_letter)
