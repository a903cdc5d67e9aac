"""Candidates, decisions and settlements in bytes."""

from collections.abc import Callable
from dataclasses import dataclass

from nearstream.schemas.document import ADDRESS_BYTES
from nearstream.schemas.event_id import family_id
from nearstream.schemas.events import RELATIONS
from nearstream.schemas.signature import Signature
from nearstream.streams.estimates.comparing import Comparable, Unpacked
from nearstream.streams.index.candidate import Candidate
from nearstream.streams.index.family import Decision, Family, Pair, Sending, Settled, Settlement
from nearstream.streams.records.record import Recorded, text_of
from nearstream.streams.records.text_part import pack_text
from nearstream.streams.records.text_patch import patch
from nearstream.workers.redis_index.layout import (
    CANDIDATE,
    FAMILY_ID_BYTES,
    PAIR_SIZE,
    SENT,
    SETTLEMENT,
    VIEW,
    CandidateFlag,
    DegradedFlag,
    SettledLetter,
    SettlementFlag,
)
from nearstream.workers.redis_index.values import integer_of, number_bytes, pack_time, time_of

_PATCH_MAX = 0xFFFF


@dataclass(frozen=True)
class StoredState:
    """What an answer needs to know about a stored state.

    Attributes:
        earlier: The document, as its record says.
        anchor_count: Anchor keys of the document.
    """

    earlier: Comparable
    anchor_count: int


def unpack_candidates(packed: bytes, state_of: Callable[[int], StoredState]) -> tuple[Candidate, ...]:
    """Return candidates in the order in which the server packed them."""
    return tuple(_candidate(state_of, *fields) for fields in CANDIDATE.iter_unpack(packed))


def _candidate(
    state_of: Callable[[int], StoredState], packed: bytes, bands: int, anchors: int, flags: int
) -> Candidate:
    number = integer_of(packed)
    state = state_of(number)
    by_digest, by_lineage = bool(flags & CandidateFlag.BY_DIGEST), bool(flags & CandidateFlag.BY_LINEAGE)
    in_full_bucket, represents = bool(flags & CandidateFlag.IN_FULL_BUCKET), bool(flags & CandidateFlag.REPRESENTS)
    found_by = (by_digest, by_lineage, in_full_bucket)
    shares_rare = bool(flags & CandidateFlag.SHARES_RARE)
    return Candidate(number, state.earlier, bands, anchors, state.anchor_count, *found_by, represents, shares_rare)


def pack_settlement(settlement: Settlement) -> bytes:
    """Return one argument for a settlement."""
    patch = _patch(settlement)
    flags = SettlementFlag.EXACT * settlement.is_exact + SettlementFlag.KEEPS * settlement.keeps
    sender, recipients = settlement.arriving.sender, settlement.arriving.recipients
    head = SETTLEMENT.pack(
        number_bytes(settlement.number),
        number_bytes(settlement.joins),
        flags,
        _degraded(settlement.degraded),
        bytes.fromhex(settlement.family_id),
        pack_time(settlement.first_seen_ms),
        len(sender) // ADDRESS_BYTES,
        len(recipients) // ADDRESS_BYTES,
        len(patch),
    )
    return b"".join((head, sender, recipients, patch, *map(_pack_pair, settlement.pairs)))


def _patch(settlement: Settlement) -> bytes:
    """Return what turns the text of the joined state into that of this one, if that is at most half as long."""
    joined = next((pair.candidate for pair in settlement.pairs if pair.number == settlement.joins), None)
    if joined is None or settlement.is_exact:
        return b""
    earlier, text = joined.earlier, pack_text(settlement.arriving)
    other = text_of(earlier.packed) if isinstance(earlier, Recorded) else pack_text(earlier.signature)
    differences = patch(other, text)
    return differences if 2 * len(differences) <= len(text) and len(differences) <= _PATCH_MAX else b""


