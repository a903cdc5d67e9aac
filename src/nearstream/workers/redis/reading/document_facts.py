"""What an index stores about one document: states, families, pairs, buckets."""

from dataclasses import dataclass

from nearstream.schemas.documents.signature import Signature
from nearstream.streams.matching.family import FamilyFacts
from nearstream.streams.matching.protocol.decision import Pair
from nearstream.streams.store.store import Position


@dataclass(frozen=True)
class MemberFacts:
    """The place of a state in its family.

    Attributes:
        number: Number of the founder.
        ordinal: Its place in the order of joining, 0 if it has not joined yet.
        facts: Size and growth of the family, None if it has no second member.
    """

    number: int
    ordinal: int
    facts: FamilyFacts | None


@dataclass(frozen=True)
class StateFacts:
    """One stored state of a document.

    Attributes:
        number: Its number.
        position: The position of its record.
        signature: As a record keeps it.
        registered_at_ms: When the index got it, in milliseconds since 1970.
        superseded_by: The number from which on another state is current, 0 for the current state. One that was observed
            before the state that was current when it came has its own number here.
        decided: Whether its family and its pairs are decided.
        family: Its place in its family, None if it is alone in it as far as that is known.
        pairs: The earlier documents that were found related: the best one, and those whose event was sent.
        expired: It can no longer be found, but was not yet deleted.
        expires_at_ms: The time of its expiry, in milliseconds since 1970. None if it does not expire.
        record_bytes: Size of its record.
    """

    number: int
    position: Position
    signature: Signature
    registered_at_ms: int
    superseded_by: int
    decided: bool
    family: MemberFacts | None
    pairs: tuple[Pair, ...]
    expired: bool
    expires_at_ms: int | None
    record_bytes: int

    @property
    def reports(self) -> int:
        """Events that were sent when it arrived."""
        return sum(pair.is_sent for pair in self.pairs)


@dataclass(frozen=True)
class BucketFacts:
    """One bucket of a document.

    Attributes:
        kind: `digest`, `lineage`, `band` or `anchor`.
        key: Its key, in hex.
        entries: Count of its numbers, including those that have expired.
        cap: Maximum count of numbers.
        holds: Whether the current state of the document is in it. A copy leaves buckets to its representative.
    """

    kind: str
    key: str
    entries: int
    cap: int
    holds: bool = True

    @property
    def is_hot(self) -> bool:
        """Whether it is full, so that neighbours may be missing from it."""
        return self.entries >= self.cap
