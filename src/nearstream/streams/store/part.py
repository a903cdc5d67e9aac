"""One slot of a store in memory: buckets, states, and the families that these founded.

A call is atomic and repeats without harm. It answers its items in order, each by the method of its name. None of these
looks at a text, or at another slot.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from nearstream.streams.store.buckets import Buckets, Held, HeldInMemory
from nearstream.streams.store.families import Facts, Family, Growth
from nearstream.streams.store.history import NO_ORDER, Documents, History
from nearstream.streams.store.limits import IndexLimits
from nearstream.streams.store.messages import (
    Cover,
    Decided,
    Entry,
    FamilyView,
    Join,
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
from nearstream.streams.store.record import PATCH
from nearstream.streams.store.registration import Labelling, Put, Registered, Removal
from nearstream.streams.store.tables import Members, Table, members_in_memory

_FAMILY, _KEPT = "family", "kept"  # kinds of ages


@dataclass(frozen=True)
class Tables:
    """The tables of a slot. By default they are in memory."""

    documents: Documents = field(default_factory=Documents)
    covers: Table[int, int] = field(default_factory=dict)  # the offset up to which all is done, by partition
    held: Held = field(default_factory=HeldInMemory)  # what buckets hold
    keys: Table[int, bytes] = field(default_factory=dict)  # the keys of all entries of a number
    families: Table[int, Family] = field(default_factory=dict)  # by founder
    members: Callable[[int], Members] = members_in_memory  # of a family, given its founder
    # The record of a founder, and when it was last needed.
    kept: Table[int, tuple[bytes, int]] = field(default_factory=dict)


class Part:
    """One slot.

    Attributes:
        covers: By partition of `signatures`, the offset up to which everything is done.
        history: The states of the documents whose home it is.
        buckets: The buckets of its keys.
        families: The families that these states have founded, by founder.
    """

    def __init__(
        self, limits: IndexLimits, clock: Callable[[], int] | None = None, tables: Tables | None = None
    ) -> None:
        tables = tables or Tables()
        self.covers, self.families = tables.covers, tables.families
        self.buckets = Buckets(limits.bucket_cap, tables.held, tables.keys)
        self._retention_ms = 1000 * limits.retention_seconds
        self._kept, self._members, self._ages = tables.kept, tables.members, tables.documents.ages
        self.history = History(tables.documents, self._retention_ms, clock, self._forget)

    def call(self, name: str, items: Sequence[Any]) -> list[Any]:
        """Return the answers of the method of this name to items, in order."""
        if name == "register":
            self.expire()
        method = getattr(self, name)
        return [method(item) for item in items]

    def expire(self) -> bool:
        """Forget some of what is too old, and return whether anything was."""
        ended = list(self.history.aged(_FAMILY, self._retention_ms * 3 // 2, self._joined_ms))
        for founder in ended:
            self.families[founder].members.clear()
            del self.families[founder]
        unused = list(self.history.aged(_KEPT, self._retention_ms, self._kept_ms))
        for founder in unused:
            del self._kept[founder]
        return self.history.expire() or bool(ended or unused)

    def _joined_ms(self, founder: int) -> int:
        return self.families[founder].facts.last_ms

    def _kept_ms(self, founder: int) -> int:
        return self._kept[founder][1]

    # The home of documents.

    def register(self, one: Put | Removal | Labelling) -> Registered:
        """Store a state, a removal or a label, and say which state of the document is current."""
        return self.history.register(one)

    # The slots of keys.

    def enter(self, entry: Entry) -> bytes:
        """Add a number to buckets, and return what these held before."""
        return self.buckets.enter(entry)

    def peek(self, entry: Entry) -> bytes:
        """Return what buckets hold."""
        return self.buckets.peek(entry)

    def withdraw(self, entry: Entry) -> None:
        """Take a number out of buckets."""
        self.buckets.withdraw(entry)

    # The home of a state that others ask about.

    def fetch(self, query: Query) -> View | None:
        """Return what is known of a state, if anything is."""
        state, family = self.history.states.get(query.number), self._known_family(query.number)
        seen = family.view(query.asker) if family and (state is None or state.is_followed) else None
        if state is None or state.order is None:
            return View(NO_ORDER, None, 0, False, True, True, None, seen) if seen else None
        record = state.record if query.record else None
        is_gone = state.record is None
        return View(state.order, state.decision, state.anchors, state.is_late, state.is_dead, is_gone, record, seen)

    def note(self, note: Note) -> Noted:
        """Tell an undecided state that another one goes on without it."""
        state = self.history.state(note.number)
        is_gone = state.order is not None and state.record is None
        if state.decision is None and not is_gone:
            state.notes.append(note.by)
        return Noted(state.decision, is_gone)

    def decide(self, proposal: Proposal) -> Decided:
        """Record the decision about a state that has none, unless there are notes that nobody has considered."""
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

    def shorten(self, one: Shortened) -> None:
        """Store a shorter record in place of the one that is there."""
        state = self.history.states.get(one.number)
        if state is not None and state.record is not None:
            state.record = one.record

    # The home of a founder.

    def _keep(self, founder: int) -> bool:
        """Keep the record of a founder for a retention from now on, and say whether it was there.

        What is stored as the record of a founder becomes a patch too, which changes nothing in the one that is kept.
        """
        record = self.kept(founder)
        if record is None:
            state = self.history.states.get(founder)
            if state is None or state.record is None:
                return False
            record, state.record = state.record, PATCH
        if founder not in self._kept:
            self._ages.add(_KEPT, self.history.now_ms, founder)
        self._kept[founder] = record, self.history.now_ms
        return True

    def kept(self, founder: int) -> bytes | None:
        """Return the record of a founder, if it is kept."""
        record, since_ms = self._kept.get(founder) or (None, 0)
        return None if self._has_expired(since_ms) else record

    def _has_expired(self, since_ms: int) -> bool:
        return 0 < self._retention_ms < self.history.now_ms - since_ms

    def join(self, join: Join) -> FamilyView:
        """Count a member once, and say who represents its family."""
        self.history.advance(join.now_ms)
        answer = self._family(join.founder).join(join, self.history.now_ms)
        return answer._replace(is_kept=self._keep(join.founder)) if join.keeps else answer

    def _family(self, number: int) -> Family:
        family = self._known_family(number)
        if family is None:
            founder, now_ms = self.history.state(number), self.history.now_ms
            founder.is_followed = True
            lives = not founder.is_dead and founder.founder == number
            if number not in self.families:
                self._ages.add(_FAMILY, now_ms, number)
            members = self._members(number)
            members.clear()
            members.put(number, 1, has_left=not lives)
            family = Family(number, Facts(number if lives else 0, now_ms), members)
            self.families[number] = family
        return family

    def _known_family(self, number: int) -> Family | None:
        family = self.families.get(number)
        return None if family is None or self._is_over(family) else family

    def _forget(self, number: int, founder: int) -> None:
        self.buckets.forget(number)
        if family := self.families.get(founder):
            family.forget(number)

    def _is_over(self, family: Family) -> bool:
        """Return whether nobody has joined a family for one and a half retentions."""
        return 0 < self._retention_ms * 3 // 2 < self.history.now_ms - family.facts.last_ms

    def leave(self, leave: Leave) -> int:
        """Note that a member has died, and return who represents its family now."""
        return self._family(leave.founder).leave(leave.number)

    def mark(self, mark: Mark) -> None:
        """Remember a labelled document with its family."""
        founder, document, number, label = mark
        is_alone = number == founder and label
        family = self._family(founder) if is_alone else self._known_family(founder)
        if family is not None:
            family.mark(document, number, label)

    def growth(self, measure: Measure) -> Growth | None:
        """Return how a family grows, if it is known."""
        family = self._known_family(measure.founder)
        return family.growth(measure.now_ms or self.history.time_ms()) if family else None

    def cover(self, cover: Cover) -> None:
        """Note that everything up to an offset is done."""
        self.history.advance(cover.now_ms)
        known = self.covers.get(cover.partition)
        self.covers[cover.partition] = cover.offset if known is None else max(known, cover.offset)
