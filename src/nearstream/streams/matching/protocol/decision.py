"""What is decided about a state: its family, and the related documents that its events name."""

from struct import Struct
from typing import NamedTuple

from nearstream.schemas.verdicts.events import RELATIONS
from nearstream.streams.store.registration import NUMBER_BYTES

PAIRS_CAP = 64  # related documents that are stored with a decision
_PAIR = Struct(f">BB{NUMBER_BYTES}s{NUMBER_BYTES}sBHB")
_FULL_BUCKETS, _CANDIDATES_CUT, _REDUNDANT = 1, 2, 4
_BY_DIGEST, _BY_LINEAGE, _IN_FULL_BUCKET, _SHARES_RARE = 1, 2, 4, 8
_NEVER, _ONCE, _ALWAYS = 0, 1, 2


class KeyMatch(NamedTuple):
    """By which keys two states have met."""

    bands: int  # number of shared band keys
    anchors: int  # number of shared anchor keys
    by_digest: bool = False  # both have one digest
    by_lineage: bool = False  # both have one lineage, or are states of one document
    in_full_bucket: bool = False  # a shared bucket was full, so others may be missing
    shares_rare: bool = True  # enough of the shared bands and anchors are rare


class Pair(NamedTuple):
    """A related earlier document."""

    number: int  # its number
    family: int  # the founder of its family, itself if nothing was decided about it
    relation: str  # type of the event
    is_sent: bool  # its event is sent, unless `is_link` and another member of the family has sent it
    is_link: bool  # the event depends on the other members of the family
    match: KeyMatch  # the keys that both share

    @property
    def link(self) -> bytes:
        """The relation to the other family, as a store remembers it."""
        return bytes((RELATIONS.index(self.relation),)) + self.family.to_bytes(NUMBER_BYTES, "big")


class Decision(NamedTuple):
    """What is decided about a state."""

    founder: int  # Number of the state that founded its family. Its own: it founded one.
    pairs: tuple[Pair, ...] = ()  # related documents, the best one first
    full_buckets: bool = False  # some of its buckets were full
    cut: bool = False  # candidates were left out
    is_redundant: bool = False  # the document of the first pair has the whole text

    @property
    def links(self) -> tuple[Pair, ...]:
        """The pairs whose events depend on the other members of the family."""
        return tuple(pair for pair in self.pairs if pair.is_link)


def founder_of(packed: bytes) -> int:
    """Return the founder of the family that a packed decision names."""
    return int.from_bytes(packed[:NUMBER_BYTES], "big")


def is_kept(packed: bytes | None) -> bool:
    """Return whether a document was decided, and is not redundant."""
    return packed is not None and not packed[NUMBER_BYTES] & _REDUNDANT


def pack_decision(decision: Decision) -> bytes:
    """Return a decision in bytes.

    It begins with the founder, which a store reads. Flags follow, then 16 bytes for each pair.
    """
    flags = _FULL_BUCKETS * decision.full_buckets | _CANDIDATES_CUT * decision.cut | _REDUNDANT * decision.is_redundant
    head = decision.founder.to_bytes(NUMBER_BYTES, "big") + bytes((flags,))
    return b"".join((head, *map(_pack_pair, decision.pairs)))


def unpack_decision(packed: bytes) -> Decision:
    """Return the decision that was packed."""
    flags = packed[NUMBER_BYTES]
    pairs = tuple(map(_unpack_pair, _PAIR.iter_unpack(packed[NUMBER_BYTES + 1 :])))
    known = [bool(flags & each) for each in (_FULL_BUCKETS, _CANDIDATES_CUT, _REDUNDANT)]
    return Decision(founder_of(packed), pairs, *known)


def _pack_pair(pair: Pair) -> bytes:
    sending = (_ONCE if pair.is_link else _ALWAYS) if pair.is_sent else _NEVER
    match = pair.match
    flags = _BY_DIGEST * match.by_digest | _BY_LINEAGE * match.by_lineage
    flags |= _IN_FULL_BUCKET * match.in_full_bucket | _SHARES_RARE * match.shares_rare
    number, family = (each.to_bytes(NUMBER_BYTES, "big") for each in (pair.number, pair.family))
    bands, anchors = min(match.bands, 0xFF), min(match.anchors, 0xFFFF)
    return _PAIR.pack(RELATIONS.index(pair.relation), sending, number, family, bands, anchors, flags)


def _unpack_pair(fields: tuple[int, int, bytes, bytes, int, int, int]) -> Pair:
    relation, sending, number, family, bands, anchors, flags = fields
    known = [bool(flags & each) for each in (_BY_DIGEST, _BY_LINEAGE, _IN_FULL_BUCKET, _SHARES_RARE)]
    numbers = int.from_bytes(number, "big"), int.from_bytes(family, "big")
    return Pair(*numbers, RELATIONS[relation], sending != _NEVER, sending == _ONCE, KeyMatch(bands, anchors, *known))
