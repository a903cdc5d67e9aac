"""Finds the earlier documents that share keys with those of a batch, and compares the most likely ones."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Protocol

from nearstream.streams.matching.protocol.case import Case, Compared
from nearstream.streams.matching.protocol.choosing import pick, representative_of
from nearstream.streams.matching.protocol.decision import Decision, founder_of
from nearstream.streams.matching.protocol.known import Known
from nearstream.streams.matching.protocol.tally import Shared, keys_that_hold, keys_without, shortlist, without
from nearstream.streams.store.limits import IndexLimits
from nearstream.streams.store.messages import ANCHOR, BAND, Entry, Join, Leave, Query, View

Pause = Callable[[], Awaitable[None]]

COMPARED_AT_ONCE = 8  # earlier documents between two pauses: those of the largest texts take 5 ms each
HEIRS = 8  # members that are asked, one after another, whether they live to represent their family


class Buckets(Protocol):
    """The calls of a store with which documents meet."""

    limits: IndexLimits

    async def enter(self, batch: Sequence[Entry]) -> list[list[tuple[bytes, bytes]]]:
        """Add numbers to buckets, and return what these held before."""

    async def peek(self, batch: Sequence[Entry]) -> list[list[tuple[bytes, bytes]]]:
        """Return what buckets hold."""

    async def fetch(self, batch: Sequence[Query]) -> list[View | None]:
        """Return what is known of each state."""

    async def leave(self, batch: Sequence[Leave]) -> list[int]:
        """Note that members have died, and return who represents their families now."""


class Comparing(Protocol):
    """What compares documents."""

    def compare(self, case: Case, numbers: Sequence[int], known: Known) -> Sequence[Compared]:
        """Compare a document with states whose records are known, and return the related ones."""


class Judge(Comparing, Protocol):
    """What knows the documents."""

    def decision(self, case: Case, founder: int, known: Known) -> Decision:
        """Return what is to be decided about a document that joins, or founds, a family."""

    def shortened(self, case: Case, founder: bytes) -> bytes:
        """Return the record of a copy as a patch of that of the founder of its family, or nothing."""

    def join(self, case: Case, founder: int, known: Known) -> Join:
        """Return the message with which a document joins a family."""

    def hint(self, case: Case) -> int:
        """Return the likely original of a document, or 0. It may be in the same batch."""

    def learn(self, case: Case, representative: int) -> None:
        """Remember who represents the family of a document."""


class Meeting:
    """Brings documents together with those who share keys with them."""

    def __init__(self, store: Buckets, judge: Comparing, pause: Pause) -> None:
        self._store = store
        self._judge = judge
        self._pause = pause

    async def look(self, cases: Sequence[Case], keys_of: Callable[[Case], bytes]) -> None:
        """Enter buckets and keep their former content. A late state only reads them."""
        for ask, some in (
            (self._store.enter, [case for case in cases if not case.is_late]),
            (self._store.peek, [case for case in cases if case.is_late]),
        ):
            entries = [Entry(case.number, case.hint, keys_of(case)) for case in some]
            for case, found in zip(some, await ask(entries) if entries else (), strict=True):
                case.found += found

    async def enter_rest(self, cases: Sequence[Case], known: Known) -> None:
        """Enter the buckets that documents left out, and compare these with what they hold."""
        keys = {case: case.left for case in cases}
        for case in cases:
            case.found = without(case.found, case.left)
            case.left, case.relied, case.hint = b"", set(), 0
        if cases:
            await self.look(cases, keys.__getitem__)
            await self.meet(cases, known)

    async def look_at_words(self, cases: Sequence[Case]) -> None:
        """Enter the buckets of words, but for those that hold the hint of a document."""
        looking = [case for case in cases if not case.left]
        await self.look(looking, lambda case: case.words)
        for case in looking:
            if case.hint:
                own = keys_that_hold(case.found, case.number, BAND + ANCHOR)
                case.left = keys_without(keys_that_hold(case.found, case.hint, BAND + ANCHOR), own)
                case.relied = {case.hint} if case.left else set()

    async def find_twins(self, cases: Sequence[Case], known: Known) -> None:
        """Let exact copies leave out all buckets of words, if a living, decided state of a full family is there."""
        twins = {}
        for case in cases:
            if case.found and case.decision is None and not case.is_late:
                met = shortlist(case.found, case.number, case.anchors, self._store.limits)
                case.shared, case.full_buckets = met.shared, met.full_buckets
                twins[case] = [number for number, shared in met.shared.items() if shared.by_digest]
        await self._ask({number for some in twins.values() for number in some}, known)
        await self._follow(list(twins), known, {case: set(some) for case, some in twins.items()})
        full = {case: [n for n in some if self._is_full(n, known)][:1] for case, some in twins.items()}
        await self._read({number for some in full.values() for number in some}, known)
        for case, some in full.items():
            for twin in self._judge.compare(case, list(filter(known.has_text, some)), known):
                if twin.is_exact:
                    case.left, case.relied, case.compared = case.words, {twin.number}, {twin.number: twin}

    def _is_full(self, number: int, known: Known) -> bool:
        """Return whether a state is alive and decided, and its family is found in all buckets."""
        founder = known.founder(number)
        if not founder or known.views[number].is_dead:
            return False
        family = known.families.get(founder)
        if family is None:
            return founder == number
        return family.representative > 0 and not family.is_bare

    async def meet(self, cases: Sequence[Case], known: Known) -> None:
        """Find out what is known about those who share keys with documents, and compare with the best of them."""
        limits, listed = self._store.limits, dict[Case, set[int]]()
        for case in cases:
            met = shortlist(case.found, case.number, case.anchors, limits)
            case.full_buckets, case.cut = met.full_buckets, met.is_cut
            if case.decision is not None:  # what is told again lacks what it lacked at first
                case.full_buckets, case.cut = int(case.decision.full_buckets), case.decision.cut
            case.shared = met.shared
            listed[case] = {*met.shared, *case.relied}
            if case.registered.former:
                listed[case].add(case.registered.former)
                case.shared.setdefault(case.registered.former, Shared(by_lineage=True))
            if case.decision is not None:
                listed[case] |= {pair.number for pair in case.decision.pairs}
        await self._ask({number for some in listed.values() for number in some}, known)
        while True:
            await self._follow(cases, known, listed)
            picked = {case: self._pick(case, known) for case in cases}
            if await self._read({number for some in picked.values() for number in some}, known):
                break
        for case, numbers in picked.items():
            await self._compare(case, numbers, known)

    async def _compare(self, case: Case, numbers: Iterable[int], known: Known) -> None:
        wanted = [n for n in numbers if known.has_text(n) and n not in case.compared and n != case.number]
        for start in range(0, len(wanted), COMPARED_AT_ONCE):
            for each in self._judge.compare(case, wanted[start : start + COMPARED_AT_ONCE], known):
                case.compared[each.number] = each
            await self._pause()

    def _pick(self, case: Case, known: Known) -> list[int]:
        case.undecided |= {n for n in case.shared if n in known.views and known.views[n].decision is None}
        case.superseded |= {n for n in case.shared if known.successors.get(n, 0) > case.number}
        alive = {number: shared for number, shared in case.shared.items() if self._counts(case, number, known)}
        for number in [number for number in case.shared if number not in alive]:
            heir = self._heir(case, number, known)
            if heir and heir not in case.shared:
                alive[heir] = case.shared[number].heir()
        case.shared |= alive
        chosen, cut = pick(alive, known.views, known.families, case.anchors, self._store.limits)
        case.cut |= cut and case.decision is None
        for number in tuple(chosen):  # a copy of a member joins through who represents the family
            heir = self._heir(case, number, known)
            if heir and heir not in chosen:
                case.shared.setdefault(heir, Shared())
                chosen.append(heir)
        if case.decision is not None:
            chosen += [pair.number for pair in case.decision.pairs if pair.number not in chosen]
        return chosen

    @staticmethod
    def _counts(case: Case, number: int, known: Known) -> bool:
        """Return whether a state lives, or lived when the document came, or is its former one."""
        view = known.views.get(number)
        was_alive = known.successors.get(number, 0) > case.number
        return view is not None and (not view.is_dead or was_alive or number == case.registered.former)

    @staticmethod
    def _heir(case: Case, number: int, known: Known) -> int:
        """Return who represents the family of a state and lives, or 0."""
        founder = known.founder(number)
        heir = representative_of(founder, known.families) if founder else 0
        heir_view = known.views.get(heir)
        return 0 if heir == case.number or heir_view is None or heir_view.is_dead else heir

    # What is known about others.

    async def _ask(self, numbers: set[int], known: Known) -> None:
        wanted = sorted(numbers - known.views.keys())
        answers = await self._store.fetch([Query(number) for number in wanted]) if wanted else ()
        for number, view in zip(wanted, answers, strict=True):
            if view is not None:
                known.views[number] = view
                if view.family is not None:
                    known.families[number] = view.family

    async def _read(self, numbers: set[int], known: Known) -> bool:
        """Read records that are not known, and return whether none of them has gone since it was looked at."""
        wanted = sorted(
            n for n in numbers if n not in known.records and n in known.views and not known.views[n].is_gone
        )
        answers = await self._store.fetch([Query(number, record=True) for number in wanted]) if wanted else ()
        gone: dict[int, View] = {}
        for number, view in zip(wanted, answers, strict=True):
            if view is not None and view.record is not None:
                known.records[number] = view.record
            else:
                gone[number] = (view or known.views[number])._replace(is_dead=True, is_gone=True)
        if gone:  # they may have represented their families
            await self._ask_again({known.family_of(number) for number in gone}, known)
            known.views |= gone
        return not gone

    async def _ask_again(self, numbers: set[int], known: Known) -> dict[int, View]:
        """Ask about states that may have changed since they were looked at, and return what was known of them."""
        former = {number: known.views.pop(number) for number in numbers if number in known.views}
        for number in numbers:
            known.families.pop(number, None)
        await self._ask(numbers, known)
        for number in former.keys() - known.views.keys():  # its slot has lost it
            known.views[number] = former[number]._replace(is_dead=True, is_gone=True)
        return former

    async def _follow(self, cases: Sequence[Case], known: Known, met: Mapping[Case, set[int]]) -> None:
        """Ask about the families of those who were met, and about who represents these.

        A document that may have been matched before asks for its place in each of them.
        """
        founders: set[int] = set()
        asked: dict[tuple[int, int], Case] = {}
        for case in cases:
            decisions = [known.views[number].decision for number in met[case] if number in known.views]
            own = {founder_of(each) for each in decisions if each is not None}
            founders |= own
            if case.may_be_counted and case.decision is None:
                asked |= {(founder, case.number): case for founder in own}
        await self._ask(founders, known)
        queries = [Query(founder, asker) for founder, asker in asked]
        answers = await self._store.fetch(queries) if queries else ()
        for query, case, view in zip(queries, asked.values(), answers, strict=True):
            if view is not None and view.family is not None:
                known.families[query.number] = view.family
                if view.family.ordinal:
                    case.counted_in.add(query.number)
        await self._hand_on(founders, known)

    async def _hand_on(self, founders: set[int], known: Known) -> None:
        """Find others to represent families whose representatives are dead.

        This repairs what a crash or an expiry has left. A family of which many have expired is given up, so nobody
        represents it until the next copy joins.
        """
        for _ in range(HEIRS):
            await self._ask({representative_of(each, known.families) for each in founders} - {0}, known)
            dead = [
                Leave(each, known.families[each].representative)
                for each in founders
                if each in known.families and self._is_dead(known.families[each].representative, known)
            ]
            if not dead:
                return
            for leave, heir in zip(dead, await self._store.leave(dead), strict=True):
                family = known.families[leave.founder]
                known.families[leave.founder] = family._replace(representative=heir, is_bare=True)

    def _is_dead(self, number: int, known: Known) -> bool:
        """Return whether a state is dead. Where states expire, one that nothing is known of has expired."""
        view = known.views.get(number)
        if view is None:
            return number > 0 and self._store.limits.retention_seconds > 0
        return view.is_dead

    async def refresh(self, some: Mapping[Case, Iterable[int]], known: Known) -> None:
        """Let documents look again at states, and compare them with those that they have not met before."""
        wanted = {case: {number for number in numbers if number != case.number} for case, numbers in some.items()}
        asked = {number for numbers in wanted.values() for number in numbers}
        former = await self._ask_again(asked, known)
        for case, numbers in wanted.items():
            case.undecided |= {number for number in numbers if number in former and former[number].decision is None}
            for number in numbers - case.shared.keys():
                case.shared[number] = Shared()
                if number in known.views and known.views[number].decision is None:
                    case.undecided.add(number)
        await self._follow(list(wanted), known, wanted)
        for case, numbers in wanted.items():
            heirs = {self._heir(case, number, known) for number in numbers} - {0}
            for heir in heirs:
                case.shared.setdefault(heir, Shared())
            numbers.update(heirs)
        await self._read({number for numbers in wanted.values() for number in numbers}, known)
        for case, numbers in wanted.items():
            await self._compare(case, sorted(numbers), known)
