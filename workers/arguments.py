"""What the command line takes: each command with its arguments."""

import argparse
import math
import re
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from schemas.dead_letter import Reason
from schemas.document import DEFAULT_COLLECTION, ID_PATTERN, NAME_PATTERN
from workers import commands, dlq_commands, index_commands, kafka_commands
from workers.demo import EXAMPLES
from workers.exits import Exit
from workers.run import ROLES
from workers.settings import Settings

Command = Callable[[Settings, argparse.Namespace], Exit]

_EPILOG = """exit codes: 0 done - 1 the answer is no, or a crash - 2 wrong usage - 65 unreadable input -
69 Kafka or Redis not reachable - 74 output cannot be written - 78 settings, rights or index do not fit -
130 interrupted"""


def parser() -> argparse.ArgumentParser:
    """The parser of all of it; `run` of what it gives is the command."""
    parser = argparse.ArgumentParser(
        prog="nearstream",
        description="Tells, while documents arrive, how each relates to those before it.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"nearstream {version('nearstream')}")
    known = parser.add_subparsers(required=True, metavar="command")
    _add_embedded(known)
    _add_kafka(known)
    _add_index(known)
    _add_letters(known)
    return parser


def _add_embedded(known: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Commands that need no server."""
    demo = _command(known, "demo", commands.demo, "stream the example documents; known against seen relations")
    demo.add_argument("folder", nargs="?", type=Path, default=EXAMPLES, help="holds documents.jsonl, relations.jsonl")
    demo.add_argument("--json", action="store_true", help="events as JSON Lines")
    scan = _command(known, "scan", commands.scan, "relations among the documents of files, in process")
    _add_paths(scan)
    scan.add_argument("--json", action="store_true", help="events as JSON Lines")
    compare = _command(known, "compare", commands.compare, "how two texts relate: verdict, evidence, picture")
    for name in ("a", "b"):
        compare.add_argument(name, metavar=name.upper(), help="a text, a JSON document (.json) or JSON Lines with one")
    compare.add_argument("--json", action="store_true", help="one JSON object")
    settings = _command(known, "settings", commands.show_settings, "every setting: variable, value, meaning")
    settings.add_argument("--json", action="store_true", help="one JSON object a line")


def _add_kafka(known: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Commands that talk to Kafka or Redis."""
    worker = _command(known, "worker", commands.worker, "run one worker process")
    worker.add_argument("role", nargs="?", choices=ROLES, default="all", help="which agents it runs (default all)")
    _add_timeout(worker, 30.0)
    topics = _command(known, "topics", kafka_commands.topics, "list, create or check the topics")
    topics.add_argument("action", nargs="?", choices=("list", "create", "check"), default="list")
    topics.add_argument("--replication", type=int, default=1, metavar="N", help="replicas of each topic (default 1)")
    topics.add_argument("--dry-run", action="store_true", help="create: alter nothing, tell what is missing or differs")
    topics.add_argument("--apply-config", action="store_true", help="create: set what differs; never partitions")
    topics.add_argument("--json", action="store_true", help="one JSON object a line")
    _add_timeout(topics, 10.0)
    produce = _command(known, "produce", kafka_commands.produce, "send the documents of files")
    _add_paths(produce)
    _add_timeout(produce, 10.0)
    tail = _command(known, "tail", kafka_commands.tail, "show events as they arrive")
    tail.add_argument("--from-start", action="store_true", help="begin with the oldest event")
    tail.add_argument("--until-end", action="store_true", help="stop at what is the end now")
    tail.add_argument("--json", action="store_true", help="events as JSON Lines")
    _add_timeout(tail, 10.0)
    lag = _command(known, "lag", kafka_commands.lag, "what the group has not acknowledged, in records and seconds")
    lag.add_argument("--max", type=int, metavar="N", help="exit code 1 if a partition is more records behind")
    lag.add_argument("--json", action="store_true", help="one JSON object a line")
    _add_timeout(lag, 10.0)
    doctor = _command(known, "doctor", commands.examine, "check rights, topics, memory, clocks, scheme; say what to do")
    doctor.add_argument("--json", action="store_true", help="one JSON object a line")
    _add_timeout(doctor, 5.0)


def _add_index(known: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Commands about the index."""
    inspect = _command(known, "inspect", index_commands.inspect_document, "what became of a document: states, buckets")
    inspect.add_argument("id", type=_document_id, metavar="ID", help="the document's id")
    inspect.add_argument(
        "--collection", type=_collection, default=DEFAULT_COLLECTION, metavar="C", help="its tenant (default default)"
    )
    inspect.add_argument("--json", action="store_true", help="one JSON object")
    inspect.add_argument("--quiet", action="store_true", help="no progress line")
    _add_timeout(inspect, 10.0)
    stats = _command(known, "stats", index_commands.stats, "how full the index is, what it takes, its hottest buckets")
    stats.add_argument("--json", action="store_true", help="one JSON object a line for each part")
    _add_timeout(stats, 10.0)
    _add_rebuild(
        known, "rebuild", index_commands.rebuild_index, "fill a lost index anew from the signatures; no events"
    )
    index = known.add_parser("index", help="a second scheme: list, build, switch, drop")
    actions = index.add_subparsers(required=True, metavar="action")
    listing = _command(
        actions, "list", index_commands.list_schemes, "each scheme: active, building or retired; its index; since when"
    )
    _add_rebuild(actions, "build", index_commands.build_index, "the index of these settings beside the active one")
    switch = _command(actions, "switch", index_commands.switch_index, "make a scheme active, the active one retired")
    switch.add_argument("scheme", nargs="?", metavar="SCHEME", help="its name (default: of these settings)")
    for command in (listing, switch):
        command.add_argument("--json", action="store_true", help="one JSON object a line")
    drop = _command(actions, "drop", index_commands.drop_index, "delete the index of a scheme that is not active")
    drop.add_argument("scheme", metavar="SCHEME", help="its name")
    for command in (listing, switch, drop):
        _add_timeout(command, 10.0)


def _add_letters(known: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Commands about dead letters."""
    letters = known.add_parser("dlq", help="dead letters: list, show, replay, skip")
    actions = letters.add_subparsers(required=True, metavar="action")
    listing = _command(
        actions, "list", dlq_commands.count, "how many of each reason, how many replayed, since when, where"
    )
    listing.add_argument("--json", action="store_true", help="one JSON object a line")
    show = _command(actions, "show", dlq_commands.show, "one letter: reason, headers, bytes")
    show.add_argument("letter", nargs="+", metavar="ID|TOPIC PARTITION OFFSET", help="its id, or what it is about")
    show.add_argument("--hex", action="store_true", help="all bytes in hex instead of the first characters")
    replay = _command(actions, "replay", dlq_commands.replay, "send refused records to their topics again, each once")
    replay.add_argument("--dry-run", action="store_true", help="send nothing, tell what would be sent")
    for command in (listing, replay):
        command.add_argument(
            "--reason", choices=[reason.value for reason in Reason], default="", metavar="R", help="of this reason only"
        )
        command.add_argument(
            "--since",
            type=dlq_commands.since,
            default=0,
            metavar="T",
            help="since a time with zone (2026-03-02T08:15Z) or for an age (15m, 24h, 7d)",
        )
        command.add_argument("--quiet", action="store_true", help="no progress line")
    skip = _command(
        actions, "skip", dlq_commands.skip, "pass over one record that stops its partition; workers stopped"
    )
    skip.add_argument("topic", metavar="TOPIC", help="documents or signatures, its full name")
    skip.add_argument("partition", type=int, metavar="PARTITION")
    skip.add_argument("offset", type=int, metavar="OFFSET")
    for command in (listing, show, replay, skip):
        _add_timeout(command, 10.0)


def _add_rebuild(
    known: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, run: Command, meaning: str
) -> None:
    rebuild = _command(known, name, run, meaning)
    rebuild.add_argument("--quiet", action="store_true", help="no progress line")
    _add_timeout(rebuild, 10.0)


def _command(
    known: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, run: Command, meaning: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = known.add_parser(name, help=meaning, description=meaning)
    parser.set_defaults(run=run)
    return parser


def _add_paths(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="JSON Lines (.jsonl, .ndjson, - for standard input), texts, folders"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress line")


def _add_timeout(parser: argparse.ArgumentParser, seconds: float) -> None:
    parser.add_argument(
        "--timeout",
        type=_seconds,
        default=seconds,
        metavar="S",
        help=f"longest wait for a service (default {seconds:g})",
    )


def _document_id(text: str) -> str:
    if not re.search(ID_PATTERN, text):
        raise argparse.ArgumentTypeError("1 to 512 characters, none of them a control character, expected")
    return text


def _collection(text: str) -> str:
    if not re.search(NAME_PATTERN, text):
        raise argparse.ArgumentTypeError("up to 63 lower-case letters, digits, dashes expected")
    return text


def _seconds(text: str) -> float:
    """More than 0; argparse tells what it does not take."""
    seconds = float(text)
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"a number above 0 expected: {text}")
    return seconds
