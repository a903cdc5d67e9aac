"""Judge distances, places and confidence of answers, against the whole texts."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from rapidfuzz.distance import Levenshtein

from benchmarks.judgement.cases import Figure, Place, Told
from benchmarks.quality.labels import Measured, label
from nearstream.schemas.verdicts.events import ChangeEvent, Containment, kind_of


def is_changed(told: Told) -> bool:
    """Return whether a pair was told to differ."""
    return told.relation not in ("", "exact_duplicate", "unchanged")


def is_in_band(told: Told) -> bool | None:
    """Return whether the true distance is in the band of the event. A pair without event is left out."""
    if told.event is None:
        return None
    distance = told.event.evidence.distance
    return distance.low <= Levenshtein.distance(*told.forms) <= distance.high


def has_change(told: Told) -> bool:
    """Return whether an event counts a change of at least one character, and has a span at its place."""
    event = told.event
    if not isinstance(event, ChangeEvent):
        return False
    return event.evidence.distance.value >= 1 and event.added + event.removed >= 1 and _touches(told)


def has_span(told: Told) -> bool | None:
    """Return whether a near-duplicate has a new span that touches the new words. Other relations are left out."""
    return _touches(told) if told.relation == "near_duplicate" else None


def is_as_defined(told: Told) -> bool | None:
    """Return whether a pair is told to be near-duplicates. Pairs that are none by exact measurement are left out."""
    if label(*_measured(told)) != "near_duplicate":
        return None
    return told.relation == "near_duplicate"


def holds_older(told: Told) -> bool:
    """Return whether the older document is told to be inside the newer."""
    return isinstance(told.event, Containment) and told.event.inner == "older"


def lies_in_older(told: Told) -> bool:
    """Return whether the newer document is told to be inside the older."""
    return isinstance(told.event, Containment) and told.event.inner == "newer"


def is_at_place(told: Told) -> bool:
    """Return whether the common passages of an event are at the place, and hold at least half of it."""
    if told.event is None:
        return False
    spans = [span.newer for span in told.event.evidence.spans]
    start, stop = told.place
    inside = sum(_common(span, told.place) for span in spans)
    return inside >= (stop - start) / 2 and inside >= sum(end - begin for begin, end in spans) / 2


def honesty(told: Sequence[Told], _: Figure) -> Figure:
    """Return 1 less how far the confidence of events is from the share that is right.

    Events are classed by their relation, by whether their numbers are near a threshold, and by their confidence. The
    difference is the mean over all events.
    """
    classes: dict[tuple[str, bool, float], list[bool]] = defaultdict(list)
    for one in told:
        if one.event is not None:
            event = one.event
            key = kind_of(event), "near_threshold" in event.low_confidence, event.confidence
            classes[key].append(label(*_measured(one)) == one.relation)
    events = sum(map(len, classes.values()))
    error = sum(abs(confidence * len(right) - sum(right)) for (_, _, confidence), right in classes.items())
    return (1 - error / events if events else 0.0), events


def _measured(told: Told) -> tuple[Measured, Measured]:
    return Measured.of(told.pair.older.text), Measured.of(told.pair.newer.text)


def _touches(told: Told) -> bool:
    """Return whether a new span shares text with the place, or ends at it."""
    spans: Iterable[Place] = getattr(told.event, "new_spans", ())
    start, stop = told.place
    return any(begin <= stop and start <= end for begin, end in spans)


def _common(one: Place, other: Place) -> int:
    return max(0, min(one[1], other[1]) - max(one[0], other[0]))
