"""What the home of documents knows of their states, in memory: which of them is current, and what was decided."""

from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

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

NO_ORDER = Order(0, -1, 0, b"")


@dataclass(slots=True)
class State:
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
    notes: list[int] = field(default_factory=list)  # who goes on without it
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


class History:
    """The states of all documents whose home a slot is.

    Attributes:
        states: All states by number.
        current: The number of the current state by document.
        now_ms: The time, in milliseconds since 1970.
    """

    def __init__(
        self,
        retention_ms: int,
        clock: Callable[[], int] | None,
        forgets: Callable[[int, int], None],
    ) -> None:
        """Know no state.

        With a retention of 0 documents are found for ever. Without a clock the time is the largest `observed_ms`
        registered so far. `forgets` is called with each number that nothing is left of, and the founder of its family.
        """
        self.states: dict[int, State] = {}
        self.current: dict[bytes, int] = {}
        self.now_ms = 0
        self._retention_ms, self._clock = retention_ms, clock
        self._forgets = forgets
        self._recorded: deque[int] = deque()  # numbers with a record, in the order of registration
        self._leading: deque[int] = deque()  # numbers that lead to families, in the order of registration
        self._removals: OrderedDict[bytes, tuple[Sent, int]] = OrderedDict()  # with the times of their registration
        self._labels: dict[bytes, tuple[int, bytes]] = {}  # number of the record, label behind its time

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
        current = self.current.get(put.document, 0)
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

    def _add(self, number: int, state: State) -> None:
        self.states[number] = state
        self._recorded.append(number)
        self._leading.append(number)

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
        if current in self.states:
            self.states[current].is_superseded = True

    def _known(self, number: int, state: State, document: bytes) -> Registered:
        if state.repeats:
            return self._unchanged(state.repeats)
        if state.record is None:
            removal, _ = self._removals.get(document, (Sent(), 0))
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
            label=self._labels.get(document, (0, b""))[1],
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
            self._removals.pop(removal.document, None)
            self._removals[removal.document] = removal.sent, self.now_ms
        current, left = self.current.get(removal.document, 0), []
        if current < removal.number:
            self.current.pop(removal.document, None)
        at, was_known = current, False
        while at in self.states:
            state = self.states[at]
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
        removal, removed_ms = self._removals.get(document, (Sent(), 0))
        return removal if sent.is_before(removal) and self.now_ms - removed_ms <= REMOVAL_MS else None

    def _label(self, labelling: Labelling) -> Registered:
        by, known = self._labels.get(labelling.document, (-1, b""))
        if by <= labelling.number:
            self._labels[labelling.document] = labelling.number, self._timed(labelling, known)
        number = self.current.get(labelling.document, 0)
        decision = self.states[number].decision if number in self.states else None
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

    def expire(self) -> None:
        """Forget removals, records, and after half as long again what leads to families."""
        while self._removals and next(iter(self._removals.values()))[1] + REMOVAL_MS < self.now_ms:
            self._removals.popitem(last=False)
        if not self._retention_ms:
            return
        while self._recorded and self._born(self._recorded[0]) + self._retention_ms < self.now_ms:
            self.drop_record(self._recorded.popleft())
        while self._leading and self._born(self._leading[0]) + self._retention_ms * 3 // 2 < self.now_ms:
            number = self._leading.popleft()
            self._forgets(number, self.states.pop(number).founder)

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
