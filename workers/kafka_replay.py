"""Refused records on their way back to the topics that they came from."""

import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from schemas.dead_letter import size_of
from schemas.kept_letter import MAX_REPLAYS, KeptLetter, sent_again
from schemas.record import Record
from schemas.topics import DEAD_LETTERS, DOCUMENTS, SIGNATURES
from workers import kafka_letters, kafka_offsets
from workers.kafka_letters import NOT_OURS, Seen, Stretch
from workers.kafka_offsets import NOTE_MAX_BYTES, Note
from workers.kafka_records import SendAll, record_at, sender
from workers.kafka_tools import KafkaError, admin, consumer, refused, retriable
from workers.replayed import Replayed
from workers.settings import Settings
from workers.show import Progress, escaped

BEFORE = "decided by a replay before"
EXHAUSTED = f"sent again {MAX_REPLAYS} times already"
ELSEWHERE = "from no topic that documents or signatures are read from"
GONE = "its topic holds the original no longer"
TOO_LARGE = "larger than its topic takes"
NOTHING = "has neither key nor value, which cannot be sent"
NOTED_EVERY = 100
_KEEP_MS = 1000 * (DEAD_LETTERS.retention_seconds or 0)

Keep = Callable[[TopicPartition, int, Replayed], Awaitable[None]]


@dataclass(frozen=True)
class Selection:
    """Letters of this reason, unless it is empty, that were written at `since_ms` or later."""

    reason: str
    since_ms: int


@dataclass
class Outcome:
    """How many records were sent, how many were not for which cause."""

    sent: int = 0
    skipped: Counter[str] = field(default_factory=Counter)


async def replay(settings: Settings, selection: Selection, wait_seconds: float, progress: Progress) -> Outcome:
    """Sends the records of these letters again, each once; what was decided is remembered while letters are kept.

    Raises:
        KafkaUnreachableError: No broker answered within `wait_seconds`.
        SettingsError: A topic does not exist.
        TooManySpansError: More separate replays than can be remembered; nothing more is sent.
    """
    async with sender(settings, wait_seconds) as send_all, _clients(settings, wait_seconds) as clients:
        keep = partial(_commit, clients.asking, kafka_letters.replay_group(settings))
        return await _Run(settings, selection, clients, send_all, keep, progress).all(wait_seconds)


async def plan(settings: Settings, selection: Selection, wait_seconds: float, progress: Progress) -> Outcome:
    """What `replay` would do; nothing is sent, nothing is remembered.

    Raises:
        KafkaUnreachableError: No broker answered within `wait_seconds`.
        SettingsError: A topic does not exist.
        TooManySpansError: More separate replays than can be remembered.
    """

    async def nothing(*_: object) -> None:
        """Neither sends nor remembers."""

    async with _clients(settings, wait_seconds) as clients:
        return await _Run(settings, selection, clients, nothing, nothing, progress).all(wait_seconds)


@dataclass(frozen=True)
class _Clients:
    """Who reads letters, who reads originals, who knows what was sent before."""

    letters: AIOKafkaConsumer
    originals: AIOKafkaConsumer
    asking: AIOKafkaAdminClient


@asynccontextmanager
async def _clients(settings: Settings, wait_seconds: float) -> AsyncIterator[_Clients]:
    async with (
        consumer(settings, wait_seconds) as letters,
        consumer(settings, wait_seconds) as originals,
        admin(settings, wait_seconds) as asking,
    ):
        yield _Clients(letters, originals, asking)


