"""Declare what runs a command, and the arguments that several commands have.

A function of one text checks and converts an argument: it is an argparse `type`, and raises `ArgumentTypeError`.
"""

import argparse
import math
import re
import time
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from nearstream.schemas.documents.document import DEFAULT_COLLECTION, ID_PATTERN, NAME_PATTERN, REFERENCES_MAX
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings

if TYPE_CHECKING:
    Actions = argparse._SubParsersAction[argparse.ArgumentParser]

Function = Callable[[Settings, argparse.Namespace], Exit]

DOCUMENTS_MAX, OFFSET_MAX = 10**12, 2**63 - 1
_DAY_SECONDS = 86_400
_LOOPBACK = re.compile(r"(?:127\.0\.0\.1|localhost):(\d{1,5})")
_PORT_MAX = 65_535
_WHOLE = re.compile(r"[0-9]{1,19}")
_AGE = re.compile(r"(\d{1,6})([smhd])")
_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": _DAY_SECONDS}


def declare(parser: argparse.ArgumentParser, function: Function, *, example: str, no: str = "") -> None:
    """Say what runs a command, what its exit code 1 means, if it has one, and end its help with an example."""
    parser.set_defaults(command=function)
    parser.description = f"{parser.description} Exit code 1: {no}." if no else parser.description
    parser.epilog = f"example: {example}"


def add(
    actions: "Actions", name: str, summary: str, function: Function, *, example: str, no: str = ""
) -> argparse.ArgumentParser:
    """Add one of the actions of a command with its summary for the list of actions, and declare it."""
    parser: argparse.ArgumentParser = actions.add_parser(name, help=summary, description=sentence(summary))
    declare(parser, function, example=example, no=no)
    return parser


def sentence(summary: str) -> str:
    """Return a summary as a sentence."""
    return f"{summary[0].upper()}{summary[1:]}."


def add_since(options: argparse._ActionsContainer, what: str, default: int | None) -> None:
    """Add an option for a time or an age."""
    meaning = f"{what} since a time with zone (2026-03-02T08:15Z) or an age (15m, 24h, 7d)"
    options.add_argument("--since", type=since, default=default, metavar="T", help=meaning)


def add_paths(parser: argparse.ArgumentParser) -> None:
    """Add the files with documents, and `--quiet`."""
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="PATH",
        help="JSON Lines (.jsonl, .ndjson, or - for standard input), JSON (.json), texts, web pages (HTML), mail "
        "(.eml, mbox, Maildir), crawls (WARC, WET), tables (CSV, Parquet), and folders of these, also with gzip "
        "or zstd",
    )
    for name in ("text", "id"):
        meaning = f"column of tables, with `scan --keep` also field of JSON, that holds the {name}s (default {name})"
        parser.add_argument(f"--{name}-column", default=name, metavar="C", help=meaning)
    add_quiet(parser)


def add_index(parser: argparse._ActionsContainer, meaning: str) -> None:
    """Add `--index`."""
    meaning = f"the index lies in this file, which is made if it is not there: {meaning}"
    parser.add_argument("--index", type=file_name, metavar="FILE", help=meaning)


def add_json(parser: argparse._ActionsContainer, form: str) -> None:
    """Add `--json`, whose output has this form."""
    parser.add_argument("--json", action="store_true", help=f"print {form}")


def add_quiet(parser: argparse.ArgumentParser) -> None:
    """Add `--quiet`."""
    parser.add_argument("--quiet", action="store_true", help="show no progress")


def add_collection(parser: argparse.ArgumentParser, what: str) -> None:
    """Add `--collection` of these."""
    meaning = f"collection of the {what} (default {DEFAULT_COLLECTION})"
    parser.add_argument("--collection", type=collection, default=DEFAULT_COLLECTION, metavar="C", help=meaning)


def add_against(parser: argparse.ArgumentParser) -> None:
    """Add `--against`."""
    parser.add_argument(
        "--against",
        type=references,
        default=frozenset(),
        metavar="C,C",
        help="collections to compare with too, at most 4",
    )


def add_timeout(parser: argparse.ArgumentParser, seconds: float) -> None:
    """Add `--timeout` with this default."""
    parser.add_argument(
        "--timeout",
        type=positive_seconds,
        default=seconds,
        metavar="S",
        help=f"seconds to wait for Kafka or Redis (default {seconds:g})",
    )


def document_id(text: str) -> str:
    """Return a valid document id."""
    # The shell may pass bytes that are not UTF-8, which Python then holds as surrogates.
    if not re.search(ID_PATTERN, text) or re.search("[\ud800-\udfff]", text):
        raise argparse.ArgumentTypeError("1 to 512 characters of UTF-8 without control characters expected")
    return text


def file_name(text: str) -> str:
    """Return the name of a file, which is neither standard output nor a variable of a shell that is not set."""
    if text in ("", "-"):
        raise argparse.ArgumentTypeError(f"the name of a file expected: {text or 'nothing'}")
    return text


def references(text: str) -> frozenset[str]:
    """Return the names of some collections, separated by commas."""
    names = frozenset(map(collection, text.split(",")))
    if len(names) > REFERENCES_MAX:
        raise argparse.ArgumentTypeError(f"at most {REFERENCES_MAX} collections expected")
    return names


def collection(text: str) -> str:
    """Return a valid name of a collection."""
    if not re.search(NAME_PATTERN, text):
        raise argparse.ArgumentTypeError("up to 63 lower-case letters, digits, dashes expected")
    return text


def loopback(text: str) -> str:
    """Return the `host:port` of a server without a password, which only this machine may reach."""
    found = _LOOPBACK.fullmatch(text)
    if found is None or int(found[1]) > _PORT_MAX:
        raise argparse.ArgumentTypeError("127.0.0.1:port or localhost:port expected")
    return text


def positive_seconds(text: str) -> float:
    """Return a number of seconds above 0, at most a day."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= _DAY_SECONDS:
        raise argparse.ArgumentTypeError(f"a number of seconds above 0, at most {_DAY_SECONDS} expected: {text}")
    return value


def whole_number(low: int, high: int) -> Callable[[str], int]:
    """Return a function that converts a text to a whole number from `low` to `high`."""

    def convert(text: str) -> int:
        if not _WHOLE.fullmatch(text) or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"a whole number from {low} to {high} expected: {text}")
        return int(text)

    return convert


def since(text: str) -> int:
    """Convert a time with zone in ISO 8601, or an age before now (90s, 15m, 24h, 7d), to milliseconds since 1970."""
    if age := _AGE.fullmatch(text):
        return max(round(1000 * (time.time() - int(age[1]) * _UNIT_SECONDS[age[2]])), 1)
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return max(round(1000 * moment.timestamp()), 1)
    except (ValueError, OverflowError):
        pass
    raise argparse.ArgumentTypeError(f"a time with zone (2026-03-02T08:15Z) or an age (15m, 24h, 7d) expected: {text}")
