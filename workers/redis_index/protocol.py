"""The arguments of the index functions on the server, and their replies, in bytes."""

from collections.abc import Callable, Mapping, Sequence

from nearstream.schemas.label import LabelKind
from nearstream.schemas.signature import VERSION_BYTES, Origin
from nearstream.streams.estimates.comparing import Unpacked
from nearstream.streams.index.candidate import in_order
from nearstream.streams.index.contract import Admission, Admitted, Position, Status
from nearstream.streams.records.record import pack_signature, unpack_record
from nearstream.streams.signing.scheme import Keys
from nearstream.workers.redis_index.layout import (
    ADMISSION,
    ANSWER,
    CANDIDATE,
    LABEL,
    NO_PARTITION,
    NUMBER_BYTES,
    RECORD,
    REMOVED,
    STATUS_LETTERS,
    AdmissionFlag,
    AnswerFlag,
    IndexLayout,
    LabelCode,
)
from nearstream.workers.redis_index.settling import StoredState, unpack_candidates, unpack_decision
from nearstream.workers.redis_index.values import (
    LAST_MS,
    SHIFT_MS,
    hash_of,
    integer_of,
    integers_of,
    pack_buckets,
    pack_time,
    time_of,
)

_STATUSES = {letter: status for status, letter in STATUS_LETTERS.items()}
_STATUS_BYTES = 1 + NUMBER_BYTES
_STORED = STATUS_LETTERS[Status.NEW] + STATUS_LETTERS[Status.UPDATED]
_NO_VERSION = bytes(8)
_LABEL_CODES: dict[LabelKind | None, LabelCode] = {
    None: LabelCode.LABEL_NONE,
    "spam": LabelCode.LABEL_SPAM,
    "ham": LabelCode.LABEL_HAM,
}


# Arguments


def pack_admissions(batch: Sequence[Admission], layout: IndexLayout) -> list[bytes]:
    """Return one argument for each admission."""
    buckets = pack_buckets([admission.keys for admission in batch], layout)
    return [
        _pack_head(admission, layout) + packed + _pack_rest(admission)
        for admission, packed in zip(batch, buckets, strict=True)
    ]


def pack_keys(keys: Keys, layout: IndexLayout) -> bytes:
    """Return keys for a lookup, in the form of an admission."""
    (packed,) = pack_admissions([Admission("", None, keys)], layout)
    return packed


def pack_items(items: Sequence[Admission | Position], layout: IndexLayout) -> list[bytes]:
    """Return one argument for each item.

    A position without an admission moves the checkpoint past a record that has no document in this shard.
    """
    packed = iter(pack_admissions([item for item in items if isinstance(item, Admission)], layout))
    return [next(packed) if isinstance(item, Admission) else _pack_position(item, layout) for item in items]


def _pack_position(position: Position, layout: IndexLayout) -> bytes:
    return _pack_head(Admission("", None, Keys(b"", None, (), ()), position), layout, AdmissionFlag.POSITION_ONLY)


def _pack_head(admission: Admission, layout: IndexLayout, flags: int = 0) -> bytes:
    keys, position, signature, origin = admission.keys, admission.position, admission.signature, admission.origin
    flags |= AdmissionFlag.IS_REMOVAL if signature is None and admission.labelling is None else 0
    flags |= AdmissionFlag.IS_LABEL if admission.labelling is not None else 0
    flags |= AdmissionFlag.HAS_LINEAGE if keys.lineage is not None else 0
    partition, offset, previous = NO_PARTITION, 0, -1
    if position is not None:
        flags |= AdmissionFlag.HAS_POSITION
        partition, offset, previous = position.partition, position.offset, position.previous
    sent_to, sent_at, sent_at_ms = NO_PARTITION, 0, 0
    if origin is not None and origin.partition < NO_PARTITION:
        flags |= AdmissionFlag.HAS_ORIGIN
        sent_to, sent_at, sent_at_ms = origin.partition, origin.offset, origin.sent_at_ms
    return ADMISSION.pack(
        *hash_of(admission.document_key, layout),
        flags,
        partition,
        offset.to_bytes(6, "big"),
        (previous + 1).to_bytes(6, "big"),
        b"" if signature is None else pack_time(signature.observed_at_ms),
        _NO_VERSION if signature is None else signature.digest[:VERSION_BYTES],
        len(keys.bands),
        len(keys.anchors),
        sent_to,
        sent_at.to_bytes(6, "big"),
        sent_at_ms.to_bytes(6, "big"),
    )


