"""The protocol with one rule left out each, to show that the laws need it."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from nearstream.streams.matching.case import Case
from nearstream.streams.matching.judging import Judge
from nearstream.streams.matching.known import Known
from nearstream.streams.matching.lane import Lane, Patience
from nearstream.streams.matching.meeting import Meeting
from nearstream.streams.store.families import Family
from nearstream.streams.store.messages import Cover, Decided, Entry, Join, Joined, Proposal
from nearstream.streams.store.part import Part
from nearstream.streams.store.store import Call, Store
from tests.simulation.adversary import Plan

Noting = Sequence[tuple[Case, tuple[int, ...]]]


class NobodyNotes(Lane):
    """Nobody is told that another one goes on without it."""

    async def _note(self, noting: Noting, known: Known) -> None:
        for case, others in noting:
            case.noted |= {number: case.noted_by[number] for number in others}


class HintsAreTrusted(Lane):
    """A hint is believed even if the text is no copy of it."""

    @staticmethod
    def _may_leave_out(case: Case, founder: int, known: Known) -> bool:
        return founder not in (0, case.number)


class CopiesStayOut(Lane):
    """Whom a join makes the representative does not enter its buckets."""

    async def _become_full(self, cases: Sequence[Case], known: Known) -> None:
        return


class CopiesLeaveAll(Lane):
    """A copy withdraws from all buckets of words, whether its representative is there or not."""

    async def _withdraw(self, cases: Sequence[Case], known: Known) -> None:
        await self._store.withdraw([Entry(case.number, 0, case.words) for case in cases if case.joined])


class _ReadsFirst(Meeting):
    async def look(self, cases: Sequence[Case], keys_of: Callable[[Case], bytes]) -> None:
        found = await self._store.peek([Entry(case.number, 0, keys_of(case)) for case in cases])
        before = [list(case.found) for case in cases]
        await super().look(cases, keys_of)
        for case, held, new in zip(cases, before, found, strict=True):
            case.found = held + new


class BucketsAreReadFirst(Lane):
    """Buckets are read by a call of their own before they are entered."""

    def __init__(self, store: Store, judge: Judge, patience: Patience, pause: Callable[[], Awaitable[None]]) -> None:
        """Take what the lane works with."""
        super().__init__(store, judge, patience, pause)
        self._meeting = _ReadsFirst(store, judge, pause)


class _AnySlotConfirms(Store):
    async def confirm(self, numbers: Iterable[int]) -> None:
        await self._transport.all([Call(slot, "wait", [None]) for slot in range(self.shape.slots)])


class AnySlotConfirms(Lane):
    """A slot confirms what it has, though it may have lost what the lane wrote before."""

    def __init__(self, store: Store, judge: Judge, patience: Patience, pause: Callable[[], Awaitable[None]]) -> None:
        """Take what the lane works with."""
        other = _AnySlotConfirms(store._transport, store.shape, store.limits, confirms=True)
        super().__init__(other, judge, patience, pause)


class NotesAreNotCounted(Part):
    """A decision is taken whatever was noted."""

    def _decide(self, proposal: Proposal) -> Decided:
        return super()._decide(proposal._replace(seen=1 << 30))


class DecisionsChange(Part):
    """A decision is formed anew at each delivery."""

    def register(self, batch: Sequence[object]) -> list[object]:  # type: ignore[override]  # any batch
        """Forget decisions."""
        answers = super().register(batch)  # type: ignore[arg-type]
        for answer in answers:
            if answer.decision is not None and answer.number in self.history.states:
                self.history.states[answer.number].decision = None
        return [answer._replace(decision=None) for answer in answers]


class _CountsAlways(Family):
    def join(self, join: Join, now_ms: int) -> Joined:
        self.ordinals.pop(join.number, None)
        return super().join(join, now_ms)


class JoinsCountTwice(Part):
    """To join again counts again."""

    def _join(self, join: Join) -> Joined:
        if join.founder in self.families:
            self.families[join.founder].__class__ = _CountsAlways
        return super()._join(join)


class LeavingLeavesNoMark(Part):
    """Who leaves before it joins is not remembered."""

    def leave(self, batch: Sequence[object]) -> list[int]:  # type: ignore[override]  # any batch
        """Forget who has not joined."""
        known = {founder: set(family.ordinals) for founder, family in self.families.items()}
        answers = super().leave(batch)  # type: ignore[arg-type]
        for founder, family in self.families.items():
            family.left &= known.get(founder, set())
        return answers


class CoversNothing(Part):
    """A slot forgets what it was told to be done, and says that all is."""

    def cover(self, batch: Sequence[Cover]) -> list[None]:
        """Claim everything."""
        self.covers |= {partition: 1 << 30 for partition, *_ in batch}
        return [None] * len(batch)


FIRST = 6_000_001  # the seed with which tests begin


@dataclass(frozen=True)
class Variant:
    """A plan without a rule, and the schedules that show that it is needed.

    Attributes:
        plan: The plan.
        schedules: Their count.
        first: The seed of the first one.
    """

    plan: Plan
    schedules: int
    first: int = FIRST


VARIANTS: dict[str, Variant] = {
    "nobody notes": Variant(Plan(lane=NobodyNotes), 300),
    "hints are trusted": Variant(Plan(lane=HintsAreTrusted), 1_000),
    "copies stay out": Variant(Plan(lane=CopiesStayOut), 1, 10_372),
    "copies leave all": Variant(Plan(lane=CopiesLeaveAll), 100),
    "buckets are read first": Variant(Plan(lane=BucketsAreReadFirst), 100),
    "notes are not counted": Variant(Plan(part=NotesAreNotCounted), 1_000),
    "decisions change": Variant(Plan(part=DecisionsChange), 300),
    "joins count twice": Variant(Plan(part=JoinsCountTwice), 300),
    "leaving leaves no mark": Variant(Plan(part=LeavingLeavesNoMark), 20, 530),
    "covers nothing": Variant(Plan(part=CoversNothing, tails=1, confirms=True), 1_000),
    "nobody waits for a replica": Variant(Plan(tails=1), 100),
    "any slot confirms": Variant(Plan(lane=AnySlotConfirms, tails=1, confirms=True), 1, 500_404),
}
