"""Send refused records to their topics again."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256

from nearstream.schemas.documents.record import ConsumerRecord
from nearstream.schemas.topics.dead_letter import MAX_REPLAYS, NOT_OURS, StoredDeadLetter, sent_again, size_of
from nearstream.schemas.topics.table import DEAD_LETTERS, DOCUMENTS, SIGNATURES
from nearstream.workers.config.settings import Settings
from nearstream.workers.kafka import offsets as kafka_offsets
from nearstream.workers.kafka.client import AIOKafkaAdminClient, AIOKafkaConsumer, TopicPartition, admin, consumer
from nearstream.workers.kafka.errors import KafkaError, refused, retriable
from nearstream.workers.kafka.records import SendAll, record_at, sender
from nearstream.workers.operations import dead_letters
from nearstream.workers.operations.dead_letters import RecentIds, Replayed
from nearstream.workers.operations.terminal import Progress, escaped, print_message
from nearstream.workers.pipeline.deployment import Deployment

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
