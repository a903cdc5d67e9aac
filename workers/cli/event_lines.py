"""Show events as lines for a person, of at most 120 columns, or as JSON."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from msgspec import UnsetType, to_builtins

from nearstream.schemas.events import (
    ChangeEvent,
    Containment,
    Event,
    ExactDuplicate,
    RelationEvent,
    Retraction,
    kind_of,
)
from nearstream.schemas.verdict import DocumentVerdict
from nearstream.workers.cli.fitting import COLUMNS, KIND_COLUMNS, cut, sentence, with_details
from nearstream.workers.cli.verdict_lines import reference_line, verdict_line
from nearstream.workers.operations.terminal import escaped, print_line

if TYPE_CHECKING:
    from nearstream.workers.operations.tail import Arrival  # it loads the Kafka client, which `scan` does not need

UNKNOWN = "unknown_record"
_COLORS = {
    "exact_duplicate": "32",
    "near_duplicate": "36",
    "containment": "34",
    "version": "33",
    "rearranged": "35",
    "overlap": "90",
    "retraction": "31",
    "unique": "",
    "unchanged": "90",
}
_UNKNOWN_COLOR = "31"
_VERBS = {"exact_duplicate": "equals", "version": "updates"}


def line(event: Event) -> str:
    """Format an event as one line: type, ids, then the details that fit.

    Ids that are too long lose their middle.
    """
    if isinstance(event, DocumentVerdict):
        return verdict_line(event, f"verdict {event.verdict}: ")
    if isinstance(event, Retraction):
        after = ": events that name it are void"
        return f"{'removed':<{KIND_COLUMNS}} {cut(event.document_id, COLUMNS - KIND_COLUMNS - 1 - len(after))}{after}"
    kind = kind_of(event)
    verb = _VERBS.get(kind, "~")
    if isinstance(event, Containment):
        verb = "lies in" if event.inner == "newer" else "holds"
    text = sentence(f"{kind:<{KIND_COLUMNS}} ", event.newer.id, verb, event.older.id)
    return with_details(text, list(_details(event)))


def print_event(event: Event) -> None:
    """Print an event as one line, at once, with its type in color."""
    kind = event.verdict if isinstance(event, DocumentVerdict) else kind_of(event)
    print_line(line(event), color=_COLORS[kind], flush=True)


def print_verdict(verdict: DocumentVerdict) -> None:
    """Print a verdict and its references, one line each, at once and in color."""
    print_line(verdict_line(verdict), color=_COLORS[verdict.verdict], flush=True)
    for each in verdict.references or ():
        print_line(reference_line(each), flush=True)


def print_arrival(arrival: "Arrival") -> None:
    """Print the event of a record as one line, or its place."""
    if arrival.event is not None:
        print_event(arrival.event)
        return
    record, start = arrival.record, f"{'unknown':<{KIND_COLUMNS}} "
    after = f" {record.partition} offset {record.offset} is no event of this release"
    topic = cut(record.topic, COLUMNS - len(start) - len(after))
    print_line(f"{start}{topic}{after}", color=_UNKNOWN_COLOR, flush=True)


def arrival_object(arrival: "Arrival") -> dict[str, Any]:
    """Return an event with the time of its detection, for JSON.

    A record that holds no event gives an object of the type `unknown_record`.
    """
    record, event = arrival.record, arrival.event
    if event is None:
        fields = {"type": UNKNOWN, "topic": record.topic, "partition": record.partition, "offset": record.offset}
    else:
        fields = to_builtins(event)
    return {**fields, "detected_at": arrival.detected_at}


def _details(event: RelationEvent) -> Iterator[str]:
    evidence = event.evidence
    resemblance = evidence.resemblance
    is_unchanged = event.same_lineage and isinstance(event, ExactDuplicate)
    if isinstance(event, Containment):
        yield f", at {event.place[0]}-{event.place[1]}"
    elif is_unchanged:
        yield ", same lineage: unchanged"
    yield f", resemblance {resemblance.value:.2f}"
    yield f" ({resemblance.low:.2f}-{resemblance.high:.2f})"
    if event.same_lineage and not is_unchanged:
        yield ", same lineage"
    for reason in event.low_confidence:
        yield f", weak: {escaped(reason)}"
    if isinstance(event, ChangeEvent) and not isinstance(event.added, UnsetType):
        yield f", +{event.added} -{event.removed}"
    if not isinstance(evidence.distance, UnsetType):
        yield f", distance {evidence.distance.value}"
    if not isinstance(evidence.containment, UnsetType):
        shares = evidence.containment
        yield f", newer in older {shares.newer_in_older:.2f}, older in newer {shares.older_in_newer:.2f}"
    yield f", {evidence.keys.bands} bands and {evidence.keys.anchors} anchors shared"
