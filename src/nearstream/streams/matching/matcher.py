"""Matcher: signatures become verdicts and events, through a store."""

from collections.abc import Sequence

from msgspec import UNSET

from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.verdicts.events import RELATIONS
from nearstream.streams.estimates.comparing import estimate
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.matching.arriving import Arrival, Arriving, case_of, message_of, runs
from nearstream.streams.matching.counterpart import degraded, own_family
from nearstream.streams.matching.family import Family
from nearstream.streams.matching.judge import Documents
from nearstream.streams.matching.looking_up import look_up_references, newcomers
from nearstream.streams.matching.protocol.case import Case
from nearstream.streams.matching.protocol.decision import founder_of
from nearstream.streams.matching.protocol.known import Known
from nearstream.streams.matching.protocol.lane import Lane, Patience
from nearstream.streams.matching.protocol.meeting import Pause
from nearstream.streams.matching.telling import Matched, References, Teller
from nearstream.streams.relations.describe import Related, retraction, shared_keys
from nearstream.streams.relations.thresholds import DEFAULT_THRESHOLDS, Thresholds
from nearstream.streams.relations.verdict import relate
from nearstream.streams.signing.scheme import Scheme
from nearstream.streams.store.messages import Mark, Query, View
from nearstream.streams.store.record import unpack_signature
from nearstream.streams.store.registration import Labelling, Put, Registered, Removal, Status
from nearstream.streams.store.store import Store

RECORDS_CAP = 4_096  # records that a matcher remembers


async def no_pause() -> None:
    """Continue at once."""


async def no_patience(waits: Sequence[tuple[int, bool]]) -> list[bool]:
    """Do not wait, because there is no other lane."""
    return [False] * len(waits)


