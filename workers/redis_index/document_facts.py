"""What an index stores about one document: states, families, pairs, buckets."""

from dataclasses import dataclass

from nearstream.schemas.signature import Signature
from nearstream.streams.index.family import FamilyFacts


@dataclass(frozen=True)
class MemberFacts:
    """The place of a state in its family.

    Attributes:
        number: Number of the founder. Of a presumption: number of the representative.
        ordinal: Its place in the order of joining, 0 if the family is only presumed.
        facts: Size and growth of the family, None if it has no second member.
    """

    number: int
    ordinal: int
    facts: FamilyFacts | None


@dataclass(frozen=True)
class PairFacts:
    """An earlier document that was found related when a state arrived.

    Attributes:
        number: Its number.
        relation: The relation that was found.
        is_sent: Whether its event was sent.
    """

    number: int
    relation: str
    is_sent: bool


@dataclass(frozen=True)
class StateFacts:
    """One stored state of a document.

    Attributes:
        number: Its number, given in order of admission.
        position: Partition and offset of its record. None if there was no record, or the document was seen again.
        signature: As a record keeps it.
        superseded_by: The number from which on another state is current, 0 for the current state.
        family: Its place in its family, None if it is alone in it as far as that is known.
        pairs: The earlier documents that were found related when it arrived: the best one, and those with an event.
        spared: An event or a copy keeps it beyond its retention.
        expired: It can no longer be found, but was not yet swept.
        expires_at_ms: The time of its expiry, in milliseconds since 1970. None if it does not expire, or if the time
            when its number was given is not known.
        record_bytes: Size of its record.
    """

    number: int
    position: tuple[int, int] | None
    signature: Signature
    superseded_by: int
    family: MemberFacts | None
    pairs: tuple[PairFacts, ...]
    spared: bool
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
        name: Its chunk and field, as in the facts of the index.
        key: Its key, in hex.
        entries: Count of its numbers, including those not yet swept.
        cap: Maximum count of numbers.
        overflows: How often an admission displaced another one or found no room. 0 if the bucket has no count of its
            own.
        holds: Whether the current state of the document is in it. A copy leaves out buckets of its representative.
    """

    kind: str
    name: str
    key: str
    entries: int
    cap: int
    overflows: int
    holds: bool = True

    @property
    def is_hot(self) -> bool:
        """Whether it is or was full, so that neighbours may be missing from it."""
        return self.entries >= self.cap or self.overflows > 0


@dataclass(frozen=True)
class DocumentFacts:
    """What an index stores about a document.

    Attributes:
        document_key: `<collection>/<id>`.
        states: Its states, the newest first.
        buckets: Its buckets.
    """

    document_key: str
    states: tuple[StateFacts, ...]
    buckets: tuple[BucketFacts, ...]
