"""The protocol of matching: what a lane asks of the store, in which order, until each document is decided.

A batch on its usual way, each step one call for all of its documents::

    register   stores each state, and says which state of its document was current before
    enter      adds its number to the buckets of its keys, and returns who was in them
    fetch      what is known about those states and their families, and the records to compare with
    decide     stores the family that the document joins or founds, with its related documents
    join       counts the document in the family, and returns its place there
    tidy       former states leave their families, copies leave their buckets

Nothing here is atomic but the single calls, so two lanes may match copies at one time. Two copies A and B of one text,
which nobody had before, become one family like this::

    lane of A                                      lane of B
    enter -> nobody
                                                   enter -> A was there
                                                   fetch A -> undecided
                                                   note at A: "B goes on without you"
    decide, 0 notes considered -> refused: [B]
                                                   decide -> B founds a family
    fetch B -> decided
    decide, 1 note considered -> joins B
    join -> second of the family of B

Had A decided before the note, the note would have been answered by the decision of A, and B would have joined A. So of
any two copies the later one in a bucket sees the other, and one of the two considers the other before it decides.

`Lane.match` has the order of a batch, and `Lane._settle` the rounds of choosing, noting, deciding and joining.
`tests/simulation` runs this code under an adversary. Each rule of the order has a variant there that leaves it out.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, Sequence

from nearstream.streams.matching.protocol.case import Case
from nearstream.streams.matching.protocol.choosing import Choice, choose, is_undecided, representative_of
from nearstream.streams.matching.protocol.decision import pack_decision, unpack_decision
from nearstream.streams.matching.protocol.known import Known
from nearstream.streams.matching.protocol.meeting import Judge, Meeting, Pause
from nearstream.streams.matching.protocol.tally import crowded_keys, keys_that_hold, keys_without, unseen
from nearstream.streams.store.messages import ANCHOR, BAND, Entry, Leave, Note, Proposal, Query, Shortened
from nearstream.streams.store.registration import Labelling, Put, Registered, Removal, Status
from nearstream.streams.store.store import Store

Patience = Callable[[Sequence[tuple[int, bool]]], Awaitable[Sequence[bool]]]
"""Waits a moment for other lanes, once for several documents. It is given for each how often that was done, and whether
one of those waited for came before it, and returns for each whether it shall go on waiting."""


class Lane:
    """Matches the batches of some partitions of `signatures`."""

    meeting = Meeting

    def __init__(self, store: Store, judge: Judge, patience: Patience, pause: Pause) -> None:
        self._store = store
        self._judge = judge
        self._patience = patience
        self._pause = pause
        self._meeting = self.meeting(store, judge, pause)

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

        They have been registered. The store has recorded all decisions when this returns. Records that are read are
        added to those of earlier batches. With `is_again` a slot has lost writes, so any document may have been matched
        before.
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
        await self._meeting.look_at_words(cases)
        await self._meeting.meet(cases, known)
        await self._store.confirm([case.number for case in cases])
        await self._restate([case for case in cases if case.is_restated], known)
        await self._settle([case for case in cases if not case.is_restated], known)
        entries = self._entries_to_leave(cases, known)
        await self._store.tidy(self._leaves_of_former(cases, known), entries, shortened(cases))
        return known

    # Deciding.

    async def _settle(self, cases: Sequence[Case], known: Known) -> None:
        """Decide about documents, round by round. Who has a copy before it in the batch waits for the round of that."""
        waiting = {case.number: case for case in sorted(cases, key=lambda case: case.number)}
        await self._look_again(waiting, known)
        while waiting:
            ready: list[tuple[Case, int]] = []
            noting: list[tuple[Case, tuple[int, ...]]] = []
            sleeping: list[tuple[Case, tuple[int, ...]]] = []
            for case in waiting.values():
                founder, waits_for = self._choose(case, known)
                known.expected[case.number] = founder or min(map(known.family_of, waits_for), default=case.number)
                others = tuple(number for number in waits_for if not case.has_noted(number))
                before = [number for number in (*others, *case.relied) if number in waiting and number < case.number]
                if before:
                    continue
                others = tuple(n for n in others if n not in waiting or not self._will_wait(waiting[n], case.number))
                if not others:
                    ready.append((case, founder))
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

        Else a document would send an event for each of several copies that are one family by now.
        """
        undecided = {
            case: [
                one.number for one in case.copies if one.number not in waiting and is_undecided(one.number, known.views)
            ]
            for case in waiting.values()
        }
        await self._meeting.refresh({case: numbers for case, numbers in undecided.items() if numbers}, known)

    def _will_wait(self, case: Case, number: int) -> bool:
        """Return whether a later document of the batch has met this one, and waits for it."""
        return number in case.compared and (case.number - number) % self._store.shape.partitions == 0

    @staticmethod
    def _choose(case: Case, known: Known) -> Choice:
        return choose(case, known.views, known.families)

    async def _sleep(self, sleeping: Sequence[tuple[Case, tuple[int, ...]]], known: Known) -> None:
        """Wait for other lanes, long for documents that came before and shortly for others."""
        waits = [(case.patience, any(number < case.number for number in others)) for case, others in sleeping]
        patient = await self._patience(waits)
        for (case, _), goes_on in zip(sleeping, patient, strict=True):
            case.patience = case.patience + 1 if goes_on else -1
        await self._meeting.refresh({case: others for case, others in sleeping if case.patience > 0}, known)

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

        If both did, both would send its event. Which of both is redundant `choosing.covering` decides, in an order
        that never changes.
        """
        comes_next = number > case.number and number in waiting and case.number in waiting[number].compared
        return is_undecided(number, known.views) and (comes_next or case.has_noted(number))

    @staticmethod
    def _may_leave_out(case: Case, founder: int, known: Known) -> bool:
        """Return whether the buckets that were left out lead to the family that is joined.

        They do if living members of it are there. A dead state leads to a representative that may share none of these
        keys, and a family without one gets the document, which others can only meet there.
        """
        others = (*case.relied, representative_of(founder, known.families))
        return founder not in (0, case.number) and all(
            known.founder(number) == founder and not known.views[number].is_dead for number in others
        )

    async def _restate(self, cases: Sequence[Case], known: Known) -> None:
        """Join again, and find those that came while documents were not in all their buckets.

        Who came after a superseded state is related to the present one only.
        """
        await self._join(cases, known)
        views = await self._store.fetch([Query(case.number) for case in cases]) if cases else ()
        for case, view in zip(cases, views, strict=True):
            case.registered = case.registered._replace(is_dead=view is None or view.is_dead)
            if not case.is_dead:
                members = known.members(case.decision.founder if case.decision else 0)
                self._find_late(case, unseen(case.found, {case.number, *members}, self._store.limits.bucket_cap))
                await self._pause()

    @staticmethod
    def _find_late(case: Case, numbers: Iterable[int]) -> None:
        named = {pair.number for pair in case.decision.pairs} if case.decision else set()
        late = set(numbers) - named - {case.number}
        case.late += [each for number, each in case.compared.items() if number in late]

    async def _join(self, cases: Sequence[Case], known: Known) -> None:
        """Count documents in their families. Whom this makes the representative has to be in all its buckets."""
        decided = [(case, case.decision) for case in cases if case.decision is not None]
        await self._patch([(case, one.founder) for case, one in decided if one.founder != case.number], known)
        needed = [
            (case, self._judge.join(case, decision.founder, known))
            for case, decision in decided
            if decision.founder != case.number or decision.links
        ]
        dead = [Leave(case.number, case.number) for case, one in decided if one.founder == case.number and case.is_dead]
        answers = await self._store.join([join for _, join in needed]) if needed else ()
        if dead:
            await self._store.leave(dead)
        heirs = []
        for (case, join), answer in zip(needed, answers, strict=True):
            case.joined = answer
            known.families[join.founder] = answer
            if case.left and answer.representative == case.number:
                heirs.append(case)
        await self._become_full(heirs, known)

    async def _become_full(self, cases: Sequence[Case], known: Known) -> None:
        """Let new representatives enter the buckets that they left out, and join again."""
        met = {case: set(case.compared) for case in cases}
        await self._meeting.enter_rest(cases, known)
        for case in cases:
            self._find_late(case, case.compared.keys() - met[case])
        if cases:
            await self._join(cases, known)

    async def _patch(self, copies: Sequence[tuple[Case, int]], known: Known) -> None:
        """Find what copies have in common with the founders of their families, which is stored once."""
        founders = {founder for _, founder in copies}
        gone = [founder for founder in sorted(founders) if not known.has_text(founder)]
        first = {founder: known.records[founder] for founder in founders if known.has_text(founder)}
        first |= await self._store.kept(gone) if gone else {}
        for case, founder in copies:
            case.patch = self._judge.shortened(case, first[founder]) if founder in first else b""

    @staticmethod
    def _leaves_of_former(cases: Sequence[Case], known: Known) -> list[Leave]:
        """Return which families former states leave, now that the present ones have joined."""
        formers = [case.registered.former for case in cases if not case.is_late]
        return [Leave(founder, former) for former in formers if (founder := known.founder(former))]

    def _entries_to_leave(self, cases: Sequence[Case], known: Known) -> list[Entry]:
        """Return the buckets of words that lead to the families of copies without them."""
        entries, living = [], known.living()
        for case in cases:
            joined = case.joined
            if case.is_gone or case.is_late or case.decision is None:
                continue
            self._judge.learn(case, joined.representative if joined is not None else case.number)
            if joined is None or joined.is_bare or joined.representative in (0, case.number):
                continue
            before = [number for number in living[case.decision.founder] if number < case.number]
            keys = keys_without(self._keys_of_family(case, joined.representative, before), case.left)
            if keys:
                entries.append(Entry(case.number, 0, keys))
        return entries

    @staticmethod
    def _keys_of_family(case: Case, representative: int, before: Sequence[int]) -> bytes:
        """Return the keys whose buckets hold the representative of a family, or are crowded by earlier members.

        The first two members of a bucket stay there, in whatever order they look.
        """
        is_out = representative in case.relied  # these buckets were not entered
        keys = b"" if is_out else keys_that_hold(case.found, representative, BAND + ANCHOR)
        return keys + crowded_keys(case.found, before, BAND + ANCHOR)


def shortened(cases: Iterable[Case]) -> list[Shortened]:
    """Return the records of copies as patches of those that the homes of their families keep."""
    return [
        Shortened(case.number, case.patch)
        for case in cases
        if case.patch and case.joined is not None and case.joined.is_kept
    ]