class Matcher:
    """Finds how arriving documents relate to earlier ones.

    Attributes:
        counts: What was done since the start, for metrics. No decision depends on it.
        partitions: Count of the partitions of `signatures` that the store expects.
    """

    def __init__(
        self,
        store: Store,
        scheme: Scheme,
        key: HashKey,
        thresholds: Thresholds = DEFAULT_THRESHOLDS,
        relations: frozenset[str] = frozenset(RELATIONS),
        patience: Patience = no_patience,
    ) -> None:
        """Create a matcher.

        Args:
            store: The store that holds the earlier documents.
            scheme: The scheme of all signatures.
            key: The key of the scheme, with which index keys are made.
            thresholds: Thresholds of the rules.
            relations: Names of the relations to be sent.
            patience: Waits for other lanes.
        """
        self._store, self._scheme, self._key, self._patience = store, scheme, key, patience
        self.partitions = store.shape.partitions
        self._thresholds = thresholds
        self._documents = Documents(scheme, thresholds, relations)
        self.counts = self._documents.counts
        self._teller = Teller(self._documents, scheme, relations)
        self._records: dict[int, bytes] = {}  # of states that were met lately, the first one met in front

    async def match(self, signature: Signature) -> Matched:
        """Match one document and return its verdict, with its events.

        Raises:
            ValueError: The normal form is empty, or the signature belongs to another scheme.
            IndexUnavailableError: The index cannot answer now. Wait, then match the signature again.
        """
        (matched,) = await self.match_all([Arrival(signature.document_key, signature)])
        return matched

    async def match_all(
        self, arrivals: Sequence[Arrival], pause: Pause = no_pause, *, is_again: bool = False, are_apart: bool = False
    ) -> list[Matched]:
        """Match documents in order and return the result of each.

        The store has recorded all decisions before this returns.

        Args:
            arrivals: The documents.
            pause: Awaited after each comparison and each document, because there may be thousands of comparisons, and
                to make one or describe it takes milliseconds.
            is_again: Any of them may have been matched before, and the index may have lost that in part.
            are_apart: None of them sees a later one, as if each came alone.

        Raises:
            ValueError: A normal form is empty, or a signature belongs to another scheme.
            IndexUnavailableError: The index cannot answer now. Wait, then match these arrivals again.
            IndexBehindError: The index has lost its newest writes of a partition.
            IndexLostError: The index was emptied or replaced.
        """
        documents = [(arrival, self._arriving(arrival)) for arrival in arrivals]
        found = runs(documents, are_apart=are_apart)
        return [each for run in found for each in await self._match_run(run, pause, is_again=is_again)]

    def compare(self, one: Signature, other: Signature) -> Related:
        """Relate two documents, whether or not the index would find the pair.

        Raises:
            ValueError: A normal form is empty, a signature belongs to another scheme, or the collections differ.
        """
        newer, older = (one, other) if one.order >= other.order else (other, one)
        numbers = estimate(newer, older)
        shared = shared_keys(*(self._scheme.keys(each, self._key) for each in (newer, older)))
        verdict = relate(newer, older, numbers, self._thresholds)
        return Related(newer, older, shared, numbers, verdict, degraded(newer, older))

    async def _match_run(
        self, run: Sequence[tuple[Arrival, Arriving | None]], pause: Pause, *, is_again: bool
    ) -> list[Matched]:
        lane = Lane(self._store, self._documents, self._patience, pause)
        messages = [message_of(arrival, one, self._store.number(arrival.position)) for arrival, one in run]
        await pause()
        answers = await lane.register(messages)
        cases = {
            answer.number: case_of(one, answer)
            for message, (_, one), answer in zip(messages, run, answers, strict=True)
            if one is not None and _is_state(message.number, answer)
        }
        known = await lane.match(list(cases.values()), self._records, is_again=is_again)
        await self._mark(messages, answers, cases)
        await self._know(answers, cases, known)
        self._count(answers, cases)
        references = await self._references([arrival for arrival, _ in run], answers, pause)
        results = []
        for (arrival, one), answer, matches in zip(run, answers, references, strict=True):
            if one is None:
                results.append(self._removed(arrival, answer))
            elif answer.status is Status.OVERTAKEN:
                results.append(Matched(None, (), answer))
            elif answer.status is Status.UNCHANGED:
                results.append(await self._unchanged(one.signature, answer, known, matches))
            else:
                results.append(await self._teller.told(cases[answer.number], known, matches, pause))
        while len(self._records) > RECORDS_CAP:
            del self._records[next(iter(self._records))]
        return results

    def _arriving(self, arrival: Arrival) -> Arriving | None:
        if arrival.signature is None:
            return None
        keys = self._scheme.keys(arrival.signature, self._key)
        # Both signatures are compared as an index keeps them, so that the order of arrival changes no verdict.
        return Arriving(self._scheme.kept(arrival.signature), keys, self._scheme, self._thresholds)

    def _count(self, answers: Sequence[Registered], cases: dict[int, Case]) -> None:
        self.counts.overtaken += sum(answer.status is Status.OVERTAKEN for answer in answers)
        self.counts.full_buckets += sum(case.full_buckets for case in cases.values())
        self.counts.cut += sum(case.cut for case in cases.values())

    async def _mark(
        self, messages: Sequence[Put | Removal | Labelling], answers: Sequence[Registered], cases: dict[int, Case]
    ) -> None:
        """Add labels to the families of the labelled documents."""
        marks = []
        for message, answer in zip(messages, answers, strict=True):
            case = cases.get(answer.number)
            decision = case.decision if case else None
            founder = decision.founder if decision else founder_of(answer.decision) if answer.decision else 0
            has_changed = answer.label or answer.status is Status.LABELLED
            if founder and has_changed and not answer.is_dead:  # else it would take the place of the current state
                marks.append(Mark(founder, message.document, answer.number, answer.label))
        if marks:
            await self._store.mark(marks)

    async def _know(self, answers: Sequence[Registered], cases: dict[int, Case], known: Known) -> None:
        """Read the records of founders, and of states that arrived again, which verdicts name."""
        decided = [(case.number, case.decision.founder) for case in cases.values() if case.decision]
        founders = {founder for number, founder in decided if founder != number}
        again = {answer.number for answer in answers if answer.status is Status.UNCHANGED}
        wanted = sorted(each for each in founders | again if not known.has_text(each))
        found = await self._store.fetch([Query(number, record=True) for number in wanted]) if wanted else ()
        for number, view in zip(wanted, found, strict=True):
            if view is not None:
                known.views[number] = view
                if view.record is not None:
                    known.records[number] = view.record

    async def _references(
        self, arrivals: Sequence[Arrival], answers: Sequence[Registered], pause: Pause
    ) -> list[References]:
        """Return what each document is to the collections that it names.

        Nothing is decided by it, and these collections learn nothing of the documents.
        """
        references: list[References] = [UNSET] * len(arrivals)
        named = [
            (place, arrival.signature)
            for place, (arrival, answer) in enumerate(zip(arrivals, answers, strict=True))
            if arrival.signature is not None and arrival.signature.against and answer.status is not Status.OVERTAKEN
        ]
        if named:
            asked = [newcomers(own, self._scheme, self._key, self._thresholds)[1:] for _, own in named]
            for (place, _), matches in zip(named, await look_up_references(self._store, asked, pause), strict=True):
                references[place] = matches
        return references

    def _removed(self, arrival: Arrival, answer: Registered) -> Matched:
        """Return the retraction of a removed document, if the store had it."""
        if answer.status is not Status.REMOVED or not answer.was_known or arrival.removed_at_ms is None:
            return Matched(None, (), answer)
        event = retraction(arrival.document_key, arrival.removed_at_ms, self._scheme.name, arrival.removal)
        return Matched(None, (event,), answer)

    async def _unchanged(self, own: Signature, answer: Registered, known: Known, references: References) -> Matched:
        view = known.views.get(answer.number)
        if view is None or not known.has_text(answer.number):
            return Matched(None, (), answer)  # it was removed or has expired meanwhile
        packed, order = known.records[answer.number], view.order
        same = unpack_signature(packed, self._scheme.name, order.version, order.observed_ms)
        family = await self._family(answer.number, same, view)
        return self._teller.unchanged(own, same, family, answer, references)

    async def _family(self, number: int, same: Signature, view: View) -> Family:
        founder = founder_of(view.decision) if view.decision is not None else number
        own = own_family(number, same)
        if founder == number:
            return own
        (found,) = await self._store.fetch([Query(founder, number, record=True)])
        if found is None or found.family is None:
            return own
        first = None
        if found.record is not None:
            first = unpack_signature(found.record, self._scheme.name, found.order.version, found.order.observed_ms)
        seen = found.family
        return Family(founder, seen.family_id.hex(), max(seen.ordinal, 1), first, seen.first_seen_ms, seen.sites)


def _is_state(number: int, answer: Registered) -> bool:
    """Return whether a record stored a state, now or at an earlier delivery, or has been signed twice."""
    return answer.status in (Status.NEW, Status.KNOWN) or (
        answer.status is Status.UNCHANGED and answer.number == number
    )
