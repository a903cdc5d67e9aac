"""Match the documents of files in this process, without Kafka and Redis."""

import argparse
import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from dataclasses import replace as with_fields
from importlib.resources import files
from os.path import isdir
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import to_builtins
from msgspec.structs import replace

from nearstream.schemas.documents.document import Document
from nearstream.schemas.verdicts.events import Event, Retraction
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.fingerprints.parameters import TextRules
from nearstream.workers.cli.arguments import add_index, add_json, add_paths, add_quiet, declare
from nearstream.workers.cli.events import NOTHING_NEW, print_event, print_verdict
from nearstream.workers.cli.keep import add_keep, keep, require_outside, wrong_use
from nearstream.workers.cli.stats import SUMMARY, select, summary_lines
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings
from nearstream.workers.operations.terminal import PATH_CHARACTERS, Progress, escaped, print_json, print_message
from nearstream.workers.pipeline.deployment import Deployment

if TYPE_CHECKING:
    from nearstream.streams.signing.scheme import Scheme
    from nearstream.workers.files.tables import Columns
    from nearstream.workers.pipeline.in_process import Embedded, Outcome
    from nearstream.workers.sqlite.file import IndexFile

EXAMPLES = Path(str(files("nearstream"))) / "examples"
TEXTS_MAX = 1 << 26  # characters of earlier texts that are kept
SOURCES_MAX = 250_000  # documents of which is known where they were read
_REFERENCE = "reference"  # the collection of what others are compared with
# What it means that a document was read with a loss.
_LOSSES = {
    "alternatives_differ": "the text and the HTML of a mail differ",
    "charset_replaced": "the charset was guessed, or characters were replaced",
    "content_unread": "a mail has hardly any words, and something that is no text",
    "extraction_fallback": "tags of HTML were only stripped",
    "main_content_small": "all text of a page was taken, because its main content is small",
    "parse_fallback": "a part of a mail was read as it was sent",
    "shell": "a page shows its text only with scripts",
    "structure_repaired": "a mail was understood otherwise than it declares",
    "truncated": "cut at a limit",
}


class EarlierTexts:
    """The texts of the newest documents, for the exact distance of a document to its counterpart."""

    def __init__(self, scheme: "Scheme") -> None:
        self._scheme = scheme
        self._texts: dict[tuple[str, str], str] = {}
        self._characters = 0

    def take(self, outcome: "Outcome") -> int | None:
        """Keep the text of a document, and return its exact distance to the counterpart of its verdict.

        None: it has no counterpart, the text of that is not kept any more, or both are too long together.
        """
        verdict, text = outcome.verdict, outcome.text
        if verdict is None:
            return None
        other = self._texts.get((verdict.of.id, verdict.of.version)) if verdict.of else None
        self._texts[verdict.id, verdict.version] = text
        self._characters += len(text)
        while self._characters > TEXTS_MAX:
            self._characters -= len(self._texts.pop(next(iter(self._texts))))
        if other is None or verdict.verdict == "exact_duplicate":
            return None
        from nearstream.streams.signing.exact import exact_distance, normal_text

        expected = verdict.distance.high if verdict.distance else None
        return exact_distance(normal_text(text, self._scheme), normal_text(other, self._scheme), expected=expected)


def add_scan(parser: argparse.ArgumentParser) -> None:
    """Declare `nearstream scan`."""
    declare(parser, scan_or_keep, example="nearstream scan --all articles/ mirror.jsonl.gz")
    add_paths(parser)
    parser.add_argument(
        "--reference",
        action="append",
        metavar="PATH",
        help="documents with which all are compared too, and that are compared with none (more than once: several)",
    )
    add_index(parser, "documents of earlier runs count too, and those of this one are kept")
    parser.add_argument(
        "--members", action="store_true", help="list all members of the families that are named at the end"
    )
    add_choice(parser)
    add_keep(parser)


