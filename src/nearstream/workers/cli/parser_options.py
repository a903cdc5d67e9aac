"""Add commands to a parser, and the options that several of them have."""

import argparse
from typing import TYPE_CHECKING

from nearstream.schemas.documents.document import DEFAULT_COLLECTION
from nearstream.workers.cli.arguments import collection, loopback, positive_seconds, references, share, since

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def add(
    commands: "Commands", name: str, function: str, summary: str, *, example: str, no: str = ""
) -> argparse.ArgumentParser:
    """Add a command that runs `function`, named as `module:function`.

    Args:
        commands: Where it is added.
        name: What is typed.
        function: What runs.
        summary: What it does, for the list of commands.
        example: A call with which its help ends.
        no: What exit code 1 means. Empty: the command has no such answer.
    """
    answer = f" Exit code 1: {no}." if no else ""
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=summary, description=f"{_sentence(summary)}.{answer}", epilog=f"example: {example}"
    )
    parser.set_defaults(command=function)
    return parser


def add_group(commands: "Commands", name: str, summary: str) -> "Commands":
    """Add a command that has commands of its own."""
    parser = commands.add_parser(name, help=summary, description=f"{_sentence(summary)}.")
    return parser.add_subparsers(required=True, metavar="action")


def _sentence(summary: str) -> str:
    return summary[0].upper() + summary[1:]


def add_since(options: argparse._ActionsContainer, what: str, default: int | None, ending: str = "") -> None:
    """Add an option for a time or an age."""
    meaning = f"{what} since a time with zone (2026-03-02T08:15Z) or an age (15m, 24h, 7d){ending}"
    options.add_argument("--since", type=since, default=default, metavar="T", help=meaning)


def add_paths(parser: argparse.ArgumentParser) -> None:
    """Add the files with documents, and `--quiet`."""
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="PATH",
        help="JSON Lines (.jsonl, .ndjson, or - for standard input), JSON (.json), texts, web pages (HTML), mail "
        "(.eml, mbox, Maildir), crawls (WARC, WET, ARC), and folders of these, also with gzip or zstd",
    )
    add_quiet(parser)


def add_json(parser: argparse._ActionsContainer, form: str) -> None:
    """Add `--json`, whose output has this form."""
    parser.add_argument("--json", action="store_true", help=f"print {form}")


def add_quiet(parser: argparse.ArgumentParser) -> None:
    """Add `--quiet`."""
    parser.add_argument("--quiet", action="store_true", help="show no progress")


def add_listener(parser: argparse.ArgumentParser, address: str) -> None:
    """Add `--listen` with this default, and `--collection`, for a server of mail."""
    parser.add_argument(
        "--listen",
        type=loopback,
        default=address,
        metavar="HOST:PORT",
        help=f"where the mail server connects, on loopback only (default {address})",
    )
    add_collection(parser, "messages")


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


def add_resemblance(parser: argparse.ArgumentParser, meaning: str) -> None:
    """Add `--resemblance`, 0.8 by default."""
    parser.add_argument(
        "--resemblance",
        type=share(includes_one=True),
        default=0.8,
        metavar="R",
        help=f"{meaning} (default 0.8)",
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
