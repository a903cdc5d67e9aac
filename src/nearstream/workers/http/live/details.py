"""Show two documents beside each other, and the states of one, from their signatures."""

from collections.abc import Callable, Coroutine, Sequence
from itertools import pairwise

from nearstream.schemas.documents.document import from_milliseconds
from nearstream.schemas.documents.evidence import SharedKeys
from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.live.details import (
    LiveChange,
    LiveDocument,
    LivePair,
    LiveRule,
    LiveSpan,
    LiveVersion,
)
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.estimates.comparing import estimate
from nearstream.streams.relations.conditions import conditions
from nearstream.streams.relations.describe import (
    Related,
    changed_characters,
    document_ref,
    evidence,
    resemblance,
    shared_keys,
)
from nearstream.streams.relations.verdict import relate
from nearstream.workers.pipeline.deployment import Deployment

_SPANS = 64
_NO_KEYS = SharedKeys(0, 0, 0, 0, 0)

States = Callable[[str], Coroutine[None, None, Sequence[Signature]]]  # of a document key, the last one first


def pair_of(one: Signature, other: Signature, deployment: Deployment) -> LivePair:
    """Show what two documents share, by their signatures or what the index keeps of these."""
    related = _related(one, other, deployment)
    newer, older, numbers = related.newer, related.older, related.estimate
    told = evidence(related)
    added, removed = changed_characters(related)
    return LivePair(
        collection=newer.collection,
        newer=document_ref(newer),
        older=document_ref(older),
        relation=related.verdict.relation,
        rule=related.verdict.rule,
        same_lineage=related.verdict.same_lineage,
        resemblance=told.resemblance,
        containment=told.containment,
        distance=told.distance,
        added=added,
        removed=removed,
        keys=_keys(newer, older, deployment),
        spans=_spans(related),
        rules=tuple(
            LiveRule(name=each.rule.name, relation=each.rule.relation, holds=each.holds, clauses=each.clauses)
            for each in conditions(numbers, deployment.thresholds)
        ),
        low_confidence=related.verdict.low_confidence,
    )


def document_of(
    collection: str, name: str, verdict: DocumentVerdict | None, states: Sequence[Signature], deployment: Deployment
) -> LiveDocument:
    """Show a document with what each of its states has changed, the last one first."""
    changes = [_change(newer, older, deployment) for newer, older in pairwise(states)]
    versions = (
        LiveVersion(
            version=state.version,
            observed_at=from_milliseconds(state.observed_at_ms),
            characters=state.characters,
            change=change,
        )
        for state, change in zip(states, [*changes, None], strict=False)
    )
    return LiveDocument(collection=collection, id=name, verdict=verdict, states=tuple(versions))


def _related(one: Signature, other: Signature, deployment: Deployment) -> Related:
    newer, older = (one, other) if one.order >= other.order else (other, one)
    numbers = estimate(newer, older)
    return Related(newer, older, _NO_KEYS, numbers, relate(newer, older, numbers, deployment.thresholds))


def _change(newer: Signature, older: Signature, deployment: Deployment) -> LiveChange:
    related = _related(newer, older, deployment)
    added, removed = changed_characters(related)
    share = resemblance(related.estimate).value
    return LiveChange(relation=related.verdict.relation, resemblance=share, added=added, removed=removed)


def _keys(newer: Signature, older: Signature, deployment: Deployment) -> SharedKeys | None:
    """Return the shared keys, None unless both signatures are whole."""
    if not newer.anchors or not older.anchors:
        return None
    return shared_keys(*(deployment.scheme.keys(each, deployment.key) for each in (newer, older)))


def _spans(related: Related) -> tuple[LiveSpan, ...]:
    common = related.common_text
    found = [(passage, False) for passage in common.in_order] + [(passage, True) for passage in common.moved]
    longest = sorted(found, key=lambda each: -each[0].length)[:_SPANS]
    spans = [(*related.newer_first(passage.shorter, passage.longer), moved) for passage, moved in longest]
    return tuple(LiveSpan(newer=newer, older=older, moved=moved) for newer, older, moved in sorted(spans))
