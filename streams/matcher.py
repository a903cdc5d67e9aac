"""Signatures become events, through an index."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from schemas.events import Event, SharedKeys
from schemas.signature import Signature
from streams.describe import Related, describe, retraction
from streams.estimate import estimate
from streams.hashing import HashKey
from streams.index import Admission, Admitted, Candidate, Index, Position, Report, Status
from streams.relate import Verdict, relate
from streams.scheme import Keys, Scheme
from streams.thresholds import DEFAULT_THRESHOLDS, Thresholds
from streams.weakness import MANY_SIBLINGS

SENT_BY_DEFAULT = frozenset({"exact_duplicate", "near_duplicate", "containment", "version", "rearranged"})

# Below this common share two of three overlaps are boilerplate.
_OVERLAP_SENT_FROM = 0.20
_NO_KEYS = Keys(b"", None, (), ())

Pause = Callable[[], Awaitable[None]]


async def _no_pause() -> None:
    """Works on."""


@dataclass(frozen=True)
class Arrival:
    """One document for the matcher; without a signature its removal.

    Attributes:
        document_key: `<collection>/<id>`.
        signature: The whole signature.
        position: Where its record stands; None in embedded use.
        removed_at_ms: Of a removal: milliseconds since 1970.

    Raises:
        ValueError: A removal without its time, or the key of another document.
    """

    document_key: str
    signature: Signature | None
    position: Position | None = None
    removed_at_ms: int | None = None

    def __post_init__(self) -> None:
        """Refuses what would be admitted under a wrong name, or retracted without a time."""
        if self.signature is None and self.removed_at_ms is None:
            raise ValueError("removed_at_ms expected with a removal")
        if self.signature is not None and self.signature.document_key != self.document_key:
            raise ValueError("document_key of the signature expected")


@dataclass
class MatchCounts:
    """What a matcher did since its start.

    Attributes:
        statuses: Admissions by status.
        candidates: Earlier documents by `looked_up`, then `verified` (related) or `rejected`.
        suppressed: Relations found, but not to be sent.
        full_buckets: Buckets of admitted documents that were full.
    """

    statuses: Counter[str] = field(default_factory=Counter)
    candidates: Counter[str] = field(default_factory=Counter)
    suppressed: Counter[str] = field(default_factory=Counter)
    full_buckets: int = 0


@dataclass(frozen=True)
class _Finding:
    """An event with the report that has to precede it."""

    event: Event
    report: Report | None = None


class Matcher:
    """Tells how arriving documents relate to earlier ones.

    `counts` accumulates for metrics; no decision depends on it.
    """

    def __init__(
        self,
        index: Index,
        scheme: Scheme,
        key: HashKey,
        thresholds: Thresholds = DEFAULT_THRESHOLDS,
        relations: frozenset[str] = SENT_BY_DEFAULT,
    ) -> None:
        """Takes the index to be asked, what its keys are made with, the bounds, and which relations to send."""
        self.counts = MatchCounts()
        self._index = index
        self._scheme = scheme
        self._key = key
        self._thresholds = thresholds
        self._relations = relations

    async def match(self, signature: Signature) -> list[Event]:
        """Admits one document; the events about it with earlier ones.

        Raises:
            ValueError: The normal form is empty, or the signature belongs to another scheme.
            IndexUnavailableError: Wait, then match the same signature again.
        """
        return (await self.match_all([Arrival(signature.document_key, signature)]))[0]

    async def match_all(self, arrivals: Sequence[Arrival], pause: Pause = _no_pause) -> list[list[Event]]:
        """Admits documents in order; the events of each, reported to the index before they come back.

        Args:
            arrivals: The documents.
            pause: Awaited after each comparison, as there may be thousands, of milliseconds each.

        Raises:
            ValueError: A normal form is empty, or a signature belongs to another scheme.
            IndexUnavailableError: Wait, then match the same arrivals again.
            IndexBehindError: The index lost its newest writes.
            IndexLostError: The index was emptied.
        """
        admissions = [self._admission(arrival) for arrival in arrivals]
        answers = await self._index.admit(admissions)
        findings = [
            self._removed(arrival, answer) if arrival.signature is None else await self._found(admission, answer, pause)
            for arrival, admission, answer in zip(arrivals, admissions, answers, strict=True)
        ]
        reports = [finding.report for each in findings for finding in each if finding.report]
        allowed = iter(await self._index.report(reports) if reports else ())
        return [[finding.event for finding in each if not finding.report or next(allowed)] for each in findings]

    def compare(self, one: Signature, other: Signature) -> Related:
        """How two documents relate, whether or not the index would bring them together.

        Raises:
            ValueError: A normal form is empty, a signature belongs to another scheme, or the collections differ.
        """
        newer, older = sorted((one, other), key=_order, reverse=True)
        numbers = estimate(newer, older)
        keys, before = self._scheme.keys(newer, self._key), self._scheme.keys(older, self._key)
        shared = SharedKeys(
            len(set(keys.bands) & set(before.bands)),
            len(keys.bands),
            len(set(keys.anchors) & set(before.anchors)),
            len(keys.anchors),
            len(before.anchors),
        )
        verdict = relate(newer, older, numbers, self._thresholds)
        return Related(newer, older, shared, numbers, verdict, _degraded(newer, older))

    def _admission(self, arrival: Arrival) -> Admission:
        signature = arrival.signature
        if signature is None:
            return Admission(arrival.document_key, None, _NO_KEYS, arrival.position)
        keys = self._scheme.keys(signature, self._key)
        return Admission(arrival.document_key, self._scheme.kept(signature), keys, arrival.position)

    def _removed(self, arrival: Arrival, answer: Admitted) -> list[_Finding]:
        self.counts.statuses[answer.status] += 1
        if not answer.found or arrival.removed_at_ms is None:
            return []
        return [_Finding(retraction(arrival.document_key, arrival.removed_at_ms, self._scheme.name))]

    async def _found(self, admission: Admission, answer: Admitted, pause: Pause) -> list[_Finding]:
        self.counts.statuses[answer.status] += 1
        self.counts.full_buckets += answer.full_buckets
        if admission.signature is None or answer.status in (Status.STALE, Status.UNCHANGED):
            return []
        # A verdict must not depend on who came first, so the arriving signature is the kept one too.
        found = []
        for candidate in _neighbours(admission.signature, answer):
            found.append(self._related(admission.signature, admission.keys, answer, candidate))
            await pause()
        return [finding for finding in found if finding]

    def _related(self, arriving: Signature, keys: Keys, answer: Admitted, candidate: Candidate) -> _Finding | None:
        earlier = candidate.signature
        arrives_newer = _order(arriving) > _order(earlier)
        newer, older = (arriving, earlier) if arrives_newer else (earlier, arriving)
        numbers = estimate(newer, older)
        verdict = relate(newer, older, numbers, self._thresholds)
        if not self._is_sent(verdict, numbers.order_free):
            return None
        if candidate.in_full_bucket:
            verdict = replace(verdict, low_confidence=(*verdict.low_confidence, MANY_SIBLINGS))
        anchors = (len(keys.anchors), candidate.anchor_count)
        shared = SharedKeys(
            candidate.bands, len(keys.bands), candidate.anchors, *(anchors if arrives_newer else anchors[::-1])
        )
        event = describe(Related(newer, older, shared, numbers, verdict, _degraded(newer, older, answer)))
        numbers_of = (answer.number, candidate.number) if arrives_newer else (candidate.number, answer.number)
        return _Finding(event, Report(*numbers_of, verdict.relation, event.event_id))

    def _is_sent(self, verdict: Verdict, order_free: float) -> bool:
        self.counts.candidates["looked_up"] += 1
        if verdict.relation == "unrelated":
            self.counts.candidates["rejected"] += 1
            return False
        self.counts.candidates["verified"] += 1
        weak = verdict.relation == "overlap" and order_free < _OVERLAP_SENT_FROM
        if weak or verdict.relation not in self._relations:
            self.counts.suppressed[verdict.relation] += 1
            return False
        return True


def _neighbours(arriving: Signature, answer: Admitted) -> list[Candidate]:
    """The earlier documents to compare with, each state once.

    A store may shorten keys, so that by chance two collections share a bucket.
    """
    previous = answer.previous
    if previous is not None and previous.signature.digest == arriving.digest:
        return []  # the replay of an unchanged document
    named = answer.candidates if previous is None else (previous, *answer.candidates)
    found = [each for each in named if each.signature.collection == arriving.collection]
    own = (arriving.id, arriving.version)
    states = {(each.signature.id, each.signature.version): each for each in reversed(found)}
    return [each for state, each in reversed(states.items()) if state != own]


def _order(signature: Signature) -> tuple[int, str, str]:
    return signature.observed_at_ms, signature.id, signature.version


def _degraded(newer: Signature, older: Signature, answer: Admitted | None = None) -> tuple[str, ...]:
    reasons = {*newer.degraded, *older.degraded}
    if answer is None:
        return tuple(sorted(reasons))
    if answer.full_buckets:
        reasons.add("bucket_overflow")
    if answer.cut:
        reasons.add("candidates_capped")
    return tuple(sorted(reasons))
