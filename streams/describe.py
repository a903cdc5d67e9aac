"""Verified pairs become events."""

from dataclasses import astuple, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from schemas.events import (
    CommonSymbols,
    Containment,
    ContainmentShares,
    Distance,
    DocumentRef,
    Event,
    Evidence,
    ExactDuplicate,
    Interval,
    NearDuplicate,
    Overlap,
    Rearranged,
    Retraction,
    SharedKeys,
    Span,
    Version,
    event_id,
)
from schemas.signature import Signature
from streams.estimate import Estimate
from streams.passages import uncovered
from streams.relate import Verdict
from streams.relation import SAME_LINEAGE

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DECIMALS = 4

# Share of events with the right label, of up to 1,000 of each kind drawn from each of two whole runs over labelled
# documents (`benchmarks.confidence`); states of one lineage by definition.
CONFIDENCE = {
    "exact_duplicate": 1.0,
    "near_duplicate": 0.99,
    "version": 0.84,
    "containment": 0.93,
    "overlap": 0.90,
    "rearranged": 0.86,
}
LINEAGE_CONFIDENCE = 0.99

_PLAIN: dict[str, type[ExactDuplicate | Rearranged | Overlap]] = {
    "exact_duplicate": ExactDuplicate,
    "rearranged": Rearranged,
    "overlap": Overlap,
}
_CHANGED: dict[str, type[NearDuplicate | Version]] = {"near_duplicate": NearDuplicate, "version": Version}

T = TypeVar("T")


@dataclass(frozen=True)
class Related:
    """Two documents whose relation is known.

    Attributes:
        newer: The larger by (observed_at, id, version).
        older: The other one.
        keys: Why they met.
        estimate: Their numbers.
        verdict: Their relation.
        degraded: What of input or environment was not whole.
    """

    newer: Signature
    older: Signature
    keys: SharedKeys
    estimate: Estimate
    verdict: Verdict
    degraded: tuple[str, ...] = ()

    def newer_first(self, of_shorter: T, of_longer: T) -> tuple[T, T]:
        """What belongs to the shorter and the longer text, as that of the newer and the older document."""
        newer_is_shorter = self.newer.digest == self.estimate.shorter_digest
        return (of_shorter, of_longer) if newer_is_shorter else (of_longer, of_shorter)


def describe(pair: Related) -> Event:
    """The event about a pair; shares are rounded to 4 decimals.

    Raises:
        KeyError: The verdict is `unrelated`, which makes no event.
    """
    verdict, fields = pair.verdict, _fields(pair)
    if verdict.relation == "containment":
        return Containment(**fields, **_inside(pair), **_changes(pair))
    if verdict.relation in _CHANGED:
        return _CHANGED[verdict.relation](**fields, **_changes(pair))
    return _PLAIN[verdict.relation](**fields)


def evidence(pair: Related) -> Evidence:
    """The numbers behind a verdict, shares rounded to 4 decimals."""
    numbers = pair.estimate
    interval = Interval(*(round(share, _DECIMALS) for share in astuple(numbers.resemblance)))
    if not numbers.rate:
        return Evidence(keys=pair.keys, resemblance=interval)
    symbols = pair.newer_first(numbers.symbols_shorter, numbers.symbols_longer)
    contained = pair.newer_first(numbers.containment_shorter.value, numbers.containment_longer.value)
    return Evidence(
        keys=pair.keys,
        resemblance=interval,
        overlap=CommonSymbols(
            numbers.rate,
            round(numbers.in_order, _DECIMALS),
            round(numbers.order_free, _DECIMALS),
            numbers.common,
            *symbols,
        ),
        containment=ContainmentShares(*(round(share, _DECIMALS) for share in contained)),
        distance=Distance(round(numbers.distance), round(numbers.low), round(numbers.high)),
        distance_ratio=round(round(numbers.distance) / numbers.longer_characters, _DECIMALS),
        spans=tuple(Span(*pair.newer_first(each.shorter, each.longer)) for each in numbers.passages),
        spans_omitted=numbers.passages_omitted,
    )


def common_spans(pair: Related) -> tuple[Span, ...]:
    """All common passages, those in another order too."""
    found = pair.estimate.common_text
    return tuple(Span(*pair.newer_first(each.shorter, each.longer)) for each in (*found.in_order, *found.moved))


def retraction(key: str, removed_at_ms: int, scheme: str) -> Retraction:
    """The event that voids all others about a removed document.

    Args:
        key: `<collection>/<id>`.
        removed_at_ms: Timestamp of the removal, milliseconds since 1970.
        scheme: Name of the scheme.
    """
    collection, _, document_id = key.partition("/")
    return Retraction(
        event_id=event_id("retraction", key, "", "", str(removed_at_ms), scheme),
        collection=collection,
        scheme=scheme,
        document_id=document_id,
        removed_at=_time(removed_at_ms),
    )


def _fields(pair: Related) -> dict[str, Any]:  # Any: the fields of several structs, by name
    newer, older, verdict = pair.newer, pair.older, pair.verdict
    by_lineage = verdict.rule == SAME_LINEAGE.name
    return {
        "event_id": event_id(
            verdict.relation, older.document_key, older.version, newer.document_key, newer.version, newer.scheme
        ),
        "collection": newer.collection,
        "scheme": newer.scheme,
        "newer": _ref(newer),
        "older": _ref(older),
        "same_lineage": verdict.same_lineage,
        "rule": verdict.rule,
        "thresholds": verdict.bounds,
        "confidence": LINEAGE_CONFIDENCE if by_lineage else CONFIDENCE[verdict.relation],
        "evidence": evidence(pair),
        "low_confidence": verdict.low_confidence,
        "degraded": pair.degraded,
    }


def _ref(text: Signature) -> DocumentRef:
    origin = text.origin
    return DocumentRef(
        id=text.id,
        version=text.version,
        observed_at=_time(text.observed_at_ms),
        characters=text.characters,
        url=text.url,
        lineage=text.lineage,
        source=text.source,
        labels=text.labels,
        topic=origin.topic if origin else None,
        partition=origin.partition if origin else None,
        offset=origin.offset if origin else None,
    )


def _inside(pair: Related) -> dict[str, Any]:  # Any: fields of a struct, by name
    segment = pair.estimate.segment
    return {"inner": pair.verdict.inner, "place": segment.longer if segment else None}


def _changes(pair: Related) -> dict[str, Any]:  # Any: fields of a struct, by name
    """Added and removed characters: exact where text was only inserted or only deleted; where it was added."""
    if not pair.estimate.rate:
        return {}
    distance, grown = round(pair.estimate.distance), pair.newer.characters - pair.older.characters
    added = (distance + grown) // 2
    found, omitted = _new_spans(pair) if added else ((), 0)
    return {
        "added": added,
        "removed": (distance - grown) // 2,
        "new_spans": found,
        "new_spans_omitted": omitted,
    }


def _new_spans(pair: Related) -> tuple[tuple[tuple[int, int], ...], int]:
    covered = (span.newer for span in common_spans(pair))
    return uncovered(covered, pair.newer.characters, pair.estimate.rate)


def _time(milliseconds: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=milliseconds)