def add_demo(parser: argparse.ArgumentParser) -> None:
    """Declare `nearstream demo`."""
    declare(parser, scan_files, example="nearstream demo --events")
    documents = [str(EXAMPLES / "documents.jsonl")]
    parser.set_defaults(paths=documents, reference=None, index=None, text_column="text", id_column="id", members=False)
    add_choice(parser)
    add_quiet(parser)


def add_choice(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose what is printed about documents."""
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--all", action="store_true", help="also print the verdicts on unique and unchanged documents")
    choice.add_argument("--events", action="store_true", help="print the events of pairs instead of the verdicts")
    add_json(parser, "verdicts, or events, as JSON Lines")


def scan_or_keep(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print what documents are to those before them, or keep those of which enough is new."""
    if wrong := wrong_use(options):
        print_message(f"nearstream scan: {wrong}")
        return Exit.USAGE
    for path in filter(None, (options.keep, options.report, options.index)):
        require_outside(path, options.paths)
    return asyncio.run(keep(Deployment.of(settings), options)) if options.keep else scan_files(settings, options)


def scan_files(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print what each document of files is to those before it."""
    deployment = Deployment.of(with_fields(settings, references=_REFERENCE) if options.reference else settings)
    with nullcontext() if options.index is None else deployment.index_file(options.index) as index:
        seen = _Seen(names_files=len(options.paths) > 1 or isdir(options.paths[0]))
        return asyncio.run(_scan(deployment, options, index, seen))


async def _scan(deployment: Deployment, options: argparse.Namespace, index: "IndexFile | None", seen: "_Seen") -> Exit:
    from nearstream.workers.files.source import are_files, bytes_of, read
    from nearstream.workers.files.tables import Columns
    from nearstream.workers.operations.signatures import report
    from nearstream.workers.pipeline.in_process import BATCH, as_it_is, embedded

    job, columns = embedded(deployment, index), Columns(options.text_column, options.id_column)
    if options.reference and not await _read_references(deployment, job, options.reference, columns):
        return Exit.UNREADABLE
    texts = EarlierTexts(deployment.scheme)
    progress = Progress("scanned", bytes_of(options.paths), options.quiet, place=0)
    items = progress.reach(read(options.paths, deployment.key, seen.passed_over, deployment.mail_rules(), columns))
    batch = BATCH if are_files(options.paths) else 1  # a pipe may be idle for long after its last line
    try:
        async for outcome in job.outcomes(items, _against if options.reference else as_it_is, batch):
            report(outcome.source, outcome.degraded, seen.incomplete)
            seen.take(outcome, options)
            print_outcome(outcome, options, deployment.scheme.text, texts.take(outcome), seen.sources)
            if not (outcome.refusal or outcome.is_empty):
                progress.step()
    except (asyncio.CancelledError, KeyboardInterrupt):
        await _sum_up(job, seen, progress, options)
        raise
    await _sum_up(job, seen, progress, options)
    return Exit.UNREADABLE if seen.left_out else Exit.OK


@dataclass
class _Seen:
    """What was found in the documents that were read."""

    names_files: bool  # there are several files
    found: Counter[str] = field(default_factory=Counter)  # verdicts by kind
    left_out: Counter[str] = field(default_factory=Counter)  # by reason
    incomplete: Counter[str] = field(default_factory=Counter)  # what was lost in reading
    passed_over: Counter[str] = field(default_factory=Counter)  # records of crawls that hold no page
    sources: dict[str, str] = field(default_factory=dict)  # where each id was read
    members: dict[str, list[str]] = field(default_factory=dict)  # ids by family, if these are shown

    def take(self, outcome: "Outcome", options: argparse.Namespace) -> None:
        """Count an outcome."""
        verdict = outcome.verdict
        if verdict is not None:
            self.found[verdict.verdict] += 1
            if self.names_files and len(self.sources) < SOURCES_MAX:
                self.sources[verdict.id] = outcome.source
            if options.members:
                self.members.setdefault(verdict.family.id, []).append(verdict.id)
        if outcome.refusal or outcome.is_empty:
            self.left_out["empty" if outcome.is_empty else "refused"] += 1


async def _sum_up(job: "Embedded", seen: _Seen, progress: Progress, options: argparse.Namespace) -> None:
    progress.end()
    if options.quiet:
        return
    of_this = (each async for each in job.families() if not each.founder.startswith(f"{_REFERENCE}/"))
    for line in summary_lines(await select(of_this, SUMMARY, Progress("families", quiet=True)), seen.members):
        print_message(line)
    print_message(f"found {_counted(seen.found) or 'no document'}")
    losses = Counter({f"{name} ({_LOSSES.get(name, name)})": count for name, count in seen.incomplete.items()})
    for name, counts in (("read with losses:", losses), ("passed over", seen.passed_over), ("left out", seen.left_out)):
        if counts:
            print_message(f"{name} {_counted(counts)}")


async def _read_references(deployment: Deployment, job: "Embedded", paths: Sequence[str], columns: "Columns") -> bool:
    """Read the documents of references, and return whether none was refused."""
    from nearstream.workers.files.source import read

    refused = False
    items = read(paths, deployment.key, None, deployment.mail_rules(), columns)
    async for outcome in job.outcomes(items, _in_reference):
        if outcome.refusal:
            refused = True
            print_message(f"refused {escaped(outcome.source, PATH_CHARACTERS)}: {outcome.refusal}")
    return not refused


def _in_reference(document: Document) -> Document:
    return replace(document, collection=_REFERENCE)


def _against(document: Document) -> Document:
    return replace(document, against=(_REFERENCE,))


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{number} {name}" for name, number in counts.most_common())


def print_outcome(
    outcome: "Outcome",
    options: argparse.Namespace,
    rules: TextRules,
    distance_exact: int | None,
    sources: Mapping[str, str],
) -> None:
    """Print what came of a document, as the options choose, with places of its text as it was sent."""
    if outcome.refusal:
        print_message(f"refused {escaped(outcome.source, PATH_CHARACTERS)}: {outcome.refusal}")
    if outcome.is_empty:
        print_message(f"empty {escaped(outcome.source, PATH_CHARACTERS)}: expected a text with words")
    for event in _told(outcome, options):
        if options.json:
            told = to_builtins(_in_sent_text(event, outcome.text, rules))
            is_known = isinstance(event, DocumentVerdict) and distance_exact is not None
            more: dict[str, object] = {"distance_exact": distance_exact} if is_known else {}
            if isinstance(event, DocumentVerdict) and event.id in sources:
                more["source"], more["of_source"] = sources[event.id], sources.get(event.of.id) if event.of else None
            print_json(told | more, flush=True)
        elif isinstance(event, DocumentVerdict):
            print_verdict(event, distance_exact, _places(event, sources))
        else:
            print_event(event)


def _places(verdict: DocumentVerdict, sources: Mapping[str, str]) -> str:
    """Return where both documents of a verdict were read, unless their ids say so."""
    of = verdict.of.id if verdict.of and verdict.verdict not in NOTHING_NEW else ""
    places = [sources[each] if each in sources and sources[each] != each else "" for each in (verdict.id, of)]
    return f"in {escaped(places[0])}{places[1] and f', before in {escaped(places[1])}'}" if places[0] else ""


def _in_sent_text(event: Event, text: str, rules: TextRules) -> Event:
    """Return a verdict with places of new text in the text as it was sent, or another event as it is."""
    from nearstream.streams.relations.novelty import sent_spans

    if not isinstance(event, DocumentVerdict) or not event.novel_spans:
        return event
    return replace(event, novel_spans=sent_spans(event.novel_spans, text, rules))


def _told(outcome: "Outcome", options: argparse.Namespace) -> Iterator[Event]:
    """Yield the verdict of a related document, or the events of its pairs, or a retraction."""
    verdict = outcome.verdict
    is_told = verdict is not None and (options.all or verdict.verdict not in NOTHING_NEW or bool(verdict.references))
    if verdict is not None and is_told and not options.events:
        yield verdict
    for event in outcome.events:
        if options.events or isinstance(event, Retraction):
            yield event
