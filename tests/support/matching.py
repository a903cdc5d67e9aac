"""Records of signatures and a `Matching` over a store in memory for tests."""

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from nearstream.schemas.documents.document import Document, to_milliseconds
from nearstream.schemas.documents.record import ConsumerRecord, Headers
from nearstream.schemas.documents.signature import Origin, Signature
from nearstream.schemas.topics.codec import encode_signature
from nearstream.streams.ingest.defaults import DocumentLimits
from nearstream.streams.matching.family import FamilyFacts
from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.store.limits import IndexBehindError, IndexLimits
from nearstream.streams.store.part import Part
from nearstream.streams.store.store import Call, Local, Position, Store, local_store
from nearstream.workers.pipeline.dead_letters import DeadLetterWriter
from nearstream.workers.pipeline.match import Matching, SignatureTopic
from tests.support.made_up import KEY, SIGNER
from tests.support.made_up import STANDARD as SCHEME

TIME = datetime(2026, 3, 2, 8, 15, tzinfo=UTC)


WORDS = [f"{a}{b}{c}" for a in ("bru", "ka", "lo", "mi", "ste") for b in ("na", "ri", "to", "wel") for c in "dklmnrst"]


def prose(seed: int, words: int = 400) -> str:
    return " ".join(Random(seed).choices(WORDS, k=words))


def signed(document_id: str, text: str, minutes: int = 0, lineage: str | None = None) -> Signature:
    observed_at = TIME + timedelta(minutes=minutes)
    document = Document(id=document_id, text=text, collection="news", observed_at=observed_at, lineage=lineage)
    return SIGNER.sign(document, Origin("nearstream.documents.v1", 0, minutes))


def record(
    value: Signature | bytes | None, offset: int = 0, key: bytes | None = None, headers: Headers | None = None
) -> ConsumerRecord:
    """Return a record of `signatures` a day after `TIME`, by default under its right key."""
    if isinstance(value, Signature):
        key, value = value.document_key.encode() if key is None else key, encode_signature(value)
    timestamp_ms = to_milliseconds(TIME + timedelta(days=1))
    return ConsumerRecord("nearstream.signatures.v1", 0, offset, timestamp_ms, key, value, headers or [])


@dataclass
class Topic:
    """The topic of signatures as a list of records, in which offsets are indexes."""

    records: list[ConsumerRecord] = field(default_factory=list)
    committed_offset: int = -1
    known: dict[int, int] = field(default_factory=dict)
    asked: list[set[int]] = field(default_factory=list)
    reads: list[tuple[int, int, int]] = field(default_factory=list)
    covered: list[Position] = field(default_factory=list)

    async def committed(self, partitions: Iterable[int]) -> dict[int, int]:
        self.asked.append(set(partitions))
        return dict.fromkeys(self.asked[-1], self.committed_offset)

    async def checkpoints(self) -> dict[int, int]:
        return self.known

    async def cover(self, positions: Sequence[Position]) -> None:
        self.covered += positions
        self.known.update(positions)

    async def read_range(self, partition: int, start: int, end: int) -> AsyncIterator[ConsumerRecord]:
        self.reads.append((partition, start, end))
        for each in self.records[start:end]:
            yield each


class Emptied:
    """Carries calls to a slot in memory that can lose all, and notices that as one on a server does."""

    def __init__(self) -> None:
        self._known = Counter[int]()  # writing calls of each partition that the lane knows to have been made
        self.empty()

    def empty(self) -> None:
        self.part, self._made = Part(IndexLimits()), Counter[int]()

    async def all(self, calls: Sequence[Call]) -> Sequence[Sequence[Any]]:
        for partition in [call.partition for call in calls if call.partition is not None]:
            if self._made[partition] < self._known.pop(partition, 0):
                raise IndexBehindError(partition, self.part.covers.get(partition, -1))
            self._made[partition] += 1
            self._known[partition] = self._made[partition]
        return await Local([self.part]).all(calls)


async def no_family(_document_key: str) -> FamilyFacts | None:
    return None


def matching(
    topic: Topic | None = None,
    store: Store | None = None,
    verdicts: frozenset[str] = frozenset(),
) -> Matching:
    """Return a matching that sends no verdicts, only relations and retractions, unless told to."""
    topic = topic or Topic()
    return Matching(
        Matcher(store or local_store(), SCHEME, KEY),
        SCHEME,
        DocumentLimits(),
        "p.",
        DeadLetterWriter("p.nearstream.dead-letters.v1", "nearstream/0 match", "full"),
        SignatureTopic(topic.committed, topic.read_range),
        topic.checkpoints,
        topic.cover,
        verdicts,
        no_family,
    )
