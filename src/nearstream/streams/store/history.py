"""What the home of documents knows of their states, in memory: which of them is current, and what was decided."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from nearstream.streams.store.limits import REMOVAL_MS, WALK
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
from nearstream.streams.store.tables import Ages, Table, ages_in_memory

NO_ORDER = Order(0, -1, 0, b"")
_RECORDED, _LEADING, _REMOVED = "recorded", "leading", "removed"  # kinds of ages


class State(msgspec.Struct, array_like=True):
    """What a slot knows of a state."""

    order: Order | None  # Its place among the states of its document. None: only notes have arrived.
    document: bytes = b""  # hash of its document key
    born_ms: int = 0  # when it was registered
    record: bytes | None = None  # Its signature, packed. None if it was removed or has expired.
    former: int = 0  # the state of its document that was current when it came, 0 if there was none
    before: int = 0  # the state before it in the history of its document, which a late state may change
    anchors: int = 0  # count of its anchor keys
    is_late: bool = False  # it was observed before the state that was current when it came
    is_superseded: bool = False  # another state of its document is current
    is_followed: bool = False  # others have joined the family that it founded
    decision: bytes | None = None  # what was decided about it
    notes: list[int] = []  # who goes on without it
    repeats: int = 0  # the state that its record repeated, so that this is none
    left: tuple[tuple[int, int], ...] | None = None  # of a removal: whom it removed, with their founders
    was_known: bool = False  # of a removal: the slot had the document

    @property
    def is_dead(self) -> bool:
        """Whether it is no current state."""
        return self.is_late or self.is_superseded or self.record is None

    @property
    def founder(self) -> int:
        """The founder of its family, 0 if nothing was decided."""
        return int.from_bytes(self.decision[:NUMBER_BYTES], "big") if self.decision else 0


@dataclass(frozen=True)
class Documents:
    """The tables of the home of documents. By default they are in memory."""

    states: Table[int, State] = field(default_factory=dict)  # by number
    current: Table[bytes, int] = field(default_factory=dict)  # the number of the current state by document
    # What removed a document, and the time of its registration.
    removals: Table[bytes, tuple[Sent, int]] = field(default_factory=dict)
    # The number of the record of a label, and the label behind its time.
    labels: Table[bytes, tuple[int, bytes]] = field(default_factory=dict)
    ages: Ages = field(default_factory=ages_in_memory)


class History:
    """The states of all documents whose home a slot is.

    Attributes:
        states: All states by number.
        current: The number of the current state by document.
        removals: What removed a document, with the time of its registration.
        now_ms: The time, in milliseconds since 1970.
    """

    def __init__(
        self,
        tables: Documents,
        retention_ms: int,
        clock: Callable[[], int] | None,
        forgets: Callable[[int, int], None],
    ) -> None:
        """Know what the tables hold.

        With a retention of 0 documents are found for ever. Without a clock the time is the largest `observed_ms`
        registered so far. `forgets` is called with each number that nothing is left of, and the founder of its family.
        """
        self.states, self.current, self.removals = tables.states, tables.current, tables.removals
        self.now_ms = 0
        self._retention_ms, self._clock = retention_ms, clock
        self._forgets = forgets
        self._labels, self._ages = tables.labels, tables.ages

    def register(self, one: Put | Removal | Labelling) -> Registered:
        """Store a state, a removal or a label, and say which state of the document is current."""
        self.advance(one.now_ms, one.order.observed_ms if isinstance(one, Put) else 0)
        if isinstance(one, Put):
            return self._put(one)
        return self._remove(one) if isinstance(one, Removal) else self._label(one)

    def _put(self, put: Put) -> Registered:
        state = self.states.get(put.number)
        if state is not None and state.order is not None:
            return self._known(put.number, state, put.document)
        current = self._current(put.document)
        removal = self._removal(put.document, put.sent)
        if removal is not None:
            return Registered(Status.OVERTAKEN, was_known=current > 0, removed_by=removal)
        behind, before = self._place(put, current)
        same = self.states[before] if before else None
        is_again = same is not None and same.order is not None and same.order.version == put.order.version
        if same is not None and is_again and put.order.partition >= 0 and same.order == put.order:
            return self._known(before, same, put.document)  # a signer that was cut off signed its record again
        is_aging = same is not None and 2 * (self.now_ms - same.born_ms) >= self._retention_ms > 0
        if is_again and not (is_aging and before == current):
            state = State(put.order, put.document, self.now_ms, repeats=before)
            state.is_followed = self._stub(put.number).is_followed
            self._add(put.number, state)
            return self._unchanged(before)
        self._store(put, current, behind, before)
        if is_again:  # the document was seen again late in its life, so it gets a new state
            return self._known(put.number, self.states[put.number], put.document)._replace(status=Status.UNCHANGED)
        return self._known(put.number, self.states[put.number], put.document)._replace(status=Status.NEW)

    def _stub(self, number: int) -> State:
        """Return what others have said about a state before it is registered."""
        return self.states.get(number) or State(None)

    def state(self, number: int) -> State:
        """Return a state. One that only others have named yet is made."""
        state = self.states.get(number)
        if state is None:
            state = self.states[number] = State(None)
        return state

    def _add(self, number: int, state: State) -> None:
        self.states[number] = state
        self._ages.add(_RECORDED, state.born_ms, number)

    def _place(self, put: Put, current: int) -> tuple[int, int]:
        """Return the last state that was observed after this one, or 0, and the one that was current then, or 0."""
        behind, at = 0, current
        for _ in range(WALK):
            state = self.states.get(at)
            if state is None or state.record is None or state.order is None:
                return behind, 0
            if put.order >= state.order:
                return behind, at
            behind, at = at, state.before
        return behind, 0

    def _store(self, put: Put, current: int, behind: int, before: int) -> None:
        stub = self._stub(put.number)
        state = State(put.order, put.document, self.now_ms, put.record, current, before, put.anchors, behind > 0)
        state.notes, state.is_followed = stub.notes, stub.is_followed
        self._add(put.number, state)
        if behind:
            self.states[behind].before = put.number
            return
        self.current[put.document] = put.number
        if former := self.states.get(current):
            former.is_superseded = True

    def _known(self, number: int, state: State, document: bytes) -> Registered:
        if state.repeats:
            return self._unchanged(state.repeats)
        if state.record is None:
            removal, _ = self.removals.get(document) or (Sent(), 0)
            left = ((number, state.founder),) if state.founder and not state.is_late else ()
            has_later = document in self.current
            return Registered(Status.OVERTAKEN, number, left=left, was_known=has_later, removed_by=removal)
        return Registered(
            Status.KNOWN,
            number,
            state.decision,
            state.former if state.former in self.states else 0,
            state.is_late,
            state.is_dead,
            state.is_followed,
            label=(self._labels.get(document) or (0, b""))[1],
        )

    def _unchanged(self, number: int) -> Registered:
        state = self.states.get(number)
        return Registered(Status.UNCHANGED, number, state.decision if state else None)

    def _remove(self, removal: Removal) -> Registered:
        known = self.states.get(removal.number)
        if known is not None and known.left is not None:
            return Registered(Status.REMOVED, removal.number, left=known.left, was_known=known.was_known)
        if self._removal(removal.document, removal.sent) is not None:
            return Registered(Status.REMOVED, removal.number, is_repeated=True)
        if removal.partition >= 0:
            if removal.document not in self.removals:
                self._ages.add(_REMOVED, self.now_ms, removal.document)
            self.removals[removal.document] = removal.sent, self.now_ms
        current, left = self._current(removal.document), []
        if 0 < current < removal.number:
            del self.current[removal.document]
        at, was_known = current, False
        while state := self.states.get(at):
            if at < removal.number and state.record is not None:
                was_known = True
                state.record = None
                left += [(at, state.founder)] if state.founder and not state.is_late else []
            at = state.before
        state = State(NO_ORDER, removal.document, self.now_ms, left=tuple(left), was_known=was_known)
        self._add(removal.number, state)
        return Registered(Status.REMOVED, removal.number, left=tuple(left), was_known=was_known)

    def _removal(self, document: bytes, sent: Sent) -> Sent | None:
        """Return a removal of this document that does not come before a record."""
        removal, removed_ms = self.removals.get(document) or (Sent(), 0)
        return removal if sent.is_before(removal) and self.now_ms - removed_ms <= REMOVAL_MS else None

    def _label(self, labelling: Labelling) -> Registered:
        by, known = self._labels.get(labelling.document) or (-1, b"")
        if by <= labelling.number:
            self._labels[labelling.document] = labelling.number, self._timed(labelling, known)
        number = self._current(labelling.document)
        state = self.states.get(number)
        decision = state.decision if state else None
        return Registered(Status.LABELLED, number, decision, label=self._labels[labelling.document][1])

    def _timed(self, labelling: Labelling, known: bytes) -> bytes:
        """Return a label behind its time. Given again it is no younger, and it is never younger than its arrival."""
        if not labelling.label:
            return b""
        given_ms = min(labelling.given_ms, self.now_ms)
        if known[TIME_BYTES:] == labelling.label:
            given_ms = min(given_ms, int.from_bytes(known[:TIME_BYTES], "big"))
        return given_ms.to_bytes(TIME_BYTES, "big") + labelling.label

    def advance(self, now_ms: int, observed_ms: int = 0) -> None:
        """Set the time, and let expire what is too old. A time of 0 means the clock, or else the observation.

        By the times of observation, documents expire between batches, so that each is decided about that came in one.
        """
        is_given = now_ms > 0 or self._clock is not None
        now_ms = now_ms or (self._clock() if self._clock else observed_ms)
        self.now_ms = max(self.now_ms, now_ms)
        if is_given:
            self.expire()

    def expire(self) -> bool:
        """Forget some of what is too old, and return whether anything was."""
        done = 0
        for document in self.aged(_REMOVED, REMOVAL_MS, self._removed_ms):
            del self.removals[document]
            done += 1
        for number in self.aged(_RECORDED, self._retention_ms, self._born):
            self.drop_record(number)
            self._ages.add(_LEADING, self._born(number), number)
            done += 1
        for number in self.aged(_LEADING, self._retention_ms * 3 // 2, self._born):
            founder = self.states[number].founder
            del self.states[number]
            self._forgets(number, founder)
            done += 1
        return done > 0

    def aged(self, kind: str, lasts_ms: int, since: Callable[[Any], int]) -> Iterator[Any]:
        """Yield some keys of a kind that are too old. They last so long, 0 for ever."""
        for key in self._ages.take(kind, self.now_ms - lasts_ms) if lasts_ms else ():
            if since(key) + lasts_ms < self.now_ms:
                yield key
            else:  # stored again meanwhile
                self._ages.add(kind, since(key), key)

    def _removed_ms(self, document: bytes) -> int:
        return self.removals[document][1]

    def _current(self, document: bytes) -> int:
        return self.current.get(document) or 0

    def time_ms(self) -> int:
        """Return the time by the clock, or without one that of the newest observation."""
        return self._clock() if self._clock else self.now_ms

    def _born(self, number: int) -> int:
        return self.states[number].born_ms

    def drop_record(self, number: int) -> None:
        """Let a state expire, so that only its decision is left."""
        state = self.states[number]
        state.record = None
        if self.current.get(state.document) == number:
            del self.current[state.document]
