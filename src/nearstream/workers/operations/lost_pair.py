"""Name what lost a pair of documents on its way to an event, or its event."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from nearstream.schemas.documents.event_id import event_id
from nearstream.schemas.documents.signature import Signature
from nearstream.streams.fingerprints.parameters import MIN_SPACELESS_BYTES, MIN_WORDS
from nearstream.streams.matching.counterpart import COVERED_FROM, Compared
from nearstream.streams.matching.protocol.decision import Pair
from nearstream.streams.relations.conditions import Comparison, nearest
from nearstream.streams.relations.describe import document_state
from nearstream.streams.relations.rules import TOO_SHORT
from nearstream.workers.operations.explaining import Explained, Side
from nearstream.workers.operations.inspection import DocumentStatus
from nearstream.workers.pipeline.deployment import Deployment


class Tier(StrEnum):
    """What can lose a pair, in the order in which it is asked."""

    NOT_LIVE = "not_live"
    OTHER_SCHEME = "other_scheme"
    OTHER_COLLECTION = "other_collection"
    TOO_SHORT = "too_short"
    NO_SHARED_KEY = "no_shared_key"
    REPRESENTED = "represented"
    FULL_BUCKET = "full_bucket"
    CANDIDATE_CAP = "candidate_cap"
    NO_RULE = "no_rule"
    COMMON_TEXT = "common_text"
    NOT_SENT = "relation_not_sent"
    FAMILY = "family_was_told"
    RELATED = "related"


@dataclass(frozen=True)
class Loss:
    """The first tier that lost a pair.

    Attributes:
        tier: Its name.
        reason: What happened there, with the number and the bound.
        event_id: Id of the event of the pair, empty without one.
        is_sent: Whether its event was sent. None: not known, because not both documents were matched.
    """

    tier: Tier
    reason: str
    event_id: str = ""
    is_sent: bool | None = None


def first_loss(deployment: Deployment, explained: Explained) -> Loss:
    """Return the first tier that lost a pair, or its event."""
    stored = stored_pair(explained)
    if stored is not None and stored.is_sent and explained.compared is not None:
        return _related(explained.compared, is_sent=True)
    losses = (*_before_comparison(deployment, explained), *_in_the_index(explained, stored))
    if losses:
        return losses[0]
    if explained.compared is None:
        return Loss(Tier.OTHER_SCHEME, f"the scheme of these settings is {deployment.scheme.name}")
    return _after_comparison(deployment, explained, explained.compared)


def stored_pair(explained: Explained) -> Pair | None:
    """Return what the index remembers of the pair from the arrival of the later document."""
    later, earlier = explained.later.state, explained.earlier.state
    if later is None or earlier is None:
        return None
    return next((pair for pair in later.pairs if pair.number == earlier.number), None)


def event_id_of(compared: Compared) -> str:
    """Return the id of the event of a pair, empty if it is unrelated."""
    pair = compared.pair
    if compared.relation == "unrelated":
        return ""
    return event_id(compared.relation, document_state(pair.older), document_state(pair.newer), pair.newer.scheme)


def comparison_text(comparison: Comparison) -> str:
    """Return a number against its bound, as `shared 0.05 >= 0.09 (order_free_min)`."""
    return f"{comparison.number} {comparison.value:.4g} {comparison.sign} {comparison.bound:g} ({comparison.threshold})"


def _before_comparison(deployment: Deployment, explained: Explained) -> Iterator[Loss]:
    """Yield what keeps a pair from being compared at all."""
    sides = (explained.earlier, explained.later)
    for side in sides:
        if side.inspected is not None and side.inspected.status is not DocumentStatus.LIVE:
            reason = f": {side.inspected.reason}" if side.inspected.reason else ""
            yield Loss(Tier.NOT_LIVE, f"{side.name} is {side.inspected.status}{reason}")
    signatures = [side.signature for side in sides if side.signature is not None]
    yield from _misfits(deployment.scheme.name, signatures)
    if explained.compared is not None and explained.compared.rule is TOO_SHORT:
        yield Loss(Tier.TOO_SHORT, _short(signatures, explained.compared.estimate.fewer_words))


def _short(signatures: Sequence[Signature], fewer_words: int) -> str:
    """Return how short the shorter text is. One without spaces is measured in bytes."""
    if short := [each.n_bytes for each in signatures if each.spaceless and each.n_bytes < MIN_SPACELESS_BYTES]:
        return f"the shorter has no spaces and {min(short)} bytes, {MIN_SPACELESS_BYTES} expected"
    return f"the shorter has {fewer_words} words, {MIN_WORDS} expected"


def _misfits(scheme: str, signatures: Sequence[Signature]) -> Iterator[Loss]:
    for signature in signatures:
        if signature.scheme != scheme:
            yield Loss(Tier.OTHER_SCHEME, f"{signature.id} has {signature.scheme}, not {scheme}")
    collections = sorted({signature.collection for signature in signatures})
    if len(collections) > 1:
        yield Loss(Tier.OTHER_COLLECTION, f"one is in {collections[0]}, the other in {collections[1]}")
    for signature in signatures:
        if not signature.n_bytes:
            yield Loss(Tier.TOO_SHORT, f"{signature.id} has no words")


def _in_the_index(explained: Explained, stored: Pair | None) -> Iterator[Loss]:
    """Yield what loses a pair before it is compared."""
    meeting, compared = explained.meeting, explained.compared
    if stored is not None or meeting is None or compared is None:
        return
    keys = compared.pair.keys
    if not (meeting.digest or meeting.lineage or keys.bands or keys.anchors):
        value, low, high = meeting.chance
        resemblance = compared.estimate.resemblance
        yield Loss(
            Tier.NO_SHARED_KEY,
            f"0 of {keys.bands_of} bands and 0 of {min(keys.anchors_newer, keys.anchors_older)} anchors shared; at "
            f"resemblance {resemblance.value:.2f} the chance to share a band is {value:.3f} ({low:.3f}-{high:.3f})",
        )
    if meeting.buckets and not any(bucket.holds for bucket in meeting.buckets):
        yield _not_in_bucket(explained.earlier, explained)
    elif meeting.looked_up is not None and not meeting.is_candidate:
        yield Loss(
            Tier.CANDIDATE_CAP,
            f"{meeting.looked_up} others rank before it: they share more or rarer keys, or stand for its family",
        )


def _not_in_bucket(earlier: Side, explained: Explained) -> Loss:
    buckets = explained.meeting.buckets if explained.meeting else ()
    hot = [bucket for bucket in buckets if bucket.is_hot]
    family = earlier.state.family if earlier.state else None
    if hot or family is None:
        fullest = max(hot or buckets, key=lambda bucket: bucket.entries)
        return Loss(
            Tier.FULL_BUCKET,
            f"of {len(buckets)} shared buckets {len(hot)} are full, and none holds {earlier.name}; "
            f"the fullest has {fullest.entries} of {fullest.cap}",
        )
    return Loss(
        Tier.REPRESENTED,
        f"{earlier.name} is a copy: the representative of its family is in the {len(buckets)} shared buckets instead",
    )


def _after_comparison(deployment: Deployment, explained: Explained, compared: Compared) -> Loss:
    if compared.relation == "unrelated":
        rule = nearest(compared.estimate, deployment.thresholds)
        lacks = "; ".join(comparison_text(each) for each in rule.failing)
        return Loss(Tier.NO_RULE, f"{rule.rule.name} ({rule.rule.relation}) is nearest, which needs {lacks}")
    relation, own_id = compared.relation, event_id_of(compared)
    events = deployment.index_limits.events_per_family
    if relation not in deployment.settings.relations.split():
        return Loss(Tier.NOT_SENT, f"{relation} is not in NEARSTREAM_RELATIONS", own_id, is_sent=False)
    if compared.is_common_text and events:
        share = compared.estimate.containment_shorter.value
        inside = f"{share:.2f} of the shorter is in the other ({COVERED_FROM:.2f})"
        reason = f"many documents have by now what both share, and {inside}"
        return Loss(Tier.COMMON_TEXT, f"{relation}, by {compared.rule.name}: {reason}", own_id, is_sent=False)
    return _unsent(explained, compared, events)


def _unsent(explained: Explained, compared: Compared, events: int) -> Loss:
    """Return why no event is stored for a pair that is related now."""
    later = explained.later.state
    if later is None or explained.earlier.state is None:
        return _related(compared, is_sent=None)
    relation = f"{compared.relation}, by {compared.rule.name}"
    arrived = f"{later.reports} events were sent when {explained.later.name} arrived"
    if events and (later.reports or (later.family and later.family.ordinal > 1)):
        reason = f"{relation}: {arrived} and one for each other family"
        return Loss(Tier.FAMILY, reason, event_id_of(compared), is_sent=False)
    reason = f"{relation}: {arrived}; index or settings were others then"
    return Loss(Tier.RELATED, reason, event_id_of(compared), is_sent=False)


def _related(compared: Compared, *, is_sent: bool | None) -> Loss:
    return Loss(Tier.RELATED, f"{compared.relation}, by {compared.rule.name}", event_id_of(compared), is_sent)