def _pack_rest(admission: Admission) -> bytes:
    signature, labelling = admission.signature, admission.labelling
    if labelling is not None:
        code = _LABEL_CODES[labelling.label]
        return LABEL.pack(code, labelling.weight, labelling.given_ms.to_bytes(6, "big"), bytes(6))
    if signature is None:
        return b""
    return pack_signature(signature, observed_in_head=0 <= signature.observed_at_ms + SHIFT_MS <= LAST_MS)


# Replies


def unpack_records(reply: Sequence[bytes], scheme: str) -> dict[int, StoredState]:
    """Return states by number from packed numbers and their records.

    The scheme is an argument because records do not contain its name.
    """
    packed, *records = reply
    return {number: _stored_state(record, scheme) for number, record in zip(integers_of(packed), records, strict=True)}


def _stored_state(record: bytes, scheme: str) -> StoredState:
    _, _, _, observed, version, _, anchors, _ = RECORD.unpack_from(record)
    return StoredState(unpack_record(record[RECORD.size :], scheme, version, time_of(observed)), anchors)


def unpack_answers(
    items: Sequence[Admission | Position], answers: Sequence[bytes], records: Mapping[int, StoredState]
) -> list[Admitted]:
    """Return the answers to the first admissions of the items.

    The server sends no records of states that the items themselves have added, so these are taken from the items.
    """
    states = dict(records)
    to_admissions: list[tuple[bytes, Admission]] = []
    for item, answer in zip(items, answers, strict=False):
        if isinstance(item, Admission):
            to_admissions.append((answer, item))
            if answer[:1] in _STORED and item.signature is not None:
                states[integer_of(answer[1:_STATUS_BYTES])] = StoredState(
                    Unpacked(item.signature), len(item.keys.anchors)
                )
    return [_unpack_answer(answer, states.__getitem__, admission) for answer, admission in to_admissions]


def _unpack_answer(answer: bytes, state_of: Callable[[int], StoredState], admission: Admission) -> Admitted:
    """Return one answer.

    Args:
        answer: As the server packs it.
        state_of: Returns the state of a number.
        admission: What was asked.
    """
    status, number = _STATUSES[answer[:1]], integer_of(answer[1:_STATUS_BYTES])
    full, flags, presumed = ANSWER.unpack_from(answer, _STATUS_BYTES)
    rest = answer[_STATUS_BYTES + ANSWER.size :]
    found = bool(flags & AnswerFlag.FOUND)
    if status is Status.REMOVED:
        return Admitted(status, found=found, repeated=bool(flags & AnswerFlag.REPEATED))
    origin, own = admission.origin, admission.signature
    if status is Status.OVERTAKEN and origin is not None:
        _, partition, *place = REMOVED.unpack(rest)
        return Admitted(status, found=found, removed_by=Origin(origin.topic, partition, *map(integer_of, place)))
    previous, decision = None, None
    if flags & AnswerFlag.HAS_PREVIOUS:
        (previous,), rest = unpack_candidates(rest[: CANDIDATE.size], state_of), rest[CANDIDATE.size :]
    if flags & AnswerFlag.DECIDED and own is not None:
        decision, rest = unpack_decision(rest, own, state_of), b""
    return Admitted(
        status,
        number,
        previous,
        in_order(unpack_candidates(rest, state_of)),
        full,
        cut=bool(flags & AnswerFlag.CUT),
        may_change=bool(flags & AnswerFlag.MAY_CHANGE),
        presumed=integer_of(presumed),
        decision=decision,
    )
