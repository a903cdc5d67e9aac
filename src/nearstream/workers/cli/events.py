"""Print verdicts and events, each as a line, and follow them as they arrive."""

import argparse
import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import aclosing
from typing import Any

from msgspec import UnsetType, to_builtins

from nearstream.schemas.documents.evidence import DocumentRef, ReferenceMatch
from nearstream.schemas.documents.record import ConsumerRecord
from nearstream.schemas.topics.codec import time_sent
from nearstream.schemas.verdicts.events import (
    RELATIONS,
    ChangeEvent,
    Containment,
    Event,
    ExactDuplicate,
    RelationEvent,
    Retraction,
    kind_of,
)
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.workers.cli.arguments import add_json, add_since, add_timeout, collection, declare
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings
from nearstream.workers.operations.terminal import escaped, print_json, print_line, printable

KIND_COLUMNS = 16
NOTHING_NEW = ("unique", "unchanged")
_GONE = "one that is not in the index now"
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


def add_tail(parser: argparse.ArgumentParser) -> None:
    """Declare `nearstream tail`."""
    declare(parser, show_events, example="nearstream tail --from-start --type near_duplicate --json")
    start = parser.add_mutually_exclusive_group()
    start.add_argument("--from-start", dest="since", action="store_const", const=0, help="begin with the oldest event")
    add_since(start, "begin with the events", None)
    parser.add_argument("--until-end", action="store_true", help="stop after the events that exist now")
    types = ("verdict", *RELATIONS, "retraction")
    of_type = f"only events of this type, may be repeated: {', '.join(types)}"
    parser.add_argument("--type", action="append", default=[], choices=types, metavar="T", help=of_type)
    parser.add_argument("--collection", type=collection, metavar="C", help="only events of this collection")
    add_json(parser, "events as JSON Lines, each with the time of its detection (detected_at)")
    add_timeout(parser, 10.0)


