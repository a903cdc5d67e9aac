"""Say what became of a pair of documents: its event, or what kept it from being told."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from nearstream.schemas.documents.evidence import event_id
from nearstream.schemas.documents.signature import Signature
from nearstream.streams.fingerprints.parameters import MIN_SPACELESS_BYTES, MIN_WORDS
from nearstream.streams.matching.counterpart import COVERED_FROM, Compared
from nearstream.streams.relations.conditions import Comparison, nearest
from nearstream.streams.relations.describe import document_state
from nearstream.streams.relations.rules import TOO_SHORT
from nearstream.workers.operations.explaining import Explained
from nearstream.workers.pipeline.deployment import Deployment

# What can lose a pair, in the order in which it is asked.
Tier = Literal[
    "not_live",
    "other_collection",
    "too_short",
    "no_shared_key",
    "represented",
    "candidate_cap",
    "no_rule",
    "common_text",
    "relation_not_sent",
    "family_was_told",
    "related",
]


@dataclass(frozen=True)
class Outcome:
    """The first tier that lost a pair, or `related`."""

    tier: Tier
    reason: str  # what happened there, with the number and the bound
    event_id: str = ""  # of the event of the pair
    is_sent: bool | None = None  # None: not known, because not both documents were matched


def outcome(deployment: Deployment, explained: Explained) -> Outcome:
    """Return the first tier that lost a pair, or its event."""
    compared, stored = explained.compared, explained.stored
    if stored is not None and stored.is_sent and compared is not None:
        return _related(compared, is_sent=True)
    for lost in (*_before_comparison(explained), *_in_the_index(explained)):
        return lost
    if compared is None:
        raise ValueError("a reason expected for which both documents were not compared")
    return _after_comparison(deployment, explained, compared)


def comparison_text(comparison: Comparison) -> str:
    """Return a number against its bound, as `shared 0.05 >= 0.09 (order_free_min)`."""
    return f"{comparison.number} {comparison.value:.4g} {comparison.sign} {comparison.bound:g} ({comparison.threshold})"


def _before_comparison(explained: Explained) -> Iterator[Outcome]:
    """Yield what keeps a pair from being compared at all."""
    sides = (explained.earlier, explained.later)
    for side in sides:
        if side.inspected is not None and side.inspected.status != "live":
            reason = f": {side.inspected.reason}" if side.inspected.reason else ""
            yield Outcome("not_live", f"{side.name} is {side.inspected.status}{reason}")
    signatures = [side.signature for side in sides if side.signature is not None]
    yield from _misfits(signatures)
    if explained.compared is not None and explained.compared.rule is TOO_SHORT:
        yield Outcome("too_short", _short(signatures, explained.compared.estimate.fewer_words))


def _short(signatures: Sequence[Signature], fewer_words: int) -> str:
    """Return how short the shorter text is. One without spaces is measured in bytes."""
    if short := [each.n_bytes for each in signatures if each.spaceless and each.n_bytes < MIN_SPACELESS_BYTES]:
        return f"the shorter has no spaces and {min(short)} bytes, {MIN_SPACELESS_BYTES} expected"
    return f"the shorter has {fewer_words} words, {MIN_WORDS} expected"


def _misfits(signatures: Sequence[Signature]) -> Iterator[Outcome]:
    collections = sorted({signature.collection for signature in signatures})
    if len(collections) > 1:
        yield Outcome("other_collection", f"one is in {collections[0]}, the other in {collections[1]}")
    for signature in signatures:
        if not signature.n_bytes:
            yield Outcome("too_short", f"{signature.id} has no words")


def _in_the_index(explained: Explained) -> Iterator[Outcome]:
    """Yield what loses a pair before it is compared."""
    meeting, compared = explained.meeting, explained.compared
    if explained.stored is not None or meeting is None or compared is None:
        return
    keys = compared.pair.keys
    if not (meeting.digest or meeting.lineage or keys.bands or keys.anchors):
        value, low, high = meeting.chance
        yield Outcome(
            "no_shared_key",
            f"0 of {keys.bands_of} bands and 0 of {min(keys.anchors_newer, keys.anchors_older)} anchors shared; at "
            f"resemblance {compared.estimate.resemblance.value:.2f} the chance to share a band is {value:.3f} "
            f"({low:.3f}-{high:.3f})",
        )
    if meeting.looked_up is not None and not meeting.is_candidate:
        family = explained.earlier.state.family if explained.earlier.state else None
        if family is not None and family.ordinal > 1:
            name = explained.earlier.name
            yield Outcome("represented", f"{name} is a copy: the representative of its family is found in its place")
        yield Outcome(
            "candidate_cap",
            f"{meeting.looked_up} others rank before it: they share more or rarer keys, or its buckets were full",
        )


def _after_comparison(deployment: Deployment, explained: Explained, compared: Compared) -> Outcome:
    relation, own_id = compared.relation, event_id_of(compared)
    if relation == "unrelated":
        rule = nearest(compared.estimate, deployment.thresholds)
        lacks = "; ".join(comparison_text(each) for each in rule.failing)
        return Outcome("no_rule", f"{rule.rule.name} ({rule.rule.relation}) is nearest, which needs {lacks}")
    if relation not in deployment.settings.relations.split():
        return Outcome("relation_not_sent", f"{relation} is not in NEARSTREAM_RELATIONS", own_id, is_sent=False)
    told = f"{relation}, by {compared.rule.name}"
    if compared.is_common_text:
        share = compared.estimate.containment_shorter.value
        inside = f"{share:.2f} of the shorter is in the other ({COVERED_FROM:.2f})"
        reason = f"{told}: many documents have by now what both share, and {inside}"
        return Outcome("common_text", reason, own_id, is_sent=False)
    later = explained.later.state
    if later is None or explained.earlier.state is None:
        return _related(compared, is_sent=None)
    arrived = f"{told}: {later.reports} events were sent when {explained.later.name} arrived"
    if later.reports or (later.family and later.family.ordinal > 1):
        return Outcome("family_was_told", f"{arrived}, one for each other family", own_id, is_sent=False)
    return Outcome("related", f"{arrived}; index or settings were others then", own_id, is_sent=False)


def event_id_of(compared: Compared) -> str:
    """Return the id of the event of a pair, empty if it is unrelated."""
    pair = compared.pair
    if compared.relation == "unrelated":
        return ""
    return event_id(compared.relation, document_state(pair.older), document_state(pair.newer), pair.newer.scheme)


def _related(compared: Compared, *, is_sent: bool | None) -> Outcome:
    return Outcome("related", f"{compared.relation}, by {compared.rule.name}", event_id_of(compared), is_sent)
