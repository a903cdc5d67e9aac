"""Events about related documents."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from msgspec import UNSET, UnsetType

from nearstream.schemas.documents.document import from_milliseconds
from nearstream.schemas.documents.evidence import (
    CommonSymbols,
    ContainmentShares,
    Distance,
    DocumentRef,
    DocumentState,
    Evidence,
    Interval,
    SharedKeys,
    Span,
    event_id,
)
from nearstream.schemas.documents.signature import VERSION_BYTES, Origin, Signature
from nearstream.schemas.verdicts.events import (
    Containment,
    ExactDuplicate,
    NearDuplicate,
    Overlap,
    PairEvent,
    Rearranged,
    Retraction,
    Version,
)
from nearstream.streams.estimates.estimate import Estimate
from nearstream.streams.estimates.passages import CommonText, changed, common_text, longest, uncovered
from nearstream.streams.relations.rules import SAME_LINEAGE
from nearstream.streams.relations.verdict import NEAR_THRESHOLD, Verdict
from nearstream.streams.signing.scheme import Keys

_DECIMALS = 4
_NEW_RATES = 4  # even where text was only cut out, one junction in ten leaves a gap of more rates than this

# Share of events with the right label, of those away from all thresholds and of those near one, as
# docs/relations.md has it (`benchmarks.quality.confidence`). Away from thresholds all near-duplicates and
# all rearranged texts were right. States of one lineage are versions by definition.
CONFIDENCE = {
    "exact_duplicate": (1.0, 1.0),
    "near_duplicate": (0.99, 0.90),
    "version": (0.96, 0.77),
    "containment": (0.99, 0.92),
    "overlap": (0.95, 0.71),
    "rearranged": (0.95, 0.67),
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
    """Two documents whose relation is known."""

    newer: Signature  # the larger of both by (observed_at, id, position, version)
    older: Signature  # the other one
    keys: SharedKeys  # the index keys that they share
    estimate: Estimate  # their estimate
    verdict: Verdict  # their relation
    degraded: tuple[str, ...] = ()  # what was incomplete about the input or the environment

    @cached_property
    def common_text(self) -> CommonText:
        """Return where their common text lies."""
        return common_text(self.newer, self.older)

    @property
    def only_signs_differ(self) -> bool:
        """Return whether the letters and digits of both are equal, and their signs are not."""
        newer, older = self.newer.digest, self.older.digest
        return newer != older and newer[VERSION_BYTES:] == older[VERSION_BYTES:]

    def newer_first(self, of_shorter: T, of_longer: T) -> tuple[T, T]:
        """Reorder values of the shorter and the longer text as newer, older."""
        newer_is_shorter = self.newer.digest == self.estimate.shorter_digest
        return (of_shorter, of_longer) if newer_is_shorter else (of_longer, of_shorter)


def confidence(relation: str, rule: str, low_confidence: Sequence[str]) -> float:
    """Return the share of events that were right on labelled documents, of those of one relation.

    Events near a threshold are less often right.
    """
    if rule == SAME_LINEAGE.name:
        return LINEAGE_CONFIDENCE
    return CONFIDENCE[relation][NEAR_THRESHOLD in low_confidence]


def describe(pair: Related, family: str | UnsetType = UNSET) -> PairEvent:
    """Build the event about a pair of related documents.

    Shares are rounded to 4 decimals. `family` is the id of the family of the document that arrived.
    """
    verdict, fields = pair.verdict, {**_fields(pair), "family": family}
    if verdict.relation == "containment":
        return Containment(**fields, **_location(pair), **_changes(pair))
    if verdict.relation in _CHANGED:
        return _CHANGED[verdict.relation](**fields, **_changes(pair))
    return _PLAIN[verdict.relation](**fields)


def evidence(pair: Related) -> Evidence:
    """Build the evidence of an event, with shares rounded to 4 decimals."""
    estimate = pair.estimate
    symbols = pair.newer_first(estimate.symbols_shorter, estimate.symbols_longer)
    containment = pair.newer_first(estimate.containment_shorter.value, estimate.containment_longer.value)
    passages, omitted = longest(pair.common_text.in_order, lambda passage: passage.length)
    return Evidence(
        keys=pair.keys,
        resemblance=resemblance(estimate),
        overlap=CommonSymbols(
            estimate.rate,
            round(estimate.in_order, _DECIMALS),
            round(estimate.order_free, _DECIMALS),
            estimate.common,
            *symbols,
        ),
        containment=ContainmentShares(*(round(share, _DECIMALS) for share in containment)),
        distance=distance(estimate),
        distance_ratio=round(estimate.changed_characters / estimate.longer_characters, _DECIMALS),
        spans=tuple(Span(*pair.newer_first(passage.shorter, passage.longer)) for passage in passages),
        spans_omitted=omitted,
    )


def shared_keys(newer: Keys, older: Keys) -> SharedKeys:
    """Return which of their index keys two documents share."""
    return SharedKeys(
        len(set(newer.bands) & set(older.bands)),
        min(len(newer.bands), len(older.bands)),
        len(set(newer.anchors) & set(older.anchors)),
        len(newer.anchors),
        len(older.anchors),
    )


def resemblance(estimate: Estimate) -> Interval:
    """Return the resemblance of two documents as messages contain it."""
    share = estimate.resemblance
    return Interval(*(round(bound, _DECIMALS) for bound in (share.value, share.low, share.high)))


def distance(estimate: Estimate) -> Distance:
    """Return the edit distance of two documents as messages contain it."""
    value = estimate.changed_characters
    return Distance(value, round(estimate.low), max(value, round(estimate.high)))


def retraction(key: str, removed_at_ms: int, scheme: str, origin: Origin | None = None) -> Retraction:
    """Build the event that voids all others about a removed document."""
    collection, _, document_id = key.partition("/")
    position = origin.position if origin else str(removed_at_ms)
    where: dict[str, Any] = {}
    if origin is not None:
        where = {"topic": origin.topic, "partition": origin.partition, "offset": origin.offset}
    return Retraction(
        event_id=event_id("retraction", DocumentState(key), DocumentState(position=position), scheme),
        collection=collection,
        scheme=scheme,
        document_id=document_id,
        removed_at=from_milliseconds(removed_at_ms),
        **where,
    )


def _fields(pair: Related) -> dict[str, Any]:  # Any: the fields of several structs, by name
    newer, older, verdict = pair.newer, pair.older, pair.verdict
    return {
        "event_id": event_id(verdict.relation, document_state(older), document_state(newer), newer.scheme),
        "collection": newer.collection,
        "scheme": newer.scheme,
        "newer": document_ref(newer),
        "older": document_ref(older),
        "same_lineage": verdict.same_lineage,
        "rule": verdict.rule,
        "thresholds": verdict.thresholds,
        "confidence": confidence(verdict.relation, verdict.rule, verdict.low_confidence),
        "evidence": evidence(pair),
        "low_confidence": verdict.low_confidence,
        "degraded": pair.degraded,
    }


def document_state(text: Signature) -> DocumentState:
    """Return a state as event ids name it."""
    return DocumentState(text.document_key, text.version, text.origin.position if text.origin else "")


def document_ref(text: Signature) -> DocumentRef:
    """Return a state as events name it."""
    return DocumentRef(**naming(text))


def naming(text: Signature) -> dict[str, Any]:  # Any: the fields of a struct, by name
    """Return the fields with which messages name a state."""
    named = {
        "id": text.id,
        "version": text.version,
        "observed_at": from_milliseconds(text.observed_at_ms),
        "characters": text.characters,
        "url": text.url,
        "lineage": text.lineage,
        "source": text.source,
        "labels": text.labels,
    }
    origin = text.origin
    if origin is not None:
        named |= {"topic": origin.topic, "partition": origin.partition, "offset": origin.offset}
        if origin.sent_at_ms:
            named["sent_at"] = from_milliseconds(origin.sent_at_ms)
    return named


def _location(pair: Related) -> dict[str, Any]:  # Any: fields of a struct, by name
    segment = pair.common_text.segment
    return {"inner": pair.verdict.inner, "place": segment.longer if segment else None}


def changed_characters(pair: Related) -> tuple[int, int]:
    """Return how many characters were added and removed.

    Both numbers are exact where text was only inserted or only deleted. One replaced character is added and removed.
    """
    distance, grown = pair.estimate.changed_characters, pair.newer.characters - pair.older.characters
    return (distance + grown + 1) // 2, (distance - grown + 1) // 2


def _changes(pair: Related) -> dict[str, Any]:  # Any: fields of a struct, by name
    """Return the added and removed characters, and where text was added."""
    added, removed = changed_characters(pair)
    spans, omitted = _new_spans(pair) if added else ((), 0)
    return {
        "added": added,
        "removed": removed,
        "new_spans": spans,
        "new_spans_omitted": omitted,
        "symbols_differ": pair.only_signs_differ,
    }


def _new_spans(pair: Related) -> tuple[tuple[tuple[int, int], ...], int]:
    """Return where the newer text has what the older has not: whole passages, or else places as short as known."""
    if pair.only_signs_differ:
        return (), 0  # signatures show letters and digits alone
    common = pair.common_text
    covered = [pair.newer_first(passage.shorter, passage.longer)[0] for passage in (*common.in_order, *common.moved)]
    passages = uncovered(covered, pair.newer.characters, _NEW_RATES * pair.estimate.rate)
    shorter, longer = [change.shorter for change in common.changes], [change.longer for change in common.changes]
    of_newer, of_older = pair.newer_first(shorter, longer)
    new = [span for span in passages if any(start < span[1] and span[0] < end for start, end in of_newer)]
    return longest(new if new or common.moved else changed(of_newer, of_older), lambda span: span[1] - span[0])
