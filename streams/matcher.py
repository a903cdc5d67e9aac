"""Matcher: signatures become verdicts and events, through an index."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from msgspec.structs import replace as with_fields

from nearstream.schemas.events import RELATIONS, PairEvent, Retraction
from nearstream.schemas.signature import Origin, Signature
from nearstream.schemas.verdict import DocumentVerdict
from nearstream.streams.case import Case, incomplete
from nearstream.streams.counterpart import (
    Compared,
    degraded,
    document_verdict,
    novelty_of,
    own_family,
    with_novelty,
)
from nearstream.streams.estimates.comparing import estimate
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.index.contract import Admission, Admitted, Index, Position, Status
from nearstream.streams.index.family import Decision, Family
from nearstream.streams.index.labels import Labelling
from nearstream.streams.relations.describe import Related, describe, document_ref, retraction, shared_keys
from nearstream.streams.relations.thresholds import DEFAULT_THRESHOLDS, Thresholds
from nearstream.streams.relations.verdict import relate
from nearstream.streams.settling import Pause, Settling
from nearstream.streams.signing.scheme import Keys, Scheme

_NO_KEYS = Keys(b"", None, (), ())
_WITHOUT_VERDICT = (Status.STALE, Status.OVERTAKEN, Status.REMOVED)


async def _no_pause() -> None:
    """Continue at once."""


@dataclass(frozen=True)
class Arrival:
    """A document for the matcher, or the removal or the label of one.

    Attributes:
        document_key: `<collection>/<id>`.
        signature: The whole signature, None for a removal or a label.
        position: Partition and offset of its record, None in embedded use.
        removed_at_ms: Time of a removal in milliseconds since 1970.
        removal: Record of a removal on `documents`, None if it came from no topic.
        labelling: The label, None if this is no label.

    Raises:
        ValueError: A removal has no time, or the signature belongs to another document.
    """

    document_key: str
    signature: Signature | None
    position: Position | None = None
    removed_at_ms: int | None = None
    removal: Origin | None = None
    labelling: Labelling | None = None

    def __post_init__(self) -> None:
        """Refuse a signature of another document, and a removal without a time."""
        if self.signature is None and self.labelling is None and self.removed_at_ms is None:
            raise ValueError(f"removed_at_ms expected with the removal of {self.document_key!r}")
        if self.signature is not None and self.signature.document_key != self.document_key:
            raise ValueError(f"document_key of the signature expected, not {self.document_key!r}")


@dataclass(frozen=True)
class Matched:
    """What the matcher did with one arrival.

    Attributes:
        verdict: What the document is to those before it. None for a removal, and for a document that its removal has
            overtaken.
        events: Its relation events, or the retraction of a removal.
        admitted: The answer of the index.
    """

    verdict: DocumentVerdict | None
    events: tuple[PairEvent | Retraction, ...]
    admitted: Admitted


class Matcher:
    """Finds how arriving documents relate to earlier ones.

    Attributes:
        counts: What was done since the start, for metrics. No decision depends on it.
    """

    def __init__(
        self,
        index: Index,
        scheme: Scheme,
        key: HashKey,
        thresholds: Thresholds = DEFAULT_THRESHOLDS,
        relations: frozenset[str] = frozenset(RELATIONS),
    ) -> None:
        """Create a matcher.

        Args:
            index: The index that holds the earlier documents.
            scheme: The scheme of all signatures.
            key: The key of the scheme, with which index keys are made.
            thresholds: Thresholds of the rules.
            relations: Names of the relations to be sent.
        """
        self._index = index
        self._settling = Settling(index, scheme, thresholds, relations)
        self.counts = self._settling.counts
        self._scheme = scheme
        self._key = key
        self._thresholds = thresholds

    async def match(self, signature: Signature) -> Matched:
        """Admit one document and return its verdict, with its events.

        Raises:
            ValueError: The normal form is empty, or the signature belongs to another scheme.
            IndexUnavailableError: The index cannot answer now. Wait, then match the signature again.
        """
        (matched,) = await self.match_all([Arrival(signature.document_key, signature)])
        return matched

    async def match_all(self, arrivals: Sequence[Arrival], pause: Pause = _no_pause) -> list[Matched]:
        """Admit documents in order and return the result of each.

        The index has recorded all decisions before this returns.

        Args:
            arrivals: The documents.
            pause: Awaited after each comparison and each document, because there may be thousands of comparisons, and
                to make one or describe it takes milliseconds.

        Raises:
            ValueError: A normal form is empty, or a signature belongs to another scheme.
            IndexUnavailableError: The index cannot answer now. Wait, then match these arrivals again.
            IndexBehindError: The index has lost its newest writes of a partition.
            IndexLostError: The index was emptied or replaced.
        """
        admissions = [self._admission(arrival) for arrival in arrivals]
        await pause()
        answers = await self._index.admit(admissions)
        await pause()
        cases = [self._case(admission, answer) for admission, answer in zip(admissions, answers, strict=True)]
        undecided = [case for case in cases if case is not None and case.answer.decision is None]
        for case in undecided:
            await self._settling.compare_all(case, case.candidates(), pause)
        fresh = {case.answer.number: case for case in reversed(undecided) if case.answer.status is not Status.UNCHANGED}
        await self._settling.settle(list(reversed(fresh.values())), pause)
        await pause()
        results = []
        for arrival, answer, known in zip(arrivals, answers, cases, strict=True):
            if known is None:
                results.append(self._removal(arrival, answer))
                continue
            results.append(await self._matched(known, fresh.get(answer.number), pause))
            await pause()
        return results

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

    def _admission(self, arrival: Arrival) -> Admission:
        signature = arrival.signature
        if signature is None:
            labelling, removal = arrival.labelling, arrival.removal
            return Admission(arrival.document_key, None, _NO_KEYS, arrival.position, removal, labelling)
        keys = self._scheme.keys(signature, self._key)
        return Admission(arrival.document_key, self._scheme.kept(signature), keys, arrival.position)

    def _case(self, admission: Admission, answer: Admitted) -> Case | None:
        """Count an answer, and return the case of a document that gets a verdict."""
        self.counts.statuses[answer.status] += 1
        if admission.signature is None or answer.status in _WITHOUT_VERDICT:
            return None
        self.counts.full_buckets += answer.full_buckets
        self.counts.cut += answer.cut
        # Both signatures are compared as an index keeps them, so that the order of arrival changes no verdict.
        return Case(admission.signature, admission, answer)

    def _removal(self, arrival: Arrival, answer: Admitted) -> Matched:
        """Return the retraction of a removed document, if the index had it."""
        if arrival.signature is not None or not answer.found or arrival.removed_at_ms is None:
            return Matched(None, (), answer)
        event = retraction(arrival.document_key, arrival.removed_at_ms, self._scheme.name, arrival.removal)
        return Matched(None, (event,), answer)

    async def _matched(self, case: Case, settled: Case | None, pause: Pause) -> Matched:
        """Return the verdict and the events of a document after the index has recorded them.

        `settled` is the case of the same state in this batch, if it had no decision.
        """
        decision, answer = case.answer.decision, case.answer
        if answer.status is Status.UNCHANGED and answer.previous is not None:
            family = decision.family if decision else own_family(answer.number, answer.previous.signature)
            if settled is not None and settled.settled is not None and settled.settled.family is not None:
                family = settled.settled.family
            same = document_verdict(case.arriving, "unchanged", None, family)
            return Matched(with_fields(same, of=document_ref(answer.previous.signature), redundant=True), (), answer)
        if decision is not None:
            return await self._restated(case, decision, pause)
        case.settled, case.compared = (settled.settled, settled.compared) if settled else (None, case.compared)
        if case.settled is None:
            return await self._said(pause, case, own_family(answer.number, case.arriving), [])
        if case.settled.family is None:
            return Matched(None, (), answer)  # it was removed or has expired meanwhile
        sent = [compared for compared, is_sent in zip(case.compared, case.settled.sent, strict=True) if is_sent]
        return await self._said(pause, case, case.settled.family, sent)

    async def _restated(self, case: Case, decision: Decision, pause: Pause) -> Matched:
        """Return the former decision again, with the figures of the same comparisons."""
        case.answer = replace(case.answer, full_buckets=int(decision.degraded[0]), cut=decision.degraded[1])
        sent = []
        for place, pair in enumerate(decision.pairs):
            compared = self._settling.compare(case, pair.candidate) if pair.candidate is not None else None
            await pause()
            if compared is not None and pair.sending:
                sent.append(compared)
            if compared is not None and place == 0:
                case.compared = [compared]
        kind = decision.pairs[0].relation if decision.pairs else "unique"
        return await self._said(
            pause, case, decision.family, sent, kind, sum(bool(pair.sending) for pair in decision.pairs)
        )

    async def _said(
        self,
        pause: Pause,
        case: Case,
        family: Family,
        sent: Sequence[Compared],
        kind: str = "",
        events: int | None = None,
    ) -> Matched:
        best = case.compared[0].pair if case.compared else None
        kind = kind or (best.verdict.relation if best else "unique")
        lacking = best.degraded if best else degraded(case.arriving, case.arriving, incomplete(case.answer))
        verdict = document_verdict(case.arriving, kind, best, family, lacking)
        # A replay knows these again, and not the others.
        named = {each.candidate.number: each for each in (*case.compared[:1], *sent)}
        if named or kind == "unique":
            verdict = with_novelty(verdict, novelty_of(case.arriving, list(named.values())))
        await pause()
        told = []
        for compared in sent:
            told.append(describe(compared.pair, family.family_id))
            await pause()
        return Matched(with_fields(verdict, events=len(told) if events is None else events), tuple(told), case.answer)
