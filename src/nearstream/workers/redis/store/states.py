"""States at their home: registrations, questions, notes and decisions, packed and unpacked."""

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Any, NamedTuple

from nearstream.streams.store.history import NO_ORDER
from nearstream.streams.store.messages import Decided, Note, Noted, Proposal, Query, Shortened, View
from nearstream.streams.store.registration import (
    NUMBER_BYTES,
    TIME_BYTES,
    Labelling,
    Order,
    Put,
    Registered,
    Removal,
    Sent,
    Status,
)
from nearstream.workers.redis.server.layout import (
    DECIDED,
    FOLLOWED,
    GONE,
    ITEM_FORMAT,
    KINDS,
    LABEL_ITEM,
    LATE,
    NO_STATE,
    ORDER_FORMAT,
    PROPOSAL_FORMAT,
    PUT_FORMAT,
    PUT_ITEM,
    QUERY_FORMAT,
    REMOVAL,
    REMOVAL_FORMAT,
    REMOVAL_ITEM,
    SENT_FORMAT,
    STATE_FORMAT,
    STUB,
    SUPERSEDED,
    TIME_SHIFT,
    UNDECLARED,
    WAS_KNOWN,
    KeyKind,
    StoreLayout,
    python_struct,
)
from nearstream.workers.redis.store.families import unpack_family

_ITEM, _PUT, _QUERY, _PROPOSAL = map(python_struct, (ITEM_FORMAT, PUT_FORMAT, QUERY_FORMAT, PROPOSAL_FORMAT))
_ORDER = Struct(python_struct(ORDER_FORMAT).format.replace("II", "8s"))
# Its times and the offset are two numbers each, which takes less time than bytes do.
_STATE = Struct(python_struct(STATE_FORMAT).format.replace("22s", _ORDER.format[1:]).replace("6s", "HI"))
_REMOVAL, _SENT = python_struct(REMOVAL_FORMAT), python_struct(SENT_FORMAT)
# Replies of the server are lists, of which no type says which item is what.
_Told = list[Any]  # status, number, state, former state, label, removal, whether there is a later one: see history.lua
_Answer = list[Any] | bytes | None  # state, record, family, score, sites, or the state alone: see decisions.lua


class State(NamedTuple):
    """A state as its slot keeps it. layout.py describes it."""

    flags: int
    anchors: int
    born_ms: int
    order: Order
    former: int
    before: int
    tail: bytes

    @property
    def kind(self) -> int:
        """What it is, 0 for a state of a document."""
        return self.flags - self.flags % KINDS

    @property
    def decision(self) -> bytes | None:
        """What was decided about it, None if nothing was."""
        return self.tail if self.flags & DECIDED else None

    @property
    def is_late(self) -> bool:
        """Whether it was observed before the state that was current when it came."""
        return self.kind == 0 and bool(self.flags & LATE)

    @property
    def is_dead(self) -> bool:
        """Whether another state is current. A state without a record is dead too."""
        return bool(self.flags & (LATE | SUPERSEDED))


def unpack_state(packed: bytes) -> State:
    """Return a state that was packed."""
    flags, anchors, born, born_ms, *order, former, before = _STATE.unpack_from(packed)
    at = _order(*order) if flags < REMOVAL else NO_ORDER
    return State(flags, anchors, born << 32 | born_ms, at, _int(former), _int(before), packed[_STATE.size :])


def _order(observed: int, observed_ms: int, partition: int, offset: int, low: int, version: bytes) -> Order:
    return Order((observed << 32 | observed_ms) - TIME_SHIFT, partition - 1, offset << 32 | low, version)


# Registration.


