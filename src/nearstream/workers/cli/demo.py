"""Match the example documents, and compare the relations found with those known from the history of the texts."""

import argparse
import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from nearstream.schemas.topics.codec import decode_document
from nearstream.schemas.verdicts.events import Containment, Event, Retraction, kind_of
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.workers.cli.arguments import declare
from nearstream.workers.cli.scan import add_choice, print_outcome
from nearstream.workers.cli.stats import summary_lines
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings, load
from nearstream.workers.operations.terminal import print_line, print_message
from nearstream.workers.pipeline.deployment import Deployment

if TYPE_CHECKING:
    from nearstream.workers.files.source import Item, Refused

EXAMPLES = Path(str(files("nearstream"))) / "examples"
AGREEMENT_MIN = 0.95
_COLUMNS = ("relation", "known", "seen as such", "seen otherwise", "missed")


def add_demo(parser: argparse.ArgumentParser) -> None:
    """Declare `nearstream demo`."""
    few = "too few of the known relations were found"
    declare(parser, run_demo, example="nearstream demo --events", no=few)
    add_choice(parser)
    parser.add_argument(
        "--live", action="store_true", help="show the live page over a made-up day instead, until Ctrl-C"
    )


def run_demo(settings: Settings, options: argparse.Namespace) -> Exit:
    """Match the example documents and compare the relations found, or show a day."""
    from nearstream.workers.pipeline.in_process import embedded

    if options.live:
        return _show_day(settings)
    known = read_known_relations()
    deployment = Deployment.of(settings)
    job = embedded(deployment)
    print_summary = print_message if options.json else print_line
    events: list[Event] = []

    async def run() -> None:
        async for outcome in job.outcomes(_items()):
            print_outcome(outcome, options, deployment.scheme.text)
            events.extend((*outcome.events, outcome.verdict) if outcome.verdict else outcome.events)
        for line in ("", *summary_lines(await job.families())):
            print_summary(line)

    asyncio.run(run())
    agreement = check_relations(known, events)
    for line in ("", *table(agreement)):
        print_summary(line)
    return Exit.OK if agreement.is_sufficient else Exit.NO


def _show_day(settings: Settings) -> Exit:
    """Serve the live page over a made-up day until it is stopped, by default on a free port."""
    from nearstream.workers.http.demo import serve_demo  # it loads aiohttp

    if settings.api == load({}).api:
        settings = replace(settings, api="127.0.0.1:0")
    examples = [decode_document(line) for line in (EXAMPLES / "documents.jsonl").read_bytes().splitlines()]

    def opened(address: str) -> None:
        print_line(f"live page: {address}  (Ctrl-C ends it)", flush=True)

    print_message("matching the first half hour of a made-up day")
    asyncio.run(serve_demo(Deployment.of(settings), examples, opened))
    return Exit.OK


def _items() -> "Iterator[Item | Refused]":
    """Yield the example documents, then the removal of the last one."""
    from nearstream.workers.files.source import Item, read

    last = None
    for item in read([str(EXAMPLES / "documents.jsonl")]):
        yield item
        if isinstance(item, Item):
            last = item.record
    if last is not None:
        key = json.loads(last.value or b"{}")["id"].encode()
        yield Item("the removal", last._replace(offset=last.offset + 1, key=key, value=None))


class KnownRelation(msgspec.Struct, frozen=True):
    """One relation known from the history of the texts."""

    newer: str  # id of the newer document
    older: str  # id of the older document
    relation: str  # name of the relation, or `unrelated`
    inner: str = ""  # for a containment, `newer` or `older`: the document inside the other


@dataclass(frozen=True)
class Agreement:
    """How well the relations found agree with the known ones."""

    # For each relation: how many pairs have it, and how many of them were seen as such, otherwise, or not at all.
    rows: dict[str, tuple[int, ...]]
    # Share of the known relations that were seen as such. For an unrelated pair that means: neither an event nor a
    # family relates both.
    share: float

    @property
    def is_sufficient(self) -> bool:
        """Whether at least `AGREEMENT_MIN` of the known relations were seen as such."""
        return self.share >= AGREEMENT_MIN


@dataclass(frozen=True)
class _Found:
    """The verdicts and events of all documents. A relation is its name with the id of the inner document."""

    related: dict[str, dict[str, tuple[str, str]]]  # for each document, the others that events relate to it
    verdicts: dict[str, DocumentVerdict]  # the last verdict of each document

    def relation(self, one: str, other: str) -> tuple[str, str] | None:
        """Return the relation that an event names, or else the families of two documents."""
        if other in self.related.get(one, {}):
            return self.related[one][other]
        if self._in_one_family(one, other):
            return self._of_copies(self.verdicts[one], self.verdicts[other]), ""
        for each, of_family in ((one, other), (other, one)):
            for member, (relation, inner) in self.related.get(each, {}).items():
                if self._in_one_family(member, of_family):
                    return relation, inner if inner in ("", each) else of_family
        return None

    def _in_one_family(self, one: str, other: str) -> bool:
        held, beside = self.verdicts.get(one), self.verdicts.get(other)
        return held is not None and beside is not None and held.family.id == beside.family.id

    def _of_copies(self, one: DocumentVerdict, other: DocumentVerdict) -> str:
        if one.version == other.version:
            return "exact_duplicate"
        return "version" if one.lineage and one.lineage == other.lineage else "near_duplicate"


def read_known_relations() -> list[KnownRelation]:
    """Read the known relations of the example documents."""
    lines = (EXAMPLES / "relations.jsonl").read_bytes().splitlines()
    return [msgspec.json.decode(line, type=KnownRelation) for line in lines]


def check_relations(known: Iterable[KnownRelation], events: Iterable[Event]) -> Agreement:
    """Compare the known relations with the verdicts and events.

    A pair is seen if an event names it. Else a family shows it: both are copies in one family, or an event relates one
    of them to a copy of the other.
    """
    found = _found(events)
    counts: dict[str, Counter[str]] = {}
    for row in known:
        inner = {"newer": row.newer, "older": row.older}.get(row.inner, "")
        expected = None if row.relation == "unrelated" else (row.relation, inner)
        seen = found.relation(row.newer, row.older)
        result = "right" if seen == expected else "missed" if seen is None else "otherwise"
        counts.setdefault(row.relation, Counter()).update(("known", result))
    columns = ("known", "right", "otherwise", "missed")
    rows = {relation: tuple(count[column] for column in columns) for relation, count in sorted(counts.items())}
    total = sum(counts.values(), Counter())
    return Agreement(rows, total["right"] / max(total["known"], 1))


def table(agreement: Agreement) -> list[str]:
    """Format the agreement as aligned lines."""
    rows = [_COLUMNS, *((relation, *map(str, counts)) for relation, counts in agreement.rows.items())]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]
    lines.append(f"agreement {agreement.share:.1%}")
    return lines


def _found(events: Iterable[Event]) -> _Found:
    found = _Found(defaultdict(dict), {})
    for event in events:
        if isinstance(event, DocumentVerdict):
            found.verdicts[event.id] = event
        elif not isinstance(event, Retraction):
            inner = getattr(event, event.inner).id if isinstance(event, Containment) else ""
            found.related[event.newer.id][event.older.id] = kind_of(event), inner
            found.related[event.older.id][event.newer.id] = kind_of(event), inner
    return found
