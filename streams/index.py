"""The contract of an index: admit a document, get the earlier ones that share a bucket."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from schemas.signature import Signature
from streams.scheme import Keys

BAND_CAP = 12  # entries of a band or digest bucket: 6 oldest, 6 newest
HEADS = 6
ANCHOR_HEADS = 12
LINEAGE_CAP = 8
REPORTS_CAP = 64  # event ids kept for each document
WALK = 64  # former states among which a redelivered one is looked for
READS = 256  # neighbours that are looked at for one document, alive or not
BEST = 5  # neighbours answered however little they share
UNIT = 100  # weight of an anchor that one earlier document has
BAND_ANCHORS = 4  # a band weighs as much as so many anchors
ENOUGH = 2  # weight for each anchor of the document with fewer of them: a rare one in 50
WEIGHT_MAX = 65_535
MARKS = 256  # steps in which the retention moves
KEPT_CAP = 65_536  # documents that reports spare from expiry


def weight(others: int) -> int:
    """What a shared anchor counts if so many earlier documents have it, at least 1: `UNIT` / sqrt(others), cut."""
    return int(UNIT / math.sqrt(others))


class IndexUnavailableError(Exception):
    """The index cannot answer now; wait, then send the same call again."""


class IndexBehindError(Exception):
    """The index has lost its newest writes of a partition; admit again from `checkpoint` + 1."""

    def __init__(self, partition: int, checkpoint: int) -> None:
        """Holds the partition and the last offset that the index knows."""
        super().__init__(f"partition {partition}: the index knows offsets up to {checkpoint} only")
        self.partition = partition
        self.checkpoint = checkpoint


class IndexLostError(Exception):
    """The index was emptied or replaced; it has to be rebuilt from the signatures topic."""


@dataclass(frozen=True)
class IndexLimits:
    """Bounds of an index.

    Attributes:
        bucket_cap: Entries of an anchor bucket, at least 12.
        candidates: Earlier documents answered for each admission, digest and lineage matches besides.
        retention_seconds: How long a document is found; 0: for ever.
        documents: Live documents expected; shapes the store's layout, limits nothing.
    """

    bucket_cap: int = 100
    candidates: int = 60
    retention_seconds: int = 2_592_000
    documents: int = 1_000_000


@dataclass(frozen=True)
class Position:
    """Where a record of `signatures` stands.

    `previous` is the offset consumed before it in this partition; at assignment, committed - 1.
    """

    partition: int
    offset: int
    previous: int


@dataclass(frozen=True)
class Admission:
    """One document for the index.

    Attributes:
        document_key: `<collection>/<id>`.
        signature: As a record keeps it (`Scheme.kept`); None: a removal. No index knows the scheme, the anchor count
            is that of `keys`.
        keys: Its bucket keys, each once.
        position: None: no guard against replays.
    """

    document_key: str
    signature: Signature | None
    keys: Keys
    position: Position | None = None


class Status(StrEnum):
    """What an admission was to the index."""

    NEW = "new"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    REPLAYED = "replayed"
    STALE = "stale"
    REMOVED = "removed"


@dataclass(frozen=True)
class Candidate:
    """An earlier document that shares a bucket, not yet verified.

    Attributes:
        number: Given by the index in order of admission.
        signature: As kept (`Scheme.kept`).
        bands: Shared band keys.
        anchors: Shared anchor keys.
        anchor_count: Anchor keys that the earlier document has.
        by_digest: Shares the digest.
        by_lineage: Shares the lineage, or is a former state of the same document.
        in_full_bucket: A shared bucket was full: others may be missing.
    """

    number: int
    signature: Signature
    bands: int
    anchors: int
    anchor_count: int
    by_digest: bool
    by_lineage: bool
    in_full_bucket: bool


def in_order(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Digest and lineage matches first, then by shared keys, ties by number: no other document changes this order."""

    def place(one: Candidate) -> tuple[bool, int, int]:
        return not (one.by_digest or one.by_lineage), -BAND_ANCHORS * one.bands - one.anchors, one.number

    return tuple(sorted(candidates, key=place))


@dataclass(frozen=True)
class Admitted:
    """The answer to one admission, as of its own number.

    Attributes:
        status: What the admission was.
        number: The document's number; 0 if it has none. An unchanged document gets a new one late in its life.
        previous: The state of the same document that was current before, of `UPDATED` and `UNCHANGED`
            (or the replay of one); the newer of the two, if this one came late.
        candidates: Digest and lineage matches, besides the limit; of the others twice the limit are taken by the
            weight of the keys they share (`weight`), then the best by weight / anchors of the document with fewer of
            them, ties by number. Beyond the `BEST` ones this has to be `ENOUGH`. In the order of `in_order`.
        full_buckets: Buckets of this document that were full.
        cut: The limit left candidates out.
        retracted: Of a removal: ids of the events that were reported about the document.
        complete: Of a removal: no reported event is missing from `retracted`.
        found: Of a removal: the index held the document.
    """

    status: Status
    number: int = 0
    previous: Candidate | None = None
    candidates: tuple[Candidate, ...] = ()
    full_buckets: int = 0
    cut: bool = False
    retracted: tuple[str, ...] = ()
    complete: bool = True
    found: bool = False


@dataclass(frozen=True)
class Report:
    """An event about to be sent: numbers of both documents, relation, event id."""

    newer: int
    older: int
    relation: str
    event_id: str


class IndexState(StrEnum):
    """Whether the index can be trusted."""

    READY = "ready"
    READ_ONLY = "read_only"
    BEHIND = "behind"
    LOST = "lost"
    REBUILDING = "rebuilding"


class Index(Protocol):
    """Finds, for each document, the earlier ones that share a bucket.

    Laws: of two live documents that share an unfull bucket at least one sees the other, and names it if it is among
    the best that share enough; admitting a position twice changes nothing and answers the same; an answer never
    depends on what came later, removals excepted; batches of any size answer alike; no answer names a removed or
    expired document.
    """

    async def admit(self, batch: Sequence[Admission]) -> Sequence[Admitted]:
        """Adds each document and answers its earlier neighbours; same order, same length.

        Raises:
            IndexUnavailableError: Wait, then send the same batch again.
            IndexBehindError: The index lost its newest writes.
            IndexLostError: The index was emptied.
        """
        ...

    async def report(self, pairs: Sequence[Report]) -> Sequence[bool]:
        """Notes events before they leave; False: a document was removed meanwhile, do not send this one."""
        ...

    async def look_up(self, keys: Keys, limit: int) -> Sequence[Candidate]:
        """Answers up to `limit` neighbours of these keys, none that has expired by now; reads only."""
        ...

    async def state(self) -> IndexState:
        """Whether the index can be trusted now."""
        ...
