"""One slot of a store in memory: buckets, states, and the families that these founded.

Each method is one atomic call and repeats without harm. None looks at a text, or at another slot.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence

from nearstream.streams.store.buckets import Buckets
from nearstream.streams.store.families import Family, Growth
from nearstream.streams.store.history import NO_ORDER, History, State
from nearstream.streams.store.limits import IndexLimits
from nearstream.streams.store.messages import (
    Cover,
    Decided,
    Entry,
    FamilyView,
    Join,
    Keep,
    Leave,
    Mark,
    Measure,
    Note,
    Noted,
    Proposal,
    Query,
    Shortened,
    View,
)
from nearstream.streams.store.patching import PATCH
from nearstream.streams.store.registration import Labelling, Put, Registered, Removal


class Part:
    """One slot.

    Attributes:
        covers: By partition of `signatures`, the offset up to which everything is done.
        history: The states of the documents whose home it is.
        buckets: The buckets of its keys.
        families: The families that these states have founded, by founder, in the order of the last join.
    """

    def __init__(self, limits: IndexLimits, clock: Callable[[], int] | None = None) -> None:
        """Create an empty slot.

        Args:
            limits: Bounds of the index.
            clock: Returns milliseconds since 1970. None: the time is the largest `observed_ms` registered so far.
        """
        self.covers: dict[int, int] = {}
        self.buckets = Buckets(limits.bucket_cap)
        self.families: OrderedDict[int, Family] = OrderedDict()
        self._retention_ms = 1000 * limits.retention_seconds
        self._kept: OrderedDict[int, tuple[bytes, int]] = OrderedDict()  # records of founders, by the last time
        self.history = History(self._retention_ms, clock, self._forget)

    # The home of documents.

    def register(self, batch: Sequence[Put | Removal | Labelling]) -> list[Registered]:
        """Store states and removals in order, and say which state of each document is current."""
        return self.history.register(batch)

    # The slots of keys.

    def enter(self, batch: Sequence[Entry]) -> list[bytes]:
        """Add numbers to buckets, and return for each entry what its buckets held before."""
        return [self.buckets.enter(entry) for entry in batch]

    def peek(self, batch: Sequence[Entry]) -> list[bytes]:
        """Return for each entry what its buckets hold."""
        return [self.buckets.peek(entry) for entry in batch]

    def withdraw(self, batch: Sequence[Entry]) -> list[None]:
        """Take numbers out of buckets."""
        for entry in batch:
            self.buckets.withdraw(entry)
        return [None] * len(batch)

    # The home of a state that others ask about.

    def fetch(self, batch: Sequence[Query]) -> list[View | None]:
        """Return what is known of each state. None: nothing."""
        return [self._view(query) for query in batch]

    def _view(self, query: Query) -> View | None:
        state, family = self.history.states.get(query.number), self._known_family(query.number)
        seen = family.view(query.asker) if family and (state is None or state.is_followed) else None
        if state is None or state.order is None:
            return View(NO_ORDER, None, 0, False, True, True, None, seen) if seen else None
        record = state.record if query.record else None
        is_gone = state.record is None
        return View(state.order, state.decision, state.anchors, state.is_late, state.is_dead, is_gone, record, seen)

    def note(self, batch: Sequence[Note]) -> list[Noted]:
        """Tell undecided states that another one goes on without them."""
        answers = []
        for number, by in batch:
            state = self.history.states.setdefault(number, State(None))
            is_gone = state.order is not None and state.record is None
            if state.decision is None and not is_gone:
                state.notes.append(by)
            answers.append(Noted(state.decision, is_gone))
        return answers

    def decide(self, batch: Sequence[Proposal]) -> list[Decided]:
        """Record decisions about states that have none, unless there are notes that nobody has considered."""
        return [self._decide(proposal) for proposal in batch]

    def _decide(self, proposal: Proposal) -> Decided:
        state = self.history.states.get(proposal.number)
        if state is None or state.record is None:
            return Decided(None)
        if state.decision is None:
            if proposal.seen < len(state.notes):
                return Decided(None, tuple(state.notes))
            state.decision = proposal.decision
            family = self._known_family(proposal.number) if state.is_followed and not state.is_dead else None
            if family is not None and state.founder == proposal.number:
                family.return_of(proposal.number)  # a member made it known while this record was lost
        return Decided(state.decision, is_dead=state.is_dead)

    def shorten(self, batch: Sequence[Shortened]) -> list[None]:
        """Store shorter records in place of those that are there."""
        for number, record in batch:
            state = self.history.states.get(number)
            if state is not None and state.record is not None:
                state.record = record
        return [None] * len(batch)

    # The home of a founder.

    def keep(self, batch: Sequence[Keep]) -> list[bool]:
        """Keep the records of founders for a retention from now on, and say whether they were there.

        What is stored as the record of a founder becomes a patch too, which changes nothing in the one that is kept.
        """
        return [self._keep(founder) for founder, _ in batch]

    def _keep(self, founder: int) -> bool:
        (kept,) = self.kept([founder])
        state = self.history.states.get(founder)
        record = kept or (state.record if state else None)
        if record is None:
            return False
        if state is not None and state.record is not None:
            state.record = PATCH
        self._kept[founder] = record, self.history.now_ms
        self._kept.move_to_end(founder)
        while self._has_expired(next(iter(self._kept.values()))[1]):
            self._kept.popitem(last=False)
        return True

    def kept(self, batch: Sequence[int]) -> list[bytes | None]:
        """Return the records of founders that are kept."""
        found = [self._kept.get(founder) for founder in batch]
        return [None if one is None or self._has_expired(one[1]) else one[0] for one in found]

    def _has_expired(self, since_ms: int) -> bool:
        return 0 < self._retention_ms < self.history.now_ms - since_ms

    def join(self, batch: Sequence[Join]) -> list[FamilyView]:
        """Count members once, and say who represents their families."""
        return [self._join(join) for join in batch]

    def _join(self, join: Join) -> FamilyView:
        self.history.advance(join.now_ms)
        answer = self._family(join.founder).join(join, self.history.now_ms)
        if self.families[join.founder].last_ms == self.history.now_ms:
            self.families.move_to_end(join.founder)
        while self._is_over(next(iter(self.families.values()))):
            self.families.popitem(last=False)
        return answer

    def _family(self, number: int) -> Family:
        """Return a family, which is made known by the first who joins or leaves it."""
        family = self._known_family(number)
        if family is None:
            founder = self.history.states.setdefault(number, State(None))
            founder.is_followed = True
            lives = not founder.is_dead and founder.founder == number
            family = self.families[number] = Family(number, self.history.now_ms, lives=lives)
            self.families.move_to_end(number)
        return family

    def _known_family(self, number: int) -> Family | None:
        family = self.families.get(number)
        return None if family is None or self._is_over(family) else family

    def _forget(self, number: int, founder: int) -> None:
        self.buckets.forget(number)
        if founder in self.families:
            self.families[founder].forget(number)

    def _is_over(self, family: Family) -> bool:
        """Return whether nobody has joined a family for one and a half retentions."""
        return 0 < self._retention_ms * 3 // 2 < self.history.now_ms - family.last_ms

    def leave(self, batch: Sequence[Leave]) -> list[int]:
        """Note that members have died, and return who represents their families now."""
        return [self._family(founder).leave(number) for founder, number in batch]

    def mark(self, batch: Sequence[Mark]) -> list[None]:
        """Remember labelled documents with their families."""
        for founder, document, number, label in batch:
            is_alone = number == founder and label
            family = self._family(founder) if is_alone else self._known_family(founder)
            if family is not None:
                family.mark(document, number, label)
        return [None] * len(batch)

    def growth(self, batch: Sequence[Measure]) -> list[Growth | None]:
        """Return how families grow. None: it is not known."""
        families = [(self._known_family(founder), now_ms or self.history.time_ms()) for founder, now_ms in batch]
        return [family.growth(now_ms) if family else None for family, now_ms in families]

    def cover(self, batch: Sequence[Cover]) -> list[None]:
        """Note that everything up to an offset is done."""
        for partition, offset, now_ms in batch:
            self.history.advance(now_ms)
            self.covers[partition] = max(self.covers.get(partition, -1), offset)
        return [None] * len(batch)