def show_events(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print events as they arrive."""
    # Imported on use, because this loads the Kafka client, which `scan` does not need.
    from nearstream.workers.kafka.records import follow_events

    async def run() -> None:
        following = follow_events(settings, options.timeout, since_ms=options.since, until_end=options.until_end)
        async with aclosing(following) as arrivals:
            async for record, event in arrivals:
                if not is_wanted(event, options.type, options.collection or ""):
                    continue
                if options.json:
                    print_json(arrival_object(record, event), flush=True)
                else:
                    print_arrival(record, event)

    asyncio.run(run())
    return Exit.OK


def is_wanted(event: Event | None, types: Sequence[str], collection: str) -> bool:
    """Return whether to show an event, or a record that is no event (None). No types and no collection mean all."""
    if event is None:
        return not types and not collection
    return (not types or kind_of(event) in types) and collection in ("", event.collection)


def print_arrival(record: ConsumerRecord, event: Event | None) -> None:
    """Print the event of a record as one line, or its place."""
    if event is not None:
        print_event(event)
        return
    place = f"{record.topic} {record.partition} offset {record.offset}"
    told = f"{'unknown':<{KIND_COLUMNS}} {place} is no event of this release"
    print_line(told, color=_UNKNOWN_COLOR, flush=True)


def arrival_object(record: ConsumerRecord, event: Event | None) -> dict[str, Any]:
    """Return an event with the time of its detection, for JSON.

    A record that holds no event gives an object of the type `unknown_record`.
    """
    if event is None:
        fields = {"type": UNKNOWN, "topic": record.topic, "partition": record.partition, "offset": record.offset}
    else:
        fields = to_builtins(event)
    return {**fields, "detected_at": time_sent(record.headers)}


def print_event(event: Event) -> None:
    """Print an event as one line, at once, with its type in color."""
    kind = event.verdict if isinstance(event, DocumentVerdict) else kind_of(event)
    print_line(line(event), color=_COLORS[kind], flush=True)


def print_verdict(verdict: DocumentVerdict, distance_exact: int | None = None, places: str = "") -> None:
    """Print a verdict with where its documents are, and its references, one line each, at once and in color."""
    told = verdict_line(verdict, distance_exact=distance_exact)
    print_line(f"{told}  {places}" if places else told, color=_COLORS[verdict.verdict], flush=True)
    for each in verdict.references or ():
        print_line(reference_line(each), flush=True)


def line(event: Event) -> str:
    """Format an event as one line: type, ids, details."""
    if isinstance(event, DocumentVerdict):
        return verdict_line(event, f"verdict {event.verdict}: ")
    if isinstance(event, Retraction):
        return f"{'removed':<{KIND_COLUMNS}} {printable(event.document_id)}: events that name it are void"
    kind = kind_of(event)
    verb = _VERBS.get(kind, "~")
    if isinstance(event, Containment):
        verb = "lies in" if event.inner == "newer" else "holds"
    ids = f"{printable(event.newer.id)} {verb} {printable(event.older.id)}"
    return with_details(f"{kind:<{KIND_COLUMNS}} {ids}", _details(event))


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
    if isinstance(event, ChangeEvent):
        yield f", +{event.added} -{event.removed}"
    yield f", distance {evidence.distance.value}"


def verdict_line(verdict: DocumentVerdict, start: str = "", distance_exact: int | None = None) -> str:
    """Format a verdict as one line: its kind (or `start`), documents, details."""
    start = start or f"{verdict.verdict:<{KIND_COLUMNS}} "
    if verdict.verdict in NOTHING_NEW:
        text = start + printable(verdict.id)
    else:
        of = printable(verdict.of.id) if verdict.of else _GONE
        text = f"{start}{printable(verdict.id)} {_verb(verdict)} {of}"
    return with_details(text, _verdict_details(verdict, distance_exact))


def reference_line(found: ReferenceMatch) -> str:
    """Format a reference as a line to follow that of the verdict."""
    start = f"{'':<{KIND_COLUMNS}} {found.relation} of {found.collection}/"
    return with_details(start + printable(found.id), [f"resemblance {found.resemblance.value:.2f}"])


def _verb(verdict: DocumentVerdict) -> str:
    if verdict.verdict == "exact_duplicate":
        return "equals"
    if verdict.of is None:
        return "~"
    is_newer = _order(verdict) > _order(verdict.of)
    if verdict.verdict == "version":
        return "updates" if is_newer else "precedes"
    if verdict.verdict == "containment" and not isinstance(verdict.inner, UnsetType):
        return "lies in" if (verdict.inner == "newer") == is_newer else "holds"
    return "~"


def _order(document: DocumentRef) -> tuple[object, ...]:
    return document.observed_at, document.id, document.version


def _verdict_details(verdict: DocumentVerdict, distance_exact: int | None) -> Iterator[str]:
    is_equal = verdict.verdict == "exact_duplicate"
    if not isinstance(verdict.novel, UnsetType) and not is_equal and verdict.verdict not in NOTHING_NEW:
        yield f", +{verdict.novel.value} new"
    if not isinstance(verdict.resemblance, UnsetType) and not is_equal:
        yield f", resemblance {verdict.resemblance.value:.2f}"
    if distance_exact is not None:
        yield f", distance {distance_exact} exact"
    elif not isinstance(verdict.resemblance, UnsetType) and not is_equal:
        yield f" ({verdict.resemblance.low:.2f}-{verdict.resemblance.high:.2f})"
    yield from _family_details(verdict)
    if distance_exact is None and not isinstance(verdict.distance, UnsetType) and not is_equal:
        yield f", distance {verdict.distance.value}"
    founder = verdict.family.founder
    if founder is not None and founder.id not in (verdict.id, verdict.of.id if verdict.of else ""):
        yield f", founded by {escaped(founder.id)}"
    for reason in verdict.degraded:
        yield f", degraded: {escaped(reason)}"


def _family_details(verdict: DocumentVerdict) -> Iterator[str]:
    if verdict.family.ordinal > 1:
        yield f", now {verdict.family.ordinal} alike"
    if verdict.family.sites > 1:
        yield f" on {verdict.family.sites} sites"


def with_details(text: str, details: Iterable[str]) -> str:
    """Append details in brackets, the most important first, each of which begins with its separator."""
    shown = "".join(details).removeprefix(", ")
    return f"{text}  [{shown}]" if shown else text
