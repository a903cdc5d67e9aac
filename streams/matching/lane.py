"""The protocol of matching: what a lane asks of the store, in which order, until each document is decided.

Nothing here is atomic but the single calls. In the order of this page:

    match           registers a batch, enters its buckets, looks up who is there, settles, withdraws
    _meet           from buckets to the states that are worth a comparison, and the comparisons
    _settle         rounds of choosing, noting, deciding and joining, until every document is decided

`tests/simulation` runs this code under an adversary. Each rule of the order has a variant there that leaves it out.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, Sequence

from nearstream.streams.matching.case import Case
from nearstream.streams.matching.choosing import choose, is_undecided
from nearstream.streams.matching.decision import founder_of, pack_decision, unpack_decision
from nearstream.streams.matching.judging import Judge
from nearstream.streams.matching.known import Known
from nearstream.streams.matching.meeting import Meeting, Pause
from nearstream.streams.matching.picking import representative_of
from nearstream.streams.matching.shortening import shorten
from nearstream.streams.matching.tally import crowded_keys, keys_that_hold, unseen
from nearstream.streams.store.messages import ANCHOR, BAND, Entry, Leave, Note, Proposal
from nearstream.streams.store.registration import Labelling, Put, Registered, Removal, Status
from nearstream.streams.store.store import Store

Patience = Callable[[int, bool], Awaitable[bool]]
"""Waits a moment for another lane. It is given how often that was done for a document, and whether one of those waited
for came before it, and returns whether the document shall go on waiting."""


class Lane:
    """Matches the batches of some partitions of `signatures`."""

    def __init__(self, store: Store, judge: Judge, patience: Patience, pause: Pause) -> None:
        """Take what the lane works with."""
        self._store = store
        self._judge = judge
        self._patience = patience
        self._meeting = Meeting(store, judge, pause)

    async def register(self, batch: Sequence[Put | Removal | Labelling]) -> list[Registered]:
        """Register the records of a batch, in order.

        Removed states leave their families.
        """
        answers = await self._store.register(batch)
        leaves = [Leave(founder, number) for answer in answers for number, founder in answer.left]
        if leaves:
            await self._store.leave(leaves)
        return answers

    async def match(
        self, cases: Sequence[Case], records: MutableMapping[int, bytes] | None = None, *, is_again: bool = False
    ) -> Known:
        """Decide about the documents of a batch, in the order of their numbers within each partition.

        They have been registered. The store has recorded all decisions when this returns.

        Args:
            cases: The documents.
            records: Records of earlier batches, to which those that are read are added.
            is_again: A slot has lost writes, so any of the documents may have been matched before.
        """
        known = Known(records)
        known.successors = {case.registered.former: case.number for case in cases if not case.is_late}
        for case in cases:
            case.may_be_counted = is_again or case.registered.status is Status.KNOWN
            if case.registered.decision is not None:
                case.decision, case.is_restated = unpack_decision(case.registered.decision), True
        await self._meeting.look(cases, lambda case: case.named)
        await self._meeting.find_twins(cases, known)
        for case in cases:
            if case.decision is None and not case.is_late and not case.left:
                case.hint = self._judge.hint(case)
        await self._meeting.look(cases, lambda case: b"" if case.left else case.words)
        for case in cases:
            self._meeting.leave_out(case)
        await self._meeting.meet(cases, known)
        await self._store.confirm([case.number for case in cases])
        await self._restate([case for case in cases if case.is_restated], known)
        await self._settle([case for case in cases if not case.is_restated], known)
        await self._leave_former(cases)
        await self._withdraw(cases, known)
        await shorten(self._store, self._judge, cases, known)
        return known

    # Deciding.

    async def _settle(self, cases: Sequence[Case], known: Known) -> None:
        """Decide about documents, round by round.

        A document whose copy comes before it in the batch waits for its round.
        """
        waiting = {case.number: case for case in sorted(cases, key=lambda case: case.number)}
        await self._look_again(waiting, known)
        while waiting:
            ready: list[tuple[Case, int]] = []
            noting: list[tuple[Case, tuple[int, ...]]] = []
            sleeping: list[tuple[Case, tuple[int, ...]]] = []
            for case in waiting.values():
                choice = choose(case, known.views, known.families)
                known.expected[case.number] = choice.founder or min(
                    map(known.family_of, choice.waits_for), default=case.number
                )
                others = tuple(number for number in choice.waits_for if not case.has_noted(number))
                if any(number in waiting and number < case.number for number in others):
                    continue
                others = tuple(n for n in others if n not in waiting or not self._is_same_partition(n, case.number))
                if not others:
                    ready.append((case, choice.founder))
                elif all(number in waiting for number in others) or case.patience < 0:
                    noting.append((case, others))
                else:
                    sleeping.append((case, others))
            if sleeping and not ready and not noting:
                await self._sleep(sleeping, known)
            await self._note(noting, known)
            await self._propose(ready, waiting, known)

    async def _look_again(self, waiting: Mapping[int, Case], known: Known) -> None:
        """Look again at undecided copies of other lanes, most of which are decided while a batch is compared.

        A document tells of each that it takes for another family.
        """
        undecided = {
            case: [
                each.number
                for each in case.copies
                if each.number not in waiting and is_undecided(each.number, known.views)
            ]
            for case in waiting.values()
        }
        some = {case: numbers for case, numbers in undecided.items() if numbers}
        if some:
            await self._meeting.refresh(some, known)

    def _is_same_partition(self, one: int, other: int) -> bool:
        return one % self._store.shape.partitions == other % self._store.shape.partitions

    async def _sleep(self, sleeping: Sequence[tuple[Case, tuple[int, ...]]], known: Known) -> None:
        """Wait for other lanes, long for documents that came before and shortly for others."""
        for case, others in sleeping:
            if await self._patience(case.patience, any(number < case.number for number in others)):
                case.patience += 1
                await self._meeting.refresh({case: others}, known)
            else:
                case.patience = -1

    async def _note(self, noting: Sequence[tuple[Case, tuple[int, ...]]], known: Known) -> None:
        """Write notes at undecided copies, whose decision then has to consider these documents."""
        pairs = [(case, number) for case, others in noting for number in others]
        answers = await self._store.note([Note(number, case.number) for case, number in pairs]) if pairs else ()
        for (case, number), noted in zip(pairs, answers, strict=True):
            case.noted[number] = case.noted_by[number]
            if noted.decision is not None or noted.is_gone:
                await self._meeting.refresh({case: [number]}, known)

    async def _propose(self, ready: Sequence[tuple[Case, int]], waiting: dict[int, Case], known: Known) -> None:
        proposals = []
        denied = [case for case, founder in ready if case.left and not self._may_leave_out(case, founder, known)]
        await self._meeting.enter_rest(denied, known)  # they choose again
        for case, founder in ready:
            if case in denied:
                continue
            case.yields = {each.number for each in case.copies if self._tells(case, each.number, waiting, known)}
            case.decision = self._judge.decision(case, founder or case.number, known)
            proposals.append((case, Proposal(case.number, case.seen, pack_decision(case.decision))))
        answers = await self._store.decide([proposal for _, proposal in proposals]) if proposals else ()
        decided = []
        for (case, _), answer in zip(proposals, answers, strict=True):
            if answer.decision is not None:
                case.decision = unpack_decision(answer.decision)
                case.registered = case.registered._replace(is_dead=answer.is_dead)
                known.decided(case)
                decided.append(case)
                del waiting[case.number]
                continue
            case.decision = None
            if not answer.notes:
                case.is_gone = True
                del waiting[case.number]
                continue
            new = answer.notes[case.seen :]
            case.noted_by.update(new)
            case.seen = len(answer.notes)
            await self._meeting.refresh({case: new}, known)
        await self._join(decided, known)

    @staticmethod
    def _tells(case: Case, number: int, waiting: Mapping[int, Case], known: Known) -> bool:
        """Return whether an undecided copy has to consider this document, so that it tells of the pair.

        If both did, both would be redundant, and a consumer that drops what is would lose the text.
        """
        comes_next = number > case.number and number in waiting and case.number in waiting[number].compared
        return is_undecided(number, known.views) and (comes_next or case.has_noted(number))

    @staticmethod
    def _may_leave_out(case: Case, founder: int, known: Known) -> bool:
        """Return whether the buckets that were left out lead to the family that is joined.

        They do if they hold its living representative. A dead state leads to a representative that may share none of
        these keys, and a family without one gets the document, which others can only meet there.
        """
        if not founder or founder == case.number:
            return False
        if not case.hint:
            return True  # an exact copy: the buckets of its twin do
        view = known.views.get(case.hint)
        lives = view is not None and not view.is_dead and case.hint == representative_of(founder, known.families)
        return lives and view is not None and view.decision is not None and founder_of(view.decision) == founder

    async def _restate(self, cases: Sequence[Case], known: Known) -> None:
        """Join again, and find those that came while documents were not in all their buckets.

        Who came after a superseded state is related to the present one only.
        """
        await self._join(cases, known)
        for case in [case for case in cases if not case.is_dead]:
            family = case.decision.founder if case.decision else 0
            self._find_late(
                case, unseen(case.found, {case.number, *known.members(family)}, self._store.limits.bucket_cap)
            )

    @staticmethod
    def _find_late(case: Case, numbers: Iterable[int]) -> None:
        named = {pair.number for pair in case.decision.pairs} if case.decision else set()
        late = set(numbers) - named - {case.number}
        case.late += [each for number, each in case.compared.items() if number in late]

    async def _join(self, cases: Sequence[Case], known: Known) -> None:
        """Count documents in their families. Whom this makes the representative has to be in all its buckets."""
        decided = [(case, case.decision) for case in cases if case.decision is not None]
        needed = [
            (case, self._judge.join(case, decision.founder, known))
            for case, decision in decided
            if decision.founder != case.number or decision.links
        ]
        dead = [Leave(case.number, case.number) for case, one in decided if one.founder == case.number and case.is_dead]
        answers = await self._store.join([join for _, join in needed]) if needed else ()
        if dead:
            await self._store.leave(dead)
        for (case, join), answer in zip(needed, answers, strict=True):
            case.joined = answer
            known.joined(join.founder, answer)
        await self._become_full([case for case, _ in needed if case.left and _represents(case)], known)

    async def _become_full(self, cases: Sequence[Case], known: Known) -> None:
        """Let those who represent their families now enter the buckets that they left out, and join again."""
        met = {case: set(case.compared) for case in cases}
        await self._meeting.enter_rest(cases, known)
        for case in cases:
            self._find_late(case, case.compared.keys() - met[case])
        if cases:
            await self._join(cases, known)

    async def _leave_former(self, cases: Sequence[Case]) -> None:
        """Let former states leave their families, now that the present ones have joined."""
        leaves = [
            Leave(founder_of(case.registered.former_decision), case.registered.former)
            for case in cases
            if case.registered.former_decision is not None and not case.is_late
        ]
        if leaves:
            await self._store.leave(leaves)

    async def _withdraw(self, cases: Sequence[Case], known: Known) -> None:
        """Let copies leave the buckets of words that lead to their family without them.

        Where every pair has its event, all stay where they are.
        """
        entries = []
        for case in cases:
            joined = case.joined
            if case.is_gone or case.is_late or case.decision is None:
                continue
            self._judge.learn(case, joined.representative if joined is not None else case.number)
            stays = not self._store.limits.events_per_family
            if stays or joined is None or joined.is_bare or joined.representative in (0, case.number):
                continue
            keys = self._keys_of_family(case, case.decision.founder, joined.representative, known)
            if keys:
                entries.append(Entry(case.number, 0, keys))
        if entries:
            await self._store.withdraw(entries)

    @staticmethod
    def _keys_of_family(case: Case, founder: int, representative: int, known: Known) -> bytes:
        """Return the keys whose buckets hold the representative of a family, or are crowded by earlier members.

        The first two members of a bucket stay there, in whatever order they look.
        """
        before = [n for n in known.members(founder) if n < case.number and not known.views[n].is_dead]
        keys = keys_that_hold(case.found, representative, case.number, BAND + ANCHOR)
        return b"".join((*keys, crowded_keys(case.found, before, BAND + ANCHOR)))


def _represents(case: Case) -> bool:
    return case.joined is not None and case.joined.representative == case.number
