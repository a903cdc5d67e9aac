"""Declare the commands for topics, records and dead letters."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from nearstream.schemas.topics.dead_letter import Reason
from nearstream.schemas.verdicts.events import RELATIONS
from nearstream.workers.cli.arguments import collection, whole_number
from nearstream.workers.cli.parser_options import (
    add,
    add_group,
    add_json,
    add_paths,
    add_quiet,
    add_since,
    add_timeout,
)

if TYPE_CHECKING:
    from nearstream.workers.cli.parser_options import Commands

PARTITION_MAX = 2**31 - 1
OFFSET_MAX = 2**63 - 1


def add_kafka_commands(commands: "Commands") -> None:
    """Add the commands for topics and their records."""
    topics = add(
        commands,
        "topics",
        "kafka_commands:manage_topics",
        "list, create or check the topics",
        example="nearstream topics create --partitions 12 --replication 3",
        no="create, check: a topic is missing or differs",
    )
    topics.add_argument(
        "action", nargs="?", choices=("list", "create", "check"), default="list", help="what to do (default list)"
    )
    topics.add_argument(
        "--replication",
        type=whole_number(1, 32_767),
        default=1,
        metavar="N",
        help="replicas of a new topic (default 1)",
    )
    topics.add_argument(
        "--partitions",
        type=whole_number(1, 1_024),
        metavar="N",
        help="create: partitions of each new topic but dead letters (default 6), fixed for signatures from then on",
    )
    topics.add_argument(
        "--dry-run", action="store_true", help="create: change nothing, show what is missing or different"
    )
    topics.add_argument(
        "--apply-config", action="store_true", help="create: also correct the configuration, never the partitions"
    )
    topics.add_argument("--schemas", type=Path, metavar="DIR", help="only write the JSON Schema of each message")
    topics.add_argument("--asyncapi", type=Path, metavar="FILE", help="only write the AsyncAPI document of all topics")
    topics.add_argument(
        "--connect", type=Path, metavar="DIR", help="only write what Kafka Connect, ClickHouse and OpenSearch need"
    )
    topics.add_argument(
        "--register", metavar="URL", help="only register the JSON Schema of each message in the schema registry there"
    )
    add_json(topics, "one JSON object per line")
    produce = add(
        commands,
        "produce",
        "produce_command:send_documents",
        "send the documents of files to Kafka",
        example="nearstream produce documents.jsonl.gz",
    )
    add_paths(produce)
    produce.add_argument(
        "--signatures", action="store_true", help="PATH are files of `nearstream sign`: send signatures, no documents"
    )
    tail = add(
        commands,
        "tail",
        "kafka_commands:show_events",
        "print verdicts and events as they arrive",
        example="nearstream tail --from-start --type near_duplicate --json",
    )
    _add_event_selection(tail)
    add_json(tail, "events as JSON Lines, each with the time of its detection (detected_at)")
    lag = add(
        commands,
        "lag",
        "kafka_commands:show_lag",
        "show the consumer lag in records and seconds",
        example="nearstream lag --max 10000",
        no="a partition is more than N records behind (--max)",
    )
    lag.add_argument(
        "--max",
        type=whole_number(0, OFFSET_MAX),
        metavar="N",
        help="exit with 1 if a partition is more than N records behind",
    )
    add_json(lag, "one JSON object per line")
    for command in (topics, produce, tail, lag):
        add_timeout(command, 10.0)


def add_dead_letter_commands(commands: "Commands") -> None:
    """Add the commands for dead letters."""
    actions = add_group(commands, "dlq", "manage dead letters: list, show, replay, skip")
    listing = add(
        actions,
        "list",
        "dead_letter_commands:list_reasons",
        "count the dead letters of each reason, show their ids",
        example="nearstream dlq list --since 24h",
    )
    listing.add_argument("--each", action="store_true", help="print a line for each dead letter with its id")
    add_json(listing, "one JSON object per line")
    show = add(
        actions,
        "show",
        "dead_letter_commands:show_dead_letter",
        "show a dead letter: reason, headers, bytes",
        example="nearstream dlq show nearstream.documents.v1 0 17",
        no="there is no such dead letter",
    )
    show.add_argument(
        "dead_letter",
        nargs="+",
        metavar="ID | TOPIC PARTITION OFFSET",
        help="id of the dead letter, or the position of the refused record",
    )
    show.usage = "nearstream dlq show [-h] [--hex | --json] [--timeout S] ID | TOPIC PARTITION OFFSET"
    form = show.add_mutually_exclusive_group()
    form.add_argument("--hex", action="store_true", help="show all bytes in hex instead of the first characters")
    add_json(form, "one JSON object with all bytes in hex")
    replay = add(
        actions,
        "replay",
        "replay_commands:replay",
        "send refused records to their topics again, each once",
        example="nearstream dlq replay --reason not_json --dry-run",
        no="too many replays with --reason or --since came before: replay without them",
    )
    replay.add_argument("--dry-run", action="store_true", help="send nothing, count what would be sent")
    for command in (listing, replay):
        _add_selection(command)
    skip = add(
        actions,
        "skip",
        "replay_commands:skip",
        "skip a record that crashes the workers; stop them first",
        example="nearstream dlq skip nearstream.signatures.v1 0 17",
        no="the record cannot be skipped",
    )
    skip.add_argument("topic", metavar="TOPIC", help="full name of the documents or signatures topic")
    skip.add_argument(
        "partition", type=whole_number(0, PARTITION_MAX), metavar="PARTITION", help="partition of the record"
    )
    skip.add_argument("offset", type=whole_number(0, OFFSET_MAX), metavar="OFFSET", help="offset of the record")
    for command in (listing, show, replay, skip):
        add_timeout(command, 10.0)


def _add_event_selection(parser: argparse.ArgumentParser) -> None:
    start = parser.add_mutually_exclusive_group()
    start.add_argument("--from-start", dest="since", action="store_const", const=0, help="begin with the oldest event")
    add_since(start, "begin with the events", None)
    parser.add_argument("--until-end", action="store_true", help="stop after the events that exist now")
    types = ("verdict", *RELATIONS, "retraction")
    of_type = f"only events of this type, may be repeated: {', '.join(types)}"
    parser.add_argument("--type", action="append", default=[], choices=types, metavar="T", help=of_type)
    parser.add_argument("--collection", type=collection, metavar="C", help="only events of this collection")


def _add_selection(parser: argparse.ArgumentParser) -> None:
    reasons = [reason.value for reason in Reason]
    parser.add_argument("--reason", choices=reasons, default="", metavar="R", help="only dead letters of this reason")
    add_since(parser, "only dead letters", 0)
    add_quiet(parser)
