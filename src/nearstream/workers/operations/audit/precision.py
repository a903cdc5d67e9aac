"""Measure the precision of a running deployment: the share of its pairs that really belong together.

Nobody judges the pairs. A field that no rule uses separates them from random pairs: how far apart two documents were
observed, and whether they are from two hosts. Exact duplicates are certain pairs, and documents of the window that are
drawn by chance are random ones. Source: Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, section 3.8.3:
pairs that do not belong together are random in such a field, pairs that do are not.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from math import sqrt
from random import Random
from statistics import fmean, variance
from typing import NamedTuple
from urllib.parse import urlsplit

from nearstream.schemas.documents.document import document_key
from nearstream.schemas.documents.evidence import DocumentRef
from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.verdicts.events import Event, PairEvent, Retraction, kind_of
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.estimates.comparing import same_lineage
from nearstream.workers.operations.audit.window import Window, too_large

STATES_MAX = 2_000_000  # states of documents in a window, about 500 bytes each
CERTAIN_MIN = 10  # exact duplicates without which there is nothing to compare with
_RANDOM_PARTNERS = 10
_SEED = 2011
_HOUR_MS = 3_600_000
_Z_95 = 1.959964
_RANGES = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9)


class Observed(NamedTuple):
    """A state of a document of the window. States sort as newer and older."""

    observed_at_ms: int  # when it was observed
    id: str  # the id of the document
    version: str  # the version of the state
    collection: str  # its collection
    lineage: str | None  # its lineage
    host: str  # The host of its URL. Empty: it has none.


class Found(NamedTuple):
    """A pair of the window that has an event."""

    kind: str  # the relation
    resemblance: float  # its estimate
    newer: Observed  # the newer state
    older: Observed  # the older state


def _hours(newer: Observed, older: Observed) -> float:
    return (newer.observed_at_ms - older.observed_at_ms) / _HOUR_MS


def _other_host(newer: Observed, older: Observed) -> float | None:
    return float(newer.host != older.host) if newer.host and older.host else None


# Fields that no rule uses, by name. A pair may lack one.
FIELDS: Mapping[str, Callable[[Observed, Observed], float | None]] = {
    "hours_apart": _hours,
    "other_host": _other_host,
}


@dataclass(frozen=True)
class Mean:
    """The mean of a field over some pairs."""

    value: float  # the mean
    squared_error: float  # square of its standard error
    pairs: int  # number of pairs, at least 2

    @classmethod
    def of(cls, values: Sequence[float]) -> "Mean | None":
        """Return the mean of a field. None: fewer than two pairs have it."""
        if len(values) < 2:
            return None
        return cls(fmean(values), variance(values) / len(values), len(values))


@dataclass(frozen=True)
class Share:
    """The share of true pairs in a group."""

    group: str  # a relation, or the lowest resemblance of a range
    pairs: int  # pairs of the group that have the field
    mean: float  # mean of the field over them
    share: float  # the share of true pairs, which chance may carry a little below 0 or above 1
    low: float  # lower end of its 95 % interval
    high: float  # upper end of its 95 % interval


@dataclass(frozen=True)
class FieldPrecision:
    """The precision by one field."""

    field: str  # its name in `FIELDS`
    certain: Mean | None  # its mean over exact duplicates, or None if fewer than two have it
    random: Mean | None  # its mean over random pairs, or None if fewer than two have it
    # The precision by relation and by resemblance. Empty if the field does not separate these pairs.
    shares: tuple[Share, ...]


@dataclass(frozen=True)
class Precision:
    """The precision in a window."""

    states: int  # states of documents in the window
    pairs: int  # pairs with an event, both of which are in the window and of two lineages
    fields: tuple[FieldPrecision, ...]  # the precision by each field


async def audit_precision(window: Window) -> Precision:
    """Measure the precision of a deployment on the documents of a window.

    Removed documents are left out. So are states of one lineage, because the rules do use the lineage.
    """
    states = await _states(window)
    found: dict[str, Found] = {}
    async with aclosing(window.events()) as events:
        async for event in events:
            pair = _pair(event, states)
            if pair is not None:
                found[event.event_id] = pair
    observed = [state for versions in states.values() for state in versions.values()]
    return measure(observed, list(found.values()))


def measure(observed: Sequence[Observed], found: Sequence[Found]) -> Precision:
    """Return the share of true pairs among those that were found in all states of a window, by each field."""
    random = list(_random_pairs(observed, found))
    return Precision(len(observed), len(found), tuple(_by_field(name, found, random) for name in FIELDS))


def _by_field(name: str, found: Sequence[Found], random: Sequence[tuple[Observed, Observed]]) -> FieldPrecision:
    value = FIELDS[name]
    of_random = [each for pair in random if (each := value(*pair)) is not None]
    groups: dict[str, list[float]] = {}
    for pair in found:
        each = value(pair.newer, pair.older)
        if each is not None:
            for group in _groups(pair):
                groups.setdefault(group, []).append(each)
    certain, drawn = Mean.of(groups.pop("exact_duplicate", [])), Mean.of(of_random)
    shares: tuple[Share, ...] = ()
    if certain and drawn and certain.pairs >= CERTAIN_MIN and is_telling(certain, drawn):
        means = {group: mean for group in sorted(groups) if (mean := Mean.of(groups[group])) is not None}
        shares = tuple(_share(group, mean, certain, drawn) for group, mean in means.items())
    return FieldPrecision(name, certain, drawn, shares)


def _share(group: str, mean: Mean, certain: Mean, random: Mean) -> Share:
    share = true_share(mean.value, certain.value, random.value)
    return Share(group, mean.pairs, mean.value, share, *share_interval(mean, certain, random))


def _groups(pair: Found) -> Iterator[str]:
    yield pair.kind
    if pair.kind != "exact_duplicate":
        yield f"{max(low for low in _RANGES if low <= pair.resemblance):.1f}"


def _random_pairs(observed: Sequence[Observed], found: Sequence[Found]) -> Iterator[tuple[Observed, Observed]]:
    """Yield the newer state of each found pair with earlier states of its collection, as the index might have."""
    by_collection: dict[str, list[Observed]] = {}
    for state in observed:
        by_collection.setdefault(state.collection, []).append(state)
    for states in by_collection.values():
        states.sort(key=_order)
    random = Random(_SEED)  # noqa: S311 - a sample is no secret
    for pair in found:
        states = by_collection[pair.newer.collection]
        earlier = bisect_left(states, _order(pair.newer), key=_order)
        for _ in range(_RANDOM_PARTNERS if earlier else 0):
            other = states[random.randrange(earlier)]
            if not same_lineage(pair.newer, other):
                yield pair.newer, other


def _order(state: Observed) -> tuple[int, str, str]:
    return state[:3]


async def _states(window: Window) -> dict[str, dict[str, Observed]]:
    """Return all states of the documents that were not removed, by document key and version."""
    found: dict[str, dict[str, Observed]] = {}
    size = 0
    async with aclosing(window.signatures()) as arrivals:
        async for arrival in arrivals:
            if arrival.signature is None:
                size -= len(found.pop(arrival.document_key, ()))
                continue
            versions = found.setdefault(arrival.document_key, {})
            size += arrival.signature.version not in versions
            versions[arrival.signature.version] = _observed(arrival.signature)
            if size > STATES_MAX:
                raise too_large(STATES_MAX, "states")
    return found


def _observed(signature: Signature) -> Observed:
    try:
        host = urlsplit(signature.url or "").hostname or ""
    except ValueError:
        host = ""
    return Observed(
        signature.observed_at_ms, signature.id, signature.version, signature.collection, signature.lineage, host
    )


def _pair(event: Event, states: Mapping[str, Mapping[str, Observed]]) -> Found | None:
    """Return the pair of an event, or None if it is not of this window or both are states of one lineage."""
    if isinstance(event, DocumentVerdict | Retraction) or event.same_lineage:
        return None
    newer, older = (_state(event, side, states) for side in (event.newer, event.older))
    if newer is None or older is None:
        return None
    return Found(kind_of(event), event.evidence.resemblance.value, newer, older)


def _state(event: PairEvent, side: DocumentRef, states: Mapping[str, Mapping[str, Observed]]) -> Observed | None:
    return states.get(document_key(event.collection, side.id), {}).get(side.version)


def true_share(mean: float, certain: float, random: float) -> float:
    """Return the share of true pairs by the means of a field.

    It is 1 at the mean of certain pairs, and 0 at that of random pairs of the same window. Both have to differ.
    """
    if certain == random:
        raise ValueError("two means expected: certain pairs have the same as random ones")
    return (random - mean) / (random - certain)


def is_telling(certain: Mean, random: Mean) -> bool:
    """Return whether the means of certain and random pairs differ by more than chance."""
    error = sqrt(certain.squared_error + random.squared_error)
    return abs(random.value - certain.value) > 2 * _Z_95 * error


def share_interval(mean: Mean, certain: Mean, random: Mean) -> tuple[float, float]:
    """Return the 95 % interval of the share of true pairs.

    It takes the pairs as independent, and each mean as normal (first-order propagation of errors). Its ends may be
    below 0 or above 1, as the share itself may.
    """
    share = true_share(mean.value, certain.value, random.value)
    spread = mean.squared_error + share**2 * certain.squared_error + (1 - share) ** 2 * random.squared_error
    half = _Z_95 * sqrt(spread) / abs(random.value - certain.value)
    return share - half, share + half
