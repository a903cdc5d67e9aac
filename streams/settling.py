"""Comparing an arriving document with its candidates, and settling with the index which family it joins."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from nearstream.streams.case import Case, incomplete
from nearstream.streams.counterpart import Compared, Newcomer, compare_with, own_family
from nearstream.streams.index.candidate import Candidate
from nearstream.streams.index.contract import Index
from nearstream.streams.index.family import Pair, Sending, Settlement
from nearstream.streams.relations.thresholds import Thresholds
from nearstream.streams.signing.scheme import Scheme

_COMPARED_AT_ONCE = 16  # candidates in one call of C, of which hostile ones take 2 ms each
_TURNS = 4  # of settling a document, before one that finds its family gone again and again founds one

Pause = Callable[[], Awaitable[None]]


@dataclass
class MatchCounts:
    """What a matcher has done since its start.

    Attributes:
        statuses: Number of admissions by status.
        candidates: Number of earlier documents: all as `looked_up`, and each as `verified` (related) or `rejected`.
        suppressed: Number of relations found but not asked for, by relation.
        full_buckets: Number of buckets of admitted documents that were full.
        cut: Number of documents for which the limit of candidates left some out.
    """

    statuses: Counter[str] = field(default_factory=Counter)
    candidates: Counter[str] = field(default_factory=Counter)
    suppressed: Counter[str] = field(default_factory=Counter)
    full_buckets: int = 0
    cut: int = 0


class Settling:
    """Compares documents and settles their families.

    `counts` accumulates for metrics. No decision depends on it.
    """

    def __init__(self, index: Index, scheme: Scheme, thresholds: Thresholds, relations: frozenset[str]) -> None:
        """Take the index, the scheme, the thresholds of the rules, and the relations to be sent."""
        self.counts = MatchCounts()
        self._index = index
        self._scheme = scheme
        self._thresholds = thresholds
        self._relations = relations

    async def compare_all(self, case: Case, candidates: Sequence[Candidate], pause: Pause) -> None:
        """Compare a document with candidates and keep the related ones."""
        related = []
        for first in range(0, len(candidates), _COMPARED_AT_ONCE):
            some = self._compared(case, candidates[first : first + _COMPARED_AT_ONCE])
            related += [compared for compared in some if self._is_related(compared)]
            await pause()
        looked_up, verified = len(candidates), len(related)
        case.looked_up.update(candidate.number for candidate in candidates)
        self.counts.candidates += Counter(looked_up=looked_up, verified=verified, rejected=looked_up - verified)
        case.add(related)

    def compare(self, case: Case, candidate: Candidate) -> Compared:
        """Compare a document with a candidate."""
        return self._compared(case, [candidate])[0]

    def _compared(self, case: Case, candidates: Sequence[Candidate]) -> list[Compared]:
        arriving, previous = case.arriving, case.answer.previous
        former = 0 if previous is None else previous.number
        keys, lacks = case.admission.keys, incomplete(case.answer)
        newcomer = Newcomer(arriving, keys, self._scheme, self._thresholds, lacks, former)
        return compare_with(newcomer, candidates)

    def _is_related(self, compared: Compared) -> bool:
        """Return whether two documents are related, and share more than boilerplate.

        Relations that are found but not sent are counted.
        """
        relation = compared.relation
        if relation == "unrelated":
            return False
        if compared.is_common_text or relation not in self._relations:
            self.counts.suppressed[relation] += 1
        return not compared.is_boilerplate

    async def settle(self, cases: Sequence[Case], pause: Pause) -> None:
        """Record what was found out, until the index agrees which family each document joins."""
        waiting = [case for case in cases if case.has_to_settle]
        await self._enter([case for case in waiting if case.has_to_enter], pause)
        while waiting:
            ready = _ready(waiting)
            answers = await self._index.settle([self._settlement(case) for case in ready])
            for case, answer in zip(ready, answers, strict=True):
                case.settled = answer
            repeated = [
                case
                for case, answer in zip(ready, answers, strict=True)
                if answer.follow is not None or answer.is_refused
            ]
            await self._enter([case for case in repeated if self._choose_again(case)], pause)
            for case in repeated:
                case.joins = None if case.turns == _TURNS else case.joins
            waiting = [case for case in waiting if case not in ready or case in repeated]

    async def _enter(self, cases: Sequence[Case], pause: Pause) -> None:
        """Enter the buckets that these documents left out, in one call for all.

        Each is compared with those that it missed there. Of two copies that saw each other while both relied on a
        presumption, the one that enters last learns that the other represents a family now.
        """
        found = await self._index.enter([(case.answer.number, case.admission) for case in cases]) if cases else ()
        for case, there in zip(cases, found, strict=True):
            case.entered = True
            case.renew(there)
            await self.compare_all(case, case.not_looked_up(there), pause)

    def _choose_again(self, case: Case) -> bool:
        """Join a family by its representative if that is copied too, else only by an equal text.

        Returns whether the document has to enter the buckets that it left out. One that keeps its family has to if it
        relied on the buckets of another one.
        """
        case.turns += 1
        joins, follow = case.joins, case.settled.follow if case.settled is not None else None
        representative = self.compare(case, follow) if follow is not None else None
        if case.turns == _TURNS or joins is None:
            case.turns, case.joins = _TURNS, None
        elif representative is not None and representative.is_copy:
            case.joins = representative
            return False
        elif representative is not None and joins.is_exact and not joins.is_followed:
            case.joins = replace(joins, is_followed=True)
            return False
        elif joins.is_former:
            return True
        else:
            case.refuse(joins.candidate.number)
        return case.has_to_enter

    def _settlement(self, case: Case) -> Settlement:
        founder = case.joins.candidate.signature if case.joins else case.arriving
        family, former = own_family(0, founder), case.former_state()
        return Settlement(
            case.answer.number,
            case.arriving,
            case.joins.candidate.number if case.joins else 0,
            case.joins is not None and case.joins.is_exact and not case.joins.is_followed,
            case.joins is not None and case.joins.is_former,
            family.family_id,
            family.first_seen_ms,
            tuple(self._pair(compared, is_former=compared is former) for compared in case.compared),
            incomplete(case.answer),
        )

    def _pair(self, compared: Compared, *, is_former: bool) -> Pair:
        relation = compared.relation
        sending = Sending.ALWAYS if is_former else Sending.ONCE
        if relation not in self._relations or compared.is_common_text:
            sending = Sending.NEVER
        return Pair(relation, sending, compared.candidate.number, compared.candidate)


def _ready(waiting: Sequence[Case]) -> list[Case]:
    """Return the documents that join no other that is waiting, else the first one."""
    numbers = {case.answer.number for case in waiting}
    ready = [case for case in waiting if case.joins is None or case.joins.candidate.number not in numbers]
    return ready or [waiting[0]]
