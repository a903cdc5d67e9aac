"""Write the documents of files of which enough is new into another file."""

import argparse
import os
import re
import signal
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

from nearstream.workers.cli.arguments import file_name
from nearstream.workers.config.exit_codes import Exit, RefusalError
from nearstream.workers.operations.terminal import PATH_CHARACTERS, Progress, escaped, print_message, utc_time
from nearstream.workers.pipeline.deployment import Deployment

if TYPE_CHECKING:
    from nearstream.workers.operations.keeping.choosing import Choice

_COLUMNS = ("verdict", "of", "family", "novel")
_MAX_NEW = re.compile(r"(\d{1,9})(?:(?:\.(\d{1,3}))?(%))?")


def add_keep(parser: argparse.ArgumentParser) -> None:
    """Add `--keep` and its options."""
    group = parser.add_argument_group("a dataset without duplicates")
    group.add_argument(
        "--keep",
        type=file_name,
        metavar="OUT",
        help="write the documents of which enough is new into this file, as they came (texts, pages, mails, crawls: "
        "where they are), and print no verdicts",
    )
    group.add_argument(
        "--max-new",
        type=max_new,
        metavar="N|P%",
        help="how many characters of a dropped document are in no kept one, at most (default 100), and never more than "
        "a quarter of it",
    )
    group.add_argument("--columns", type=_columns, default=(), metavar="C,C", help=f"add these: {','.join(_COLUMNS)}")
    group.add_argument(
        "--report", type=file_name, metavar="FILE", help="say what was dropped for which: a page, or JSON (.json)"
    )
    group.add_argument("--overwrite", action="store_true", help="replace OUT and FILE if they exist")


def max_new(text: str) -> str:
    """Return a valid limit: characters, or percent of a document."""
    found = _MAX_NEW.fullmatch(text)
    if found is None or (found[3] and float(text[:-1]) > 100):
        raise argparse.ArgumentTypeError(f"a number of characters, or a share from 0% to 100% expected: {text}")
    return text


def _columns(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(text.split(",")))
    if not set(names) <= set(_COLUMNS):
        raise argparse.ArgumentTypeError(f"some of {','.join(_COLUMNS)} expected: {text}")
    return names


def wrong_use(options: argparse.Namespace) -> str:
    """Return what was expected of the options, nothing if they go together."""
    rest = [name for name in ("max_new", "columns", "report", "overwrite") if getattr(options, name)]
    if rest and not options.keep:
        return f"expected --keep OUT with --{rest[0].replace('_', '-')}"
    others = [name for name in ("reference", "all", "events", "json") if getattr(options, name)]
    written = [os.path.realpath(each) for each in (options.keep, options.report, options.index) if each]
    if options.keep and len({*written}) < len(written):
        return "expected another file for each of --keep, --report and --index"
    return f"expected --keep without --{others[0]}" if options.keep and others else ""


async def keep(deployment: Deployment, options: argparse.Namespace) -> Exit:
    """Write what is kept and the report, and print what was dropped."""
    from nearstream.workers.files.source import as_row, bytes_of, read
    from nearstream.workers.files.tables import Columns
    from nearstream.workers.operations.keeping.choosing import Limit, choose, index_of_kept
    from nearstream.workers.operations.keeping.reporting import Data, Sums, page
    from nearstream.workers.operations.keeping.writing import KeptFile, new_file
    from nearstream.workers.operations.signatures import report

    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGINT))  # which leaves no half of a file
    given = options.max_new or "100"
    sums = Sums(Limit(float(given.rstrip("%")), given.endswith("%")))
    refused, incomplete, passed_over = 0, Counter[str](), Counter[str]()
    progress = Progress("scanned", bytes_of(options.paths), options.quiet, place=0)
    run = f" ({utc_time(time.time_ns() // 1_000_000, 'milliseconds')})" if options.index else ""
    with ExitStack() as until_written, ExitStack() as files:
        out = files.enter_context(new_file(options.keep, replaces=options.overwrite))
        told = files.enter_context(new_file(options.report, replaces=options.overwrite)) if options.report else None
        data = Data(told) if told and options.report.endswith(".json") else None
        index = until_written.enter_context(index_of_kept(deployment, options.index, os.path.dirname(options.keep)))
        kept = files.enter_context(closing(KeptFile(out, options.columns)))
        columns = Columns(options.text_column, options.id_column, kept.begin)
        found = read(options.paths, deployment.key, passed_over, deployment.mail_rules(), columns)
        items = (as_row(item, columns) for item in progress.reach(found))
        async for choice in choose(deployment, index, items, sums.limit, run):
            report(choice.outcome.source, choice.outcome.degraded, incomplete)
            refused += _say_refusal(choice)
            dropped = sums.take(choice)
            if dropped and data:
                data.take(dropped)
            if not dropped and choice.item.stored:
                kept.write(choice.item.source, choice.item.stored, _told(choice))
            progress.step()
        progress.end()
        if refused and not sums.characters:
            raise RefusalError("nothing was kept, because nothing could be read", Exit.UNREADABLE)
        if data:
            data.end(sums)
        elif told:
            told.write(page(sums))
    for line in (sums.headline, sums.loss):
        print_message(line)
    return Exit.UNREADABLE if refused else Exit.OK


def require_outside(path: str, paths: Sequence[str]) -> None:
    """Refuse to write a file that is read, or is read as part of a folder."""
    target = os.path.realpath(path)
    is_hidden = os.path.basename(target).startswith(".")
    for each in map(os.path.realpath, paths):
        if target == each or (not is_hidden and os.path.isdir(each) and target.startswith(os.path.join(each, ""))):
            way = "write it elsewhere, or begin its name with a dot"
            raise RefusalError(f"{path}: it is among what is read, {way}", Exit.USAGE)


def _say_refusal(choice: "Choice") -> bool:
    """Print why nothing was decided about a document, and return whether there was a reason."""
    outcome = choice.outcome
    why = outcome.refusal or ("expected a text with words" if outcome.is_empty else "")
    if why:
        is_kept = "kept, not decided" if choice.item.stored else "refused"
        print_message(f"{is_kept} {escaped(outcome.source, PATH_CHARACTERS)}: {why}")
    return bool(why)


def _told(choice: "Choice") -> dict[str, str | int | None]:
    """Return the values of the columns, nothing for what could not be read."""
    if choice.outcome.refusal:
        return {}
    new = choice.new if choice.characters else None
    return {"verdict": choice.verdict, "of": choice.of, "family": choice.family, "novel": new}
