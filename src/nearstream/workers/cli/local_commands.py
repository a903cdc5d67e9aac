"""Match documents in this process, without Kafka and Redis."""

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import UnsetType
from msgspec.structs import replace

from nearstream.schemas.documents.document import Document
from nearstream.schemas.topics.codec import InvalidMessageError
from nearstream.schemas.verdicts.events import RELATIONS, Event, Retraction
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.fingerprints.parameters import TextRules
from nearstream.streams.relations.sent_novelty import sent_spans
from nearstream.workers.cli import comparison, demo, family_report
from nearstream.workers.cli.event_lines import NOTHING_NEW, print_event, print_verdict
from nearstream.workers.cli.live_demo import show_day
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings
from nearstream.workers.files.content import UnreadableFileError
from nearstream.workers.files.source import Item, Refused, count_lines, read
from nearstream.workers.operations.reading import report
from nearstream.workers.operations.terminal import (
    PATH_CHARACTERS,
    Progress,
    escaped,
    print_json,
    print_line,
    print_message,
)
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.in_process import Embedded, Outcome, as_it_is, embedded

_REFERENCE = "reference"  # the collection of what others are compared with


def scan_files(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print what each document of files is to those before it."""
    deployment = Deployment.of(settings)
    job = embedded(deployment)

    async def run() -> Exit:
        found, left_out, incomplete, passed_over = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
        if options.reference and not await _read_references(deployment, job, options.reference):
            return Exit.UNREADABLE
        progress = Progress("scanned", count_lines(options.paths), options.quiet)
        items = read(options.paths, deployment.key, passed_over, settings.mail_content)
        async for outcome in job.outcomes(items, _against if options.reference else as_it_is):
            report(outcome.source, outcome.degraded, incomplete)
            if outcome.verdict:
                found[outcome.verdict.verdict] += 1
            _print_outcome(outcome, options, deployment.scheme.text)
            if outcome.refusal or outcome.is_empty:
                left_out["empty" if outcome.is_empty else "refused"] += 1
            else:
                progress.step()
        progress.end()
        if not options.quiet:
            for line in family_report.summary_lines(await job.families()):
                print_message(line)
            _print_counts(found, {"not whole": incomplete, "passed over": passed_over, "left out": left_out})
        return Exit.UNREADABLE if left_out else Exit.OK

    return asyncio.run(run())


async def _read_references(deployment: Deployment, job: Embedded, paths: Sequence[str]) -> bool:
    """Read the documents of references, and return whether none was refused."""
    refused = False
    items = read(paths, deployment.key, None, deployment.settings.mail_content)
    async for outcome in job.outcomes(items, _in_reference):
        if outcome.refusal:
            refused = True
            print_message(f"refused {escaped(outcome.source, PATH_CHARACTERS)}: {outcome.refusal}")
    job.forget_families()
    return not refused


def _in_reference(document: Document) -> Document:
    return replace(document, collection=_REFERENCE)


def _against(document: Document) -> Document:
    return replace(document, against=(_REFERENCE,))


def show_comparison(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print how the documents of two files relate, with all evidence."""
    try:
        compared = comparison.compare_files(Deployment.of(settings), (options.a, options.b))
    except (InvalidMessageError, UnreadableFileError) as error:
        print_message(f"nearstream: {error}")
        return Exit.UNREADABLE
    if options.json:
        print_json(comparison.as_object(compared))
    else:
        for line in comparison.as_text(compared):
            print_line(line)
    return Exit.OK if compared.is_related else Exit.NO


def run_demo(settings: Settings, options: argparse.Namespace) -> Exit:
    """Match the example documents and compare the relations found, or show a day."""
    folder = options.folder or demo.EXAMPLES
    if options.live:
        return show_day(settings, folder, options)
    known = demo.read_known_relations(folder)
    deployment = Deployment.of(settings)
    job = embedded(deployment)
    print_summary = print_message if options.json else print_line
    events: list[Event] = []

    async def run() -> None:
        async for outcome in job.outcomes(_demo_items(folder)):
            _print_outcome(outcome, options, deployment.scheme.text)
            events.extend((*outcome.events, outcome.verdict) if outcome.verdict else outcome.events)
        for line in ("", *family_report.summary_lines(await job.families())):
            print_summary(line)

    asyncio.run(run())
    agreement = demo.check_relations(known, events, frozenset(RELATIONS))
    for line in ("", *demo.table(agreement)):
        print_summary(line)
    return Exit.OK if agreement.is_sufficient else Exit.NO


def _print_counts(found: Counter[str], others: Mapping[str, Counter[str]]) -> None:
    print_message(f"found {_counted(found) or 'no document'}")
    for name, counts in others.items():
        if counts:
            print_message(f"{name} {_counted(counts)}")


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{number} {name}" for name, number in counts.most_common())


def _print_outcome(outcome: Outcome, options: argparse.Namespace, rules: TextRules) -> None:
    if outcome.refusal:
        print_message(f"refused {escaped(outcome.source, PATH_CHARACTERS)}: {outcome.refusal}")
    if outcome.is_empty:
        print_message(f"empty {escaped(outcome.source, PATH_CHARACTERS)}: expected a text with words")
    for event in _told(outcome, options):
        if options.json:
            print_json(_in_sent_text(event, outcome.text, rules), flush=True)
        elif isinstance(event, DocumentVerdict):
            print_verdict(event)
        else:
            print_event(event)


def _in_sent_text(event: Event, text: str, rules: TextRules) -> Event:
    """Return a verdict with places of new text in the text as it was sent, or another event as it is."""
    if not isinstance(event, DocumentVerdict) or isinstance(event.novel_spans, UnsetType):
        return event
    return replace(event, novel_spans=sent_spans(event.novel_spans, text, rules))


def _told(outcome: Outcome, options: argparse.Namespace) -> Iterator[Event]:
    """Yield the verdict of a related document, or the events of its pairs, or a retraction."""
    verdict = outcome.verdict
    is_told = verdict is not None and (options.all or verdict.verdict not in NOTHING_NEW or bool(verdict.references))
    if verdict is not None and is_told and not options.events:
        yield verdict
    for event in outcome.events:
        if options.events or isinstance(event, Retraction):
            yield event


def _demo_items(folder: Path) -> Iterator[Item | Refused]:
    """Yield the example documents, then the removal of the last one."""
    last = None
    for item in read([str(folder / "documents.jsonl")]):
        yield item
        if isinstance(item, Item):
            last = item.record
    if last is not None:
        key = json.loads(last.value or b"{}")["id"].encode()
        yield Item("the removal", last._replace(offset=last.offset + 1, key=key, value=None))
