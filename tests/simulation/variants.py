"""The protocol with one rule left out each, to show that the laws need it."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from nearstream.streams.matching.protocol.case import Case
from nearstream.streams.matching.protocol.choosing import Choice, representative_of
from nearstream.streams.matching.protocol.known import Known
from nearstream.streams.matching.protocol.lane import Lane, Patience
from nearstream.streams.matching.protocol.meeting import Judge, Meeting
from nearstream.streams.matching.protocol.tally import keys_that_hold
from nearstream.streams.store.families import Family
from nearstream.streams.store.messages import ANCHOR, BAND, Cover, Decided, Entry, FamilyView, Join, Leave, Proposal
from nearstream.streams.store.part import Part
from nearstream.streams.store.registration import Labelling, Put, Registered, Removal
from nearstream.streams.store.store import Call, Store
from tests.simulation.adversary import Plan
from tests.simulation.texts import Oracle, World, named, text_of

Noting = Sequence[tuple[Case, tuple[int, ...]]]


class NobodyNotes(Lane):
    """Nobody is told that another one goes on without it."""

    async def _note(self, noting: Noting, known: Known) -> None:
        for case, others in noting:
            case.noted |= {number: case.noted_by[number] for number in others}


class OneNoteIsEnough(Lane):
    """A document notes another one once, whatever that one notes afterwards."""

    async def _note(self, noting: Noting, known: Known) -> None:
        await super()._note(noting, known)
        for case, others in noting:
            case.noted |= dict.fromkeys(others, 1 << 30)


class HintsAreTrusted(Lane):
    """A hint is believed even if the text is no copy of it."""

    @staticmethod
    def _may_leave_out(case: Case, founder: int, known: Known) -> bool:
        return founder not in (0, case.number)


class DeadOnesAreReliedOn(Lane):
    """A document relies on states of its family in buckets that it leaves out, whether they live or not."""

    @staticmethod
    def _may_leave_out(case: Case, founder: int, known: Known) -> bool:
        return founder not in (0, case.number) and all(known.family_of(number) == founder for number in case.relied)


class FoundersStayOut(Lane):
    """A document founds a family although it has left buckets out."""

    @staticmethod
    def _may_leave_out(case: Case, founder: int, known: Known) -> bool:
        return founder in (0, case.number) or Lane._may_leave_out(case, founder, known)


class CopiesStayOut(Lane):
    """Whom a join makes the representative does not enter its buckets."""

    async def _become_full(self, cases: Sequence[Case], known: Known) -> None:
        return


class CopiesLeaveAll(Lane):
    """A copy withdraws from all buckets of words, whether its representative is there or not."""

    def _entries_to_leave(self, cases: Sequence[Case], known: Known) -> list[Entry]:
        return [Entry(case.number, 0, case.words) for case in cases if case.joined]


class CopiesCrowd(Lane):
    """A copy stays in buckets that lack its representative, however many of its family are there."""

    @staticmethod
    def _keys_of_family(case: Case, representative: int, before: Sequence[int]) -> bytes:
        return keys_that_hold(case.found, representative, BAND + ANCHOR)


class TwinsAreFree(Lane):
    """Who can join a family does not wait for an undecided equal text."""

    @staticmethod
    def _choose(case: Case, known: Known) -> Choice:
        founder, waits_for = Lane._choose(case, known)
        return founder, () if founder else waits_for


class JoinsComeFirst(Lane):
    """A document is counted in its family before that is decided."""

    async def _propose(self, ready: Sequence[tuple[Case, int]], waiting: dict[int, Case], known: Known) -> None:
        for case, founder in ready:
            if founder and not case.left:
                case.decision = self._judge.decision(case, founder, known)
                await self._store.join([self._judge.join(case, founder, known)])
                case.decision = None
        await super()._propose(ready, waiting, known)


class FormerStatesStay(Lane):
    """A superseded state does not leave its family."""

    @staticmethod
    def _leaves_of_former(cases: Sequence[Case], known: Known) -> list[Leave]:
        return []


class RemovedStatesStay(Lane):
    """A removed state does not leave its family."""

    async def register(self, batch: Sequence[Put | Removal | Labelling]) -> list[Registered]:
        return await self._store.register(batch)


class _NobodyHandsOn(Meeting):
    async def _hand_on(self, founders: set[int], known: Known) -> None:
        await self._ask({representative_of(each, known.families) for each in founders} - {0}, known)


class DeadOnesRepresent(Lane):
    """Nobody takes the place of a representative that has died."""

    meeting = _NobodyHandsOn


class _DecidedOnesRest(Meeting):
    async def look(self, cases: Sequence[Case], keys_of: Callable[[Case], bytes]) -> None:
        await super().look([case for case in cases if case.decision is None], keys_of)


class DecidedOnesDoNotEnter(Lane):
    """A decided document that is delivered again does not enter its buckets again."""

    meeting = _DecidedOnesRest


class _NobodyIsCounted(Meeting):
    async def _follow(self, cases: Sequence[Case], known: Known, met: Mapping[Case, set[int]]) -> None:
        await super()._follow(cases, known, met)
        for case in cases:
            case.counted_in.clear()


class CountedOnesAreForgotten(Lane):
    """A document whose decision was lost does not look for a family that counts it already."""

    meeting = _NobodyIsCounted


class _EntersFirst(Meeting):
    early: dict[int, list[tuple[bytes, bytes]]]

    async def look(self, cases: Sequence[Case], keys_of: Callable[[Case], bytes]) -> None:
        for case in cases:
            case.found = case.found or self.early.get(case.number, [])
        await super().look([case for case in cases if case.number not in self.early], keys_of)


class EntriesComeFirst(Lane):
    """A document enters its buckets before its record is stored."""

    meeting = _EntersFirst

    async def register(self, batch: Sequence[Put | Removal | Labelling]) -> list[Registered]:
        texts = {one.number: text_of(one.record) for one in batch if isinstance(one, Put)}
        entries = [Entry(number, 0, named(text) + World().words(text)) for number, text in texts.items()]
        self._meeting.early = dict(zip(texts, await self._store.enter(entries), strict=True))
        return await super().register(batch)


class _ReadsFirst(Meeting):
    async def look(self, cases: Sequence[Case], keys_of: Callable[[Case], bytes]) -> None:
        found = await self._store.peek([Entry(case.number, 0, keys_of(case)) for case in cases])
        before = [list(case.found) for case in cases]
        await super().look(cases, keys_of)
        for case, held, new in zip(cases, before, found, strict=True):
            case.found = held + new


class BucketsAreReadFirst(Lane):
    """Buckets are read by a call of their own before they are entered."""

    meeting = _ReadsFirst


class _AnySlotConfirms(Store):
    async def confirm(self, numbers: Iterable[int]) -> None:
        await self._transport.all([Call(slot, "wait", [None]) for slot in range(self.shape.slots)])


class AnySlotConfirms(Lane):
    """A slot confirms what it has, though it may have lost what the lane wrote before."""

    def __init__(self, store: Store, judge: Judge, patience: Patience, pause: Callable[[], Awaitable[None]]) -> None:
        """Take what the lane works with."""
        other = _AnySlotConfirms(store._transport, store.shape, store.limits, confirms=True)
        super().__init__(other, judge, patience, pause)


class OrderChanges(Oracle):
    """Whoever was decided before comes before."""

    def comes_before(self, one: int, other: int) -> bool:
        return True


class NotesAreNotCounted(Part):
    """A decision is taken whatever was noted."""

    def decide(self, proposal: Proposal) -> Decided:
        return super().decide(proposal._replace(seen=1 << 30))


class DecisionsChange(Part):
    """A decision is formed anew at each delivery."""

    def register(self, one: Put | Removal | Labelling) -> Registered:
        answer = super().register(one)
        if answer.decision is not None and answer.number in self.history.states:
            self.history.states[answer.number].decision = None
        return answer._replace(decision=None)


class _CountsAlways(Family):
    def join(self, join: Join, now_ms: int) -> FamilyView:
        self.members.ordinals.pop(join.number, None)
        return super().join(join, now_ms)


class JoinsCountTwice(Part):
    """To join again counts again."""

    def join(self, join: Join) -> FamilyView:
        if join.founder in self.families:
            self.families[join.founder].__class__ = _CountsAlways
        return super().join(join)


class LeavingLeavesNoMark(Part):
    """Who leaves before it joins is not remembered."""

    def leave(self, leave: Leave) -> int:
        known = {founder: set(family.members.ordinals) for founder, family in self.families.items()}
        answer = super().leave(leave)
        for founder, family in self.families.items():
            family.members.left &= known.get(founder, set())
        return answer


class CoversNothing(Part):
    """A slot forgets what it was told to be done, and says that all is."""

    def cover(self, cover: Cover) -> None:
        self.covers[cover.partition] = 1 << 30


FIRST = 6_000_001  # the seed with which tests begin


@dataclass(frozen=True)
class Variant:
    """A plan without a rule, and the schedules that show that it is needed."""

    plan: Plan  # the plan
    schedules: int  # their count
    first: int = FIRST  # the seed of the first one
    law: str = ""  # The one that shows this, where the protocol itself may break others. Empty: each does.


VARIANTS: dict[str, Variant] = {
    "nobody notes": Variant(Plan(lane=NobodyNotes), 300),
    "one note is enough": Variant(Plan(lane=OneNoteIsEnough), 1, 121, "one family"),
    "hints are trusted": Variant(Plan(lane=HintsAreTrusted), 1_000),
    "dead ones are relied on": Variant(Plan(lane=DeadOnesAreReliedOn), 1, 1_276),
    "founders stay out": Variant(Plan(lane=FoundersStayOut), 300),
    "copies stay out": Variant(Plan(lane=CopiesStayOut), 1, 21_654),
    "copies leave all": Variant(Plan(lane=CopiesLeaveAll), 100),
    "copies crowd": Variant(Plan(lane=CopiesCrowd, storm=True, documents=120), 60),
    "twins are free": Variant(Plan(lane=TwinsAreFree, chain=True), 1, 6_003_366),
    "entries come first": Variant(Plan(lane=EntriesComeFirst), 100),
    "buckets are read first": Variant(Plan(lane=BucketsAreReadFirst), 100),
    "notes are not counted": Variant(Plan(part=NotesAreNotCounted), 1_000),
    "decisions change": Variant(Plan(part=DecisionsChange), 300),
    "joins come first": Variant(Plan(lane=JoinsComeFirst), 1, 41),
    "joins count twice": Variant(Plan(part=JoinsCountTwice), 300),
    "former states stay": Variant(Plan(lane=FormerStatesStay), 100),
    "removed states stay": Variant(Plan(lane=RemovedStatesStay), 200),
    "leaving leaves no mark": Variant(Plan(part=LeavingLeavesNoMark), 300),
    "dead ones represent": Variant(Plan(lane=DeadOnesRepresent), 1_000),
    "decided ones do not enter": Variant(Plan(lane=DecidedOnesDoNotEnter, tails=1, confirms=True), 1, 226),
    "counted ones are forgotten": Variant(Plan(lane=CountedOnesAreForgotten, tails=1), 1, 1_253, "counts"),
    "covers nothing": Variant(Plan(part=CoversNothing, tails=1, confirms=True), 1_000),
    "the order changes": Variant(Plan(judge=OrderChanges, flushes=1), 1_000, law="one is kept"),
    "the order changes, and no other law notices": Variant(Plan(judge=OrderChanges), 1_000, law="no circles"),
    "nobody waits for a replica": Variant(Plan(tails=1), 100),
    "any slot confirms": Variant(Plan(lane=AnySlotConfirms, tails=1, confirms=True), 1, 500_404),
}