def pack_items(
    layout: StoreLayout, tag: bytes, batch: Sequence[Put | Removal | Labelling]
) -> tuple[list[bytes], list[bytes]]:
    """Return the keys of documents and states, and each item packed."""
    keys, items = state_keys(layout, tag, [one.number for one in batch]), []
    for one in batch:
        chunk = layout.registry_chunk(one.document)
        keys.add(tag + KeyKind.REGISTRY + chunk)
        if isinstance(one, Put):
            kind, body = PUT_ITEM, _PUT.pack(_pack_order(one.order), _bytes(one.sent_ms, 6), one.anchors) + one.record
        elif isinstance(one, Removal):
            kind, body = REMOVAL_ITEM, _SENT.pack(one.partition + 1, _bytes(one.offset, 6), _bytes(one.sent_ms, 6))
        else:
            kind, body = LABEL_ITEM, _bytes(one.given_ms, TIME_BYTES) + one.label
        items.append(_ITEM.pack(kind, _bytes(one.number), _bytes(one.now_ms, 6), chunk, one.document) + body)
    return list(keys), items


def state_keys(layout: StoreLayout, tag: bytes, numbers: Iterable[int]) -> set[bytes]:
    """Return the keys of states and of their records."""
    groups = set(map(layout.group, numbers))
    return {tag + kind + group for kind in (KeyKind.STATES, KeyKind.RECORDS) for group in groups}


def unpack_registered(
    _layout: StoreLayout, one: Put | Removal | Labelling, _now_ms: int, answer: _Told | int
) -> Registered | int:
    """Return the answer to a registration, or a former state whose keys must be declared."""
    if isinstance(answer, int):
        return Registered(Status(answer), one.number)
    if answer[0] == UNDECLARED:
        undeclared: int = answer[1]
        return undeclared
    code, number, packed, former, label, removal, is_there = answer
    status, state = Status(code), unpack_state(packed) if packed else None
    if status is Status.REMOVED:
        if state is None:
            return Registered(status, one.number, is_repeated=True)
        return Registered(status, number, left=_pairs(state.tail), was_known=bool(state.flags & WAS_KNOWN))
    if status is Status.LABELLED:
        return Registered(status, number, state.decision if state else None, label=label[NUMBER_BYTES:])
    if status is Status.OVERTAKEN:
        founder = _int(state.decision[:NUMBER_BYTES]) if state and state.decision and not state.is_late else 0
        left = ((number, founder),) if founder else ()
        return Registered(status, number, left=left, was_known=bool(is_there), removed_by=_sent(removal))
    if state is None or (status is Status.UNCHANGED and number != one.number):
        return Registered(status, number, state.decision if state else None)
    return Registered(
        status,
        number,
        state.decision,
        state.former if former else 0,
        state.is_late,
        state.is_dead,
        bool(state.flags & FOLLOWED),
        label=label[NUMBER_BYTES:],
    )


def _pairs(packed: bytes) -> tuple[tuple[int, int], ...]:
    numbers = _numbers(packed)
    return tuple(zip(numbers[::2], numbers[1::2], strict=True))


def _sent(removal: bytes) -> Sent:
    if not removal:
        return Sent()
    partition, offset, ms = _SENT.unpack(_REMOVAL.unpack(removal)[1])
    return Sent(partition - 1, _int(offset), _int(ms))


# Questions.


def pack_queries(layout: StoreLayout, tag: bytes, batch: Sequence[Query]) -> tuple[list[bytes], list[bytes]]:
    """Return the keys of states, and for each query what is asked."""
    states, records = tag + KeyKind.STATES, tag + KeyKind.RECORDS
    keys, items = set[bytes](), []
    for number, asker, record in batch:
        group, own = layout.group(number), number.to_bytes(NUMBER_BYTES, "big")
        keys.add(states + group)
        if record:
            keys.add(records + group)
        if asker:
            keys.add(tag + KeyKind.MEMBERS + own)
        items.append(_QUERY.pack(own, asker.to_bytes(NUMBER_BYTES, "big"), record))
    return list(keys), items