@dataclass
class _Run:
    settings: Settings
    selection: Selection
    clients: _Clients
    send_all: SendAll
    keep: Keep
    progress: Progress
    outcome: Outcome = field(default_factory=Outcome)
    seen: Seen = field(default_factory=Seen)
    limits: Mapping[TopicPartition, int] = field(default_factory=dict)  # places of origin to bytes of a record

    async def all(self, wait_seconds: float) -> Outcome:
        """Decides every letter that the topic holds now."""
        found = await kafka_letters.stretches(
            self.settings, self.clients.letters, self.selection.since_ms, wait_seconds
        )
        prefix = self.settings.topic_prefix
        limits = {prefix + topic.name: topic.max_message_bytes for topic in (DOCUMENTS, SIGNATURES)}
        places = await kafka_offsets.partitions(self.settings, list(limits), wait_seconds)
        self.limits = {place: limits[place.topic] for place in places}
        self.progress.total = sum(stretch.end - stretch.start for stretch in found)
        for stretch in found:
            await self._stretch(stretch, await self._decided_before(stretch))
        self.progress.end()
        return self.outcome

    async def _stretch(self, stretch: Stretch, decided: Replayed) -> None:
        before, noted = decided, stretch.start
        async for record, letter in kafka_letters.read(self.clients.letters, stretch):
            self.progress.step()
            await self._decide(record, letter, before)
            if record.offset >= noted + NOTED_EVERY:
                noted = record.offset + 1
                await self.keep(stretch.place, noted, decided.and_span(self.selection.reason, stretch.start, noted))
        decided = decided.and_span(self.selection.reason, stretch.start, stretch.end)
        if decided != before:
            await self.keep(stretch.place, stretch.end, decided)

    async def _decided_before(self, stretch: Stretch) -> Replayed:
        place = stretch.place
        known = await kafka_letters.decided(self.clients.asking, self.settings, [place])
        begins = await self.clients.letters.beginning_offsets([place])
        decided = known[place].since(begins[place])
        # Before anything is sent: it has to fit when all of this stretch is decided.
        decided.and_span(self.selection.reason, stretch.start, stretch.end).text(NOTE_MAX_BYTES)
        return decided

    async def _decide(self, record: Record, letter: KeptLetter | None, before: Replayed) -> None:
        if self.selection.reason not in ("", letter.reason if letter else NOT_OURS):
            return
        if letter is None:
            self.outcome.skipped[NOT_OURS] += 1
            return
        known = self.seen.before(letter.dead_id)
        if known or before.covers(letter.reason, record.offset):
            self.outcome.skipped[BEFORE] += 1
            return
        cause = await self._send(letter)
        if not cause:
            self.outcome.sent += 1
            return
        self.outcome.skipped[cause] += 1
        origin = letter.original
        sys.stderr.write(f"not sent: {escaped(origin.topic)} {origin.partition} offset {origin.offset}: {cause}\n")

    async def _send(self, letter: KeptLetter) -> str:
        """Why the record was not sent; empty: it was."""
        place = TopicPartition(letter.original.topic, letter.original.partition)
        if letter.replays >= MAX_REPLAYS:
            return EXHAUSTED
        if place not in self.limits:
            return ELSEWHERE
        original = letter.original if letter.is_whole else await self._held(place, letter)
        if original is None:
            return GONE
        if original.key is None and original.value is None:
            return NOTHING
        sent = sent_again(letter, original)
        if size_of(sent.key, sent.value, sent.headers) > self.limits[place]:
            return TOO_LARGE
        try:
            await self.send_all([sent])
        except KafkaError as error:
            if retriable(error) or refused(error):
                raise
            return f"refused by Kafka: {type(error).__name__}"
        return ""

    async def _held(self, place: TopicPartition, letter: KeptLetter) -> Record | None:
        """The refused record as its topic holds it, if it does."""
        record = await record_at(self.clients.originals, place, letter.original.offset)
        # A topic that was made anew may hold another there.
        return record if record and sha256(record.value or b"").hexdigest() == letter.sha256 else None


async def _commit(
    asking: AIOKafkaAdminClient, group: str, place: TopicPartition, offset: int, decided: Replayed
) -> None:
    await kafka_offsets.commit(asking, group, place, offset, Note(decided.text(NOTE_MAX_BYTES), _KEEP_MS))
