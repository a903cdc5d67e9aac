"""The messages between an index and its client about families.

A family is a document and its copies. The founder is its first document. The representative, at first the founder,
represents the family in the buckets: copies of it join the family. In order of this page:

    Decision, Pair          what was decided about one state: its family, its ordinal, its related documents
    Settlement              a decision on its way to the index
    Family, Settled         the answer: the family that the state belongs to, and which events may be sent
    FamilyFacts             the size of a family and the rate of its growth
"""

from dataclasses import dataclass
from enum import IntEnum

from nearstream.schemas.signature import Signature
from nearstream.streams.index.candidate import Candidate

PRESUMED_PERCENT = 70  # a document that shares this many of the anchors with a representative is presumed its copy
FAMILY_CANDIDATES = 2  # candidates of one family in an answer, the representative among them
PAIRS_CAP = 64  # related documents that are stored with a decision
SENT_CAP = 64  # pairs of relation and other family that a family remembers
LOG_READS = 64  # members that are read to find the next representative
HOUR_MS, DAY_MS, WEEK_MS = 3_600_000, 86_400_000, 604_800_000
# Slots in which joins are counted: 5 minutes for the last hour, an hour for the last day, a day for the last week.
SLOTS_MS = (300_000, HOUR_MS, DAY_MS)
WINDOWS_MS = (HOUR_MS, DAY_MS, WEEK_MS)


class Sending(IntEnum):
    """When the event of a pair is sent."""

    NEVER = 0  # its relation is not among those that are sent
    ONCE = 1  # subject to the limit of events for each other family
    ALWAYS = 2  # the former state of the document, or of its lineage


@dataclass(frozen=True)
class Pair:
    """A related earlier document.

    Attributes:
        relation: Type of the event.
        sending: When the event is sent. Of a decision: `ALWAYS` if it was sent, else `NEVER`.
        number: The candidate's number.
        candidate: The candidate. None if it was removed or has expired since the decision.
    """

    relation: str
    sending: Sending
    number: int
    candidate: Candidate | None


@dataclass(frozen=True)
class Family:
    """A family, as one of its members sees it.

    Id, ordinal and founder are those that the verdict named, also if that family has joined another one since.

    Attributes:
        number: Number of the state that founded the family in which it is counted now.
        family_id: 32 hex characters, from the founder's document key and version.
        ordinal: Place of the document in the order of joining. The founder has 1.
        founder: The founder as its record keeps it. None if it was removed or has expired.
        first_seen_ms: When the founder was observed, in milliseconds since 1970.
    """

    number: int
    family_id: str
    ordinal: int
    founder: Signature | None
    first_seen_ms: int


@dataclass(frozen=True)
class Decision:
    """What was decided about a state. A replay restates it.

    Attributes:
        family: Its family.
        pairs: Related documents, the best one first.
        degraded: The answer of the index was incomplete: full buckets, candidates cut off.
    """

    family: Family
    pairs: tuple[Pair, ...]
    degraded: tuple[bool, bool] = (False, False)


@dataclass(frozen=True)
class Settlement:
    """What a matcher found out about an admitted state.

    Attributes:
        number: The state's number.
        arriving: Its signature.
        joins: Number of the state whose family it joins, 0 to found a family.
        is_exact: That state has an equal text, so its family is joined even if it does not represent it.
        keeps: That state is the former one of the same document: family and ordinal stay.
        family_id: Id of the family that `joins` founded, or the state itself, should the family be new.
        first_seen_ms: When the founder of that family was observed.
        pairs: Related documents, the best one first.
        degraded: The answer of the index was incomplete: full buckets, candidates cut off.
    """

    number: int
    arriving: Signature
    joins: int
    is_exact: bool
    keeps: bool
    family_id: str
    first_seen_ms: int
    pairs: tuple[Pair, ...]
    degraded: tuple[bool, bool] = (False, False)


@dataclass(frozen=True)
class Settled:
    """The answer to a settlement.

    Attributes:
        family: The family. None if the state was removed or has expired meanwhile, or has to be settled again.
        sent: For each pair, whether its event may be sent.
        follow: The representative of the family that `joins` itself belongs to. Compare with it and settle again.
        is_refused: The family cannot be joined: the state itself founded it when others joined that state while it was
            in flight, or it has no living member and `joins` was removed. Enter all buckets and settle without `joins`.
            A state that was only superseded since this one was admitted can still be joined.
    """

    family: Family | None
    sent: tuple[bool, ...] = ()
    follow: Candidate | None = None
    is_refused: bool = False


@dataclass(frozen=True)
class FamilyFacts:
    """Size and growth of a family with at least two members.

    Attributes:
        family_id: 32 hex characters.
        number: Number of the state that founded it.
        representative: Number of the state that represents it, 0 if none lives.
        size: Members that were not removed and did not change to another text.
        first_seen_ms: When the founder was observed, in milliseconds since 1970.
        last_joined_ms: When the last member joined, by the time of the index.
        joined: How many joined within the last hour, day and week.
        founder: `<collection>/<id>` of the founder. Empty if it was removed or has expired.
    """

    family_id: str
    number: int
    representative: int
    size: int
    first_seen_ms: int
    last_joined_ms: int
    joined: tuple[int, int, int]
    founder: str = ""
