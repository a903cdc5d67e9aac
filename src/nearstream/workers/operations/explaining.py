"""Explain how two documents relate, how they meet in the index, and what became of the pair. Nothing is written."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Literal

from nearstream.schemas.documents.document import document_key
from nearstream.schemas.documents.evidence import Comparison, Place, event_id
from nearstream.schemas.documents.record import ConsumerRecord
from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.topics.codec import InvalidMessageError
from nearstream.schemas.topics.dead_letter import Reason
from nearstream.streams.fingerprints.parameters import MIN_SPACELESS_BYTES, MIN_WORDS
from nearstream.streams.ingest.parse import Removal
from nearstream.streams.matching.arriving import Arriving
from nearstream.streams.matching.counterpart import COVERED_FROM, Candidate, Compared, compare_with, novelty_of
from nearstream.streams.matching.protocol.decision import KeyMatch, Pair
from nearstream.streams.relations.conditions import nearest
from nearstream.streams.relations.describe import document_state
from nearstream.streams.relations.novelty import Novelty, novelty_in_text, sent_spans
from nearstream.streams.relations.rules import TOO_SHORT
from nearstream.streams.signing.exact import exact_distance, normal_text
from nearstream.streams.signing.scheme import Keys, hit_probability
from nearstream.workers.files.content import UnreadableFileError
from nearstream.workers.files.source import Refused, read
from nearstream.workers.operations.terminal import PATH_CHARACTERS, escaped
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.in_process import embedded

if TYPE_CHECKING:
    from nearstream.workers.operations.inspection import Inspected
    from nearstream.workers.redis.reading.inspect import StateFacts

CELLS_MAX = 10**11  # of the table of the exact distance of two files, some five seconds
_NO_KEYS = Keys(b"", None, (), ())


@dataclass(frozen=True)
class Side:
    """One of two documents."""

    name: str  # as it was asked for
    signature: Signature | None  # as the index keeps it, where its record on `signatures` is gone
    keys: Keys | None  # None: its signature is not whole, or has no words
    inspected: "Inspected | None" = None  # None: it was given as a file
    text: str = ""  # of a file. Empty: only the signature is known

    @property
    def state(self) -> "StateFacts | None":
        """Its current state in the index."""
        return next(iter(self.inspected.states), None) if self.inspected else None

    @property
    def is_unknown(self) -> bool:
        """Whether it is neither a file nor known to the index and its topic."""
        return self.inspected is not None and self.inspected.status == "unknown"


@dataclass(frozen=True)
class Meeting:
    """How two documents meet in the index."""

    digest: bool  # whether they share the key of the digest
    lineage: bool
    chance: tuple[float, float, float]  # that two texts of this resemblance share a band, and for its interval
    looked_up: int | None = None  # candidates of the later document now. None: the index was not asked
    is_candidate: bool = False  # whether the earlier document is one of them


@dataclass(frozen=True)
class Explained:
    """Two documents, their comparison and their meeting."""

    later: Side  # the one that arrived later, or would arrive now
    earlier: Side
    compared: Compared | None = None  # None: they cannot be compared
    meeting: Meeting | None = None  # None: keys of one are not known
    novelty: Novelty | None = None  # what is new in the later one, with places in its text if that is known
    removed_spans: tuple[Place, ...] = ()  # what is gone of the earlier one, in its text if that is known
    distance_exact: int | None = None  # None: not both texts are at hand, or they are too long

    @property
    def stored(self) -> Pair | None:
        """What the index remembers of the pair from the arrival of the later document."""
        later, earlier = self.later.state, self.earlier.state
        if later is None or earlier is None:
            return None
        return next((pair for pair in later.pairs if pair.number == earlier.number), None)


def explain_files(deployment: Deployment, paths: Sequence[str]) -> Explained:
    """Explain how the documents of two files relate, without a server."""
    one, other = (_side_of_file(deployment, path) for path in paths)
    later, earlier = _in_order(one, other)
    newcomer = _newcomer(deployment, later, earlier)
    return _explained(deployment, newcomer, later, earlier) if newcomer else Explained(later, earlier)


async def explain(
    deployment: Deployment, names: Sequence[str], collection: str, wait_seconds: float, *, quiet: bool
) -> Explained:
    """Explain how two documents relate, given by their ids in the index."""
    from nearstream.workers.redis.index.index import index_to_read
    from nearstream.workers.redis.server.client import until_answered

    sides = [await _side_of_index(deployment, name, collection, wait_seconds, quiet=quiet) for name in names]
    later, earlier = _in_order(*sides)
    newcomer = _newcomer(deployment, later, earlier)
    if newcomer is None:
        return Explained(later, earlier)
    candidates = None
    # Without the earlier one, or without keys, there is nothing to ask the index.
    if earlier.state is not None and later.keys is not None:
        address = replace(deployment.index_address(), beside=True)
        async with index_to_read(address, wait_seconds) as index:
            (near,) = await until_answered(partial(index.neighbours_of, [newcomer]), wait_seconds)
            candidates = near.candidates
    return _explained(deployment, newcomer, later, earlier, candidates)


def _explained(
    deployment: Deployment,
    newcomer: Arriving,
    later: Side,
    earlier: Side,
    candidates: Sequence[Candidate] | None = None,
) -> Explained:
    state = earlier.signature and (earlier.signature.id, earlier.signature.version)
    own = next((each for each in candidates or () if (each.earlier.id, each.earlier.version) == state), None)
    (compared,) = compare_with(newcomer, [own or _candidate(later, earlier)])
    meeting = _meeting(deployment, later, earlier, compared)
    if meeting and candidates is not None:
        meeting = replace(meeting, looked_up=len(candidates), is_candidate=own is not None)
    new, text = novelty_of(compared.newcomer.signature, [compared]), deployment.scheme.text
    if later.text:
        new = novelty_in_text(new, later.text, text)
    removed = sent_spans(compared.removed_spans, earlier.text, text) if earlier.text else compared.removed_spans
    exact = None
    if later.text and earlier.text:
        one, other = (normal_text(side.text, deployment.scheme) for side in (later, earlier))
        exact = exact_distance(one, other, CELLS_MAX)
    return Explained(later, earlier, compared, meeting, new, removed, exact)


def _newcomer(deployment: Deployment, later: Side, earlier: Side) -> Arriving | None:
    """Return the later document, to be compared. None: both cannot be compared."""
    scheme, one, other = deployment.scheme, later.signature, earlier.signature
    if one is None or other is None or one.collection != other.collection:
        return None
    if any(each.scheme != scheme.name or not each.n_bytes for each in (one, other)):
        return None
    return Arriving(scheme.kept(one), later.keys or _NO_KEYS, scheme, deployment.thresholds)


async def _side_of_index(
    deployment: Deployment, name: str, collection: str, wait_seconds: float, *, quiet: bool
) -> Side:
    from nearstream.workers.operations.inspection import inspect

    inspected = await inspect(deployment, document_key(collection, name), wait_seconds, quiet=quiet)
    if inspected.signature is not None:
        keys = deployment.scheme.keys(inspected.signature, deployment.key)
        return Side(name, inspected.signature, keys, inspected)
    return Side(name, inspected.states[0].signature if inspected.states else None, None, inspected)


def _side_of_file(deployment: Deployment, path: str) -> Side:
    try:
        signature, text = _signed(deployment, path)
    except InvalidMessageError as error:
        raise InvalidMessageError(error.reason, f"{escaped(path, PATH_CHARACTERS)}: {error.detail}") from None
    keys = deployment.scheme.keys(signature, deployment.key) if signature.n_bytes else None
    return Side(path, signature, keys, text=text)


def _signed(deployment: Deployment, path: str) -> tuple[Signature, str]:
    """Return the signature and the text of the only document of a file, which may have no words."""
    records: list[ConsumerRecord] = []
    found = islice(read([path], deployment.key, rules=deployment.mail_rules()), 2)
    for item in found:
        if isinstance(item, Refused):
            raise UnreadableFileError(f"{escaped(path, PATH_CHARACTERS)}: {item.reason}")
        records.append(item.record)
    if len(records) != 1:
        raise InvalidMessageError(Reason.INVALID_MESSAGE, "expected one document in the file")
    job = embedded(deployment)
    unsigned = job.read(records[0])
    if isinstance(unsigned, Removal):
        raise InvalidMessageError(Reason.INVALID_MESSAGE, "expected a document, not a removal")
    return job.signer.sign(*unsigned), unsigned.document.text or ""


def _in_order(one: Side, other: Side) -> tuple[Side, Side]:
    """Return the document that came later, then the other one.

    A document that was found related to another one came later than that.
    """
    named = _names(one, other), _names(other, one)
    is_later = named[0] if named[0] != named[1] else _arrival(one) >= _arrival(other)
    return (one, other) if is_later else (other, one)


def _names(one: Side, other: Side) -> bool:
    number = other.state.number if other.state else 0
    return any(pair.number == number for pair in (one.state.pairs if one.state else ()))


def _arrival(side: Side) -> tuple[int, int, tuple[int, str, int, int, str]]:
    """Return the sort key of arrivals: documents of the index by the time of their registration."""
    order = side.signature.order if side.signature else (0, "", 0, 0, "")
    return (side.state.registered_at_ms, side.state.number, order) if side.state else (0, 0, order)


def _candidate(later: Side, earlier: Side) -> Candidate:
    """Return the earlier document as a candidate with the keys that both share.

    Whether these are rare is not known without the index, so they are taken for rare.
    """
    signature, ours, theirs = earlier.signature, later.keys or _NO_KEYS, earlier.keys or _NO_KEYS
    if signature is None:
        raise ValueError(f"a signature of {earlier.name!r} expected")
    match = KeyMatch(
        len(set(ours.bands) & set(theirs.bands)),
        len(set(ours.anchors) & set(theirs.anchors)),
        by_digest=bool(ours.digest) and ours.digest == theirs.digest,
        by_lineage=ours.lineage is not None and ours.lineage == theirs.lineage,
    )
    return Candidate(earlier.state.number if earlier.state else 0, signature, match, len(theirs.anchors))


def _meeting(deployment: Deployment, later: Side, earlier: Side, compared: Compared) -> Meeting | None:
    ours, theirs = later.keys, earlier.keys
    if ours is None or theirs is None:
        return None
    bands, rows = deployment.scheme.bands.bands, deployment.scheme.bands.rows
    resemblance = compared.estimate.resemblance
    value, low, high = (
        hit_probability(point, bands, rows) for point in (resemblance.value, resemblance.low, resemblance.high)
    )
    return Meeting(
        ours.digest == theirs.digest,
        ours.lineage is not None and ours.lineage == theirs.lineage,
        (round(value, 4), round(low, 4), round(high, 4)),
    )


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