def unpack_view(layout: StoreLayout, _query: Query, now_ms: int, answer: _Answer) -> View | None:
    """Return what is known of a state."""
    # A document has some eight views, so no `State` is made. An answer without record and family is only the state.
    packed, record, packed_family, score, sites = (
        answer if isinstance(answer, list) else (answer, None, None, None, None)
    )
    family = unpack_family(layout, packed_family, score, now_ms, int(sites or 0)) if packed_family else None
    flags, anchors, born, born_ms, seen, seen_ms, partition, at, low, version, _, _ = _STATE.unpack_from(
        packed or NO_STATE
    )
    retention_ms, age_ms = layout.retention_ms, now_ms - (born << 32 | born_ms)
    if packed is None or flags >= STUB or 0 < retention_ms * 3 // 2 < age_ms:
        return View(NO_ORDER, None, 0, False, True, True, None, family) if family else None
    is_gone = flags >= KINDS or flags & GONE > 0 or 0 < retention_ms < age_ms
    return View(
        _order(seen, seen_ms, partition, at, low, version) if flags < REMOVAL else NO_ORDER,
        packed[_STATE.size :] if flags & DECIDED else None,
        anchors,
        flags < KINDS and flags & LATE > 0,
        is_gone or flags & (LATE | SUPERSEDED) > 0,
        is_gone,
        None if is_gone else record,
        family,
    )


# Decisions.


def pack_notes(layout: StoreLayout, tag: bytes, batch: Sequence[Note]) -> tuple[list[bytes], list[bytes]]:
    """Return the keys of states, and for each note both numbers."""
    keys = dict.fromkeys(tag + KeyKind.STATES + layout.group(note.number) for note in batch)
    return list(keys), [_bytes(note.number) + _bytes(note.by) for note in batch]


def unpack_noted(_layout: StoreLayout, _note: Note, _now_ms: int, answer: list[Any]) -> Noted:
    """Return the answer to a note."""
    packed, is_gone = answer
    return Noted(unpack_state(packed).decision, bool(is_gone))


def pack_shortened(layout: StoreLayout, tag: bytes, batch: Sequence[Shortened]) -> tuple[list[bytes], list[bytes]]:
    """Return the keys of records, and for each its number and what takes its place."""
    keys = dict.fromkeys(tag + KeyKind.RECORDS + layout.group(one.number) for one in batch)
    return list(keys), [_bytes(one.number) + one.record for one in batch]


def pack_proposals(layout: StoreLayout, tag: bytes, batch: Sequence[Proposal]) -> tuple[list[bytes], list[bytes]]:
    """Return the keys of states, and for each proposal what shall be decided."""
    keys, items = set[bytes](), []
    for number, seen, decision in batch:
        group, own = layout.group(number), _bytes(number)
        keys.add(tag + KeyKind.STATES + group)
        if decision.startswith(own):
            keys.add(tag + KeyKind.MEMBERS + own)
        items.append(_PROPOSAL.pack(own, min(seen, 2**32 - 1)) + decision)
    return list(keys), items


def unpack_decided(_layout: StoreLayout, proposal: Proposal, _now_ms: int, answer: bytes | int) -> Decided:
    """Return the answer to a proposal."""
    if isinstance(answer, int):
        return Decided(proposal.decision, is_dead=bool(answer))
    if not answer:
        return Decided(None)
    state = unpack_state(answer)
    if state.decision is None:
        return Decided(None, tuple(_numbers(state.tail)))
    return Decided(state.decision, is_dead=state.is_dead)


def _pack_order(order: Order) -> bytes:
    observed = (order.observed_ms + TIME_SHIFT).to_bytes(6, "big")
    return _ORDER.pack(observed, order.partition + 1, _bytes(order.offset, 6), order.version)


def _numbers(packed: bytes) -> list[int]:
    return [_int(packed[at : at + NUMBER_BYTES]) for at in range(0, len(packed), NUMBER_BYTES)]


def _int(packed: bytes) -> int:
    return int.from_bytes(packed, "big")


def _bytes(number: int, size: int = NUMBER_BYTES) -> bytes:
    return number.to_bytes(size, "big")