def unpack_settled(answer: bytes, settlement: Settlement, stored: Callable[[int], StoredState | None]) -> Settled:
    """Return the answer to a settlement.

    Args:
        answer: As the server packs it.
        settlement: What was asked.
        stored: Returns the state of a number, if the server sent it.
    """
    known = {pair.number: pair.candidate.earlier for pair in settlement.pairs if pair.candidate is not None}
    known[settlement.number] = Unpacked(settlement.arriving)

    def signature_of(number: int) -> Signature | None:
        state = stored(number)
        earlier = known.get(number) if state is None else state.earlier
        return None if earlier is None else earlier.signature

    letter, rest = SettledLetter(answer[:1]), answer[1:]
    if letter is SettledLetter.IS_GONE:
        return Settled(None, (False,) * len(settlement.pairs))
    if letter is SettledLetter.IS_REFUSED:
        return Settled(None, is_refused=True)
    if letter is SettledLetter.FOLLOWS:
        return Settled(None, follow=unpack_candidates(rest, lambda number: _required(stored(number)))[0])
    family, _ = _unpack_view(rest[: VIEW.size], settlement.arriving, signature_of)
    return Settled(family, tuple(byte == ord("1") for byte in rest[VIEW.size :]))


def unpack_decision(packed: bytes, own: Signature, stored: Callable[[int], StoredState | None]) -> Decision:
    """Return the decision about a state of a document as the server packs it."""

    def signature_of(number: int) -> Signature | None:
        state = stored(number)
        return None if state is None else state.earlier.signature

    family, degraded = _unpack_view(packed[: VIEW.size], own, signature_of)
    pairs = tuple(
        _unpack_pair(packed[start : start + PAIR_SIZE], stored) for start in range(VIEW.size, len(packed), PAIR_SIZE)
    )
    return Decision(family, pairs, degraded)


def _unpack_view(
    packed: bytes, own: Signature, signature_of: Callable[[int], Signature | None]
) -> tuple[Family, tuple[bool, bool]]:
    """Return the family of a document, and what was incomplete about the decision."""
    number, founded_by, ordinal, degraded, own_id, first_seen, is_stored = VIEW.unpack(packed)
    founder = signature_of(integer_of(founded_by)) if is_stored else None
    flags = bool(degraded & DegradedFlag.FULL_BUCKETS), bool(degraded & DegradedFlag.CANDIDATES_CUT)
    if own_id != bytes(FAMILY_ID_BYTES):
        return Family(integer_of(number), own_id.hex(), integer_of(ordinal), founder, time_of(first_seen)), flags
    one = founder or own
    founded = family_id(one.document_key, one.version, one.scheme)
    return Family(integer_of(number), founded, integer_of(ordinal), founder, one.observed_at_ms), flags


def _pack_pair(pair: Pair) -> bytes:
    candidate = pair.candidate
    if candidate is None:
        raise ValueError(f"a candidate expected in the pair with number {pair.number}")
    flags = CandidateFlag.BY_DIGEST * candidate.by_digest + CandidateFlag.BY_LINEAGE * candidate.by_lineage
    flags += CandidateFlag.IN_FULL_BUCKET * candidate.in_full_bucket
    flags += CandidateFlag.SHARES_RARE * candidate.shares_rare
    packed = CANDIDATE.pack(number_bytes(pair.number), candidate.bands, candidate.anchors, flags)
    return bytes((RELATIONS.index(pair.relation) + 1, pair.sending)) + packed


def _unpack_pair(packed: bytes, stored: Callable[[int], StoredState | None]) -> Pair:
    relation, sending = RELATIONS[packed[0] % SENT - 1], Sending.ALWAYS if packed[0] & SENT else Sending.NEVER
    number, _, _, flags = CANDIDATE.unpack(packed[1:])
    if flags & CandidateFlag.GONE:
        return Pair(relation, sending, integer_of(number), None)
    (candidate,) = unpack_candidates(packed[1:], lambda own: _required(stored(own)))
    return Pair(relation, sending, candidate.number, candidate)


def _degraded(degraded: tuple[bool, bool]) -> int:
    full, cut = degraded
    return DegradedFlag.FULL_BUCKETS * full + DegradedFlag.CANDIDATES_CUT * cut


def _required(state: StoredState | None) -> StoredState:
    if state is None:
        raise LookupError("the server named a state without its record")
    return state
