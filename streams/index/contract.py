"""The contract of an index: it finds documents that share a bucket.

In order of this page:

    Admission, Position    what goes in: a document or removal, and its record
    Admitted, Status       what comes back: the earlier documents
    Index, IndexState      the protocol, and whether answers can be trusted

The errors that an index raises, and its bounds, are those of `streams/store/limits.py`. Two classes fulfil `Index`:
`MemoryIndex` in this process and `RedisIndex` on a server. The constants are part of the contract because both must
give equal answers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from nearstream.schemas.signature import Origin, Signature
from nearstream.streams.index.candidate import Candidate
from nearstream.streams.index.family import Decision, Settled, Settlement
from nearstream.streams.index.labels import Labelling
from nearstream.streams.signing.scheme import Keys
from nearstream.streams.store.limits import ANCHOR_HEADS as ANCHOR_HEADS
from nearstream.streams.store.limits import BAND_CAP as BAND_CAP
from nearstream.streams.store.limits import HEADS as HEADS
from nearstream.streams.store.limits import LINEAGE_CAP as LINEAGE_CAP
from nearstream.streams.store.limits import REMOVAL_MS as REMOVAL_MS
from nearstream.streams.store.limits import WALK as WALK
from nearstream.streams.store.limits import IndexBehindError as IndexBehindError
from nearstream.streams.store.limits import IndexLimits as IndexLimits
from nearstream.streams.store.limits import IndexLostError as IndexLostError
from nearstream.streams.store.limits import IndexUnavailableError as IndexUnavailableError

# Candidates: how they are weighed, and how many are read.
ENOUGH = 2  # least weight for each anchor of the document with fewer of them, such as one rare anchor in 50
BEST = 5  # candidates that are returned even if they share less than that
COMMON_READS = 8  # neighbours that are read though they share only what many documents have
READS = 256  # neighbours that are read for one document, alive or not

# History of a document, and its expiry.
MARKS = 256  # steps in which the retention advances
KEPT_CAP = 262_144  # documents that a recent copy or event protects from expiry


@dataclass(frozen=True)
class Position:
    """The partition and offset of a record of the signatures topic.

    Attributes:
        partition: Its partition.
        offset: Its offset.
        previous: Offset consumed before it in this partition. At assignment, the committed offset - 1.
    """

    partition: int
    offset: int
    previous: int


@dataclass(frozen=True)
class Admission:
    """A document to be added to the index, or removed from it, or the label of one.

    Attributes:
        document_key: `<collection>/<id>`.
        signature: As a record keeps it (`Scheme.kept`), or None for a removal or a label. It holds no anchors: an index
            does not know the scheme and takes their number from `keys`.
        keys: The bucket keys of the document, without duplicates.
        position: The record that it came in. None: there is no protection against redelivery.
        removal: Of a removal: its record on `documents`, None if it came from no topic.
        labelling: The label, None if this is no label.
    """

    document_key: str
    signature: Signature | None
    keys: Keys
    position: Position | None = None
    removal: Origin | None = None
    labelling: Labelling | None = None

    @property
    def origin(self) -> Origin | None:
        """The record on `documents` of the document, or of its removal."""
        return self.removal if self.signature is None else self.signature.origin


class Status(StrEnum):
    """What an admission meant to the index."""

    NEW = "new"  # the document was not in the index
    UPDATED = "updated"  # another state of a known document
    UNCHANGED = "unchanged"  # the current state of a known document
    REPLAYED = "replayed"  # a record that was admitted before, answered as it was then
    STALE = "stale"  # a record that was admitted before and of which nothing is left
    REMOVED = "removed"  # a removal
    OVERTAKEN = "overtaken"  # a document that was sent before its removal and arrives after it
    LABELLED = "labelled"  # a label, given or taken back


@dataclass(frozen=True)
class Admitted:
    """The answer to one admission.

    It describes the index at the moment when the document got its number.

    Attributes:
        status: What the admission meant to the index.
        number: The document's number, 0 if it has none. An unchanged document that has passed half of its retention
            gets a new one.
        previous: For `UPDATED` and `UNCHANGED`, and their replays: the state of this document that was current
            before. It is the newer of the two if this state came late.
        candidates: Digest and lineage matches, which no limit leaves out, and the best of the other neighbours. Twice
            the limit of these are read, in the order of their shared `weight`, but only `COMMON_READS` that share
            nothing but common text and less than `PRESUMED_PERCENT` of this document's anchors. They are ranked by that
            weight divided by the number of anchors of the document with fewer of them, ties by number. After the first
            `BEST`, a neighbour is a candidate only if this quotient is at least `ENOUGH`, and if it shares rare keys or
            `PRESUMED_PERCENT` of the anchors of that document. `FAMILY_CANDIDATES` of each family remain, its
            representative among them. Sorted as by `in_order`.
        full_buckets: Number of buckets of this document that were full.
        cut: Candidates were left out because of the limit.
        may_change: A later look may give another answer, so it has to be settled even if nothing is related.
        presumed: Number of the candidate whose copy this document seems to be. It left out buckets that this one is
            in, so if it is no copy, `enter` has to follow. 0: it is in all its buckets.
        decision: Of a replay or an unchanged document: what was decided. None: nothing, or not yet.
        found: Of a removal: the index had the document. Of an overtaken document: it has a later state.
        repeated: Of a removal: this removal, or a later one of the document, has been admitted before.
        removed_by: Of an overtaken document: its removal.
    """

    status: Status
    number: int = 0
    previous: Candidate | None = None
    candidates: tuple[Candidate, ...] = ()
    full_buckets: int = 0
    cut: bool = False
    may_change: bool = False
    presumed: int = 0
    decision: Decision | None = None
    found: bool = False
    repeated: bool = False
    removed_by: Origin | None = None


class IndexState(StrEnum):
    """Whether the index can be trusted."""

    READY = "ready"
    READ_ONLY = "read_only"
    BEHIND = "behind"
    LOST = "lost"
    REBUILDING = "rebuilding"


class Index(Protocol):
    """An index that finds the earlier documents sharing a bucket with another.

    Every implementation keeps these laws:

    - Of two live documents that share a bucket that is not full, at least one finds the other, and returns it if it is
      among the best candidates that share enough.
    - To admit a position twice changes nothing and returns what was decided.
    - A document joins a family once. Removal of its representative loses no member: another one takes its place.
    - An answer never depends on later documents, except for removals.
    - If states are settled before later ones are admitted, the size of a batch does not change the answers. Until it is
      settled, a state counts as a copy of the one whose copy it is presumed to be.
    - A label counts for the family of its document as long as that is live, whichever of the two came first. Of two
      records about one label, the one with the larger offset counts.
    - A state that others joined before it was settled takes them along into the family that it joins.
    - No answer contains a removed or expired document.
    """

    async def admit(self, batch: Sequence[Admission]) -> Sequence[Admitted]:
        """Add each document and return its earlier neighbours.

        There is one answer for each admission, in order.

        Raises:
            IndexUnavailableError: The index cannot answer now. Wait, then repeat the batch.
            IndexBehindError: The index has lost its newest writes of a partition.
            IndexLostError: The index was emptied or replaced.
        """
        ...

    async def enter(self, batch: Sequence[tuple[int, Admission]]) -> Sequence[tuple[Candidate, ...]]:
        """Add states, given by number, to the buckets that they left out.

        The answer names the others in those buckets, who have not seen the state, and the later ones in the rest: to
        do this again changes nothing and names them again. So does a replay until the state is settled.

        Raises:
            IndexUnavailableError: The index cannot answer now. Wait, then admit the batch again.
        """
        ...

    async def settle(self, batch: Sequence[Settlement]) -> Sequence[Settled]:
        """Record decisions before their verdicts and events are sent.

        A state that was settled before keeps its decision.

        Raises:
            IndexUnavailableError: The index cannot answer now. Wait, then admit the batch again.
        """
        ...

    async def look_up(self, keys: Keys, limit: int) -> Sequence[Candidate]:
        """Return up to `limit` neighbours of some keys without a write.

        None of them has expired by now.
        """
        ...

    async def state(self) -> IndexState:
        """Return whether the index can be trusted now."""
        ...
