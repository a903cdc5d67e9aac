"""Manage topics, and show the consumer lag."""

import argparse
import asyncio
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from nearstream.schemas.topics.table import DEAD_LETTERS, DOCUMENTS, SIGNATURES, VERDICTS
from nearstream.workers.cli.arguments import OFFSET_MAX, add_json, add_timeout, declare, whole_number
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings, own_group
from nearstream.workers.operations.terminal import print_line, print_message, print_report

if TYPE_CHECKING:
    from nearstream.workers.kafka.lag import GroupMembers, PartitionLag

_LAG_COLUMNS = ("group", "topic", "partition", "committed", "end", "records", "seconds", "reader")
_LAG_ROW = "{group:<24} {topic:<36} {partition:>9} {committed:>12} {end:>12} {records:>9} {seconds:>9}  {reader}"


def add_topics(parser: argparse.ArgumentParser) -> None:
    """Declare `nearstream topics`."""
    example = "nearstream topics create --partitions 12 --replication 3"
    declare(parser, manage_topics, example=example, no="create, check: a topic is missing or differs")
    parser.add_argument(
        "action", nargs="?", choices=("list", "create", "check"), default="list", help="what to do (default list)"
    )
    parser.add_argument(
        "--replication",
        type=whole_number(1, 32_767),
        default=1,
        metavar="N",
        help="replicas of a new topic (default 1)",
    )
    parser.add_argument(
        "--partitions",
        type=whole_number(1, 1_024),
        metavar="N",
        help="create: partitions of each new topic but dead letters (default 6), fixed for signatures from then on",
    )
    add_json(parser, "one JSON object per line")
    add_timeout(parser, 10.0)


def manage_topics(settings: Settings, options: argparse.Namespace) -> Exit:
    """List, create or check the topics."""
    from nearstream.workers.kafka import topics as kafka_topics

    if options.action == "create":
        _create(settings, options)
    elif options.partitions:
        print_message("nearstream topics: --partitions goes with `create` only")
        return Exit.USAGE
    states = asyncio.run(kafka_topics.topic_states(settings, options.timeout, options.partitions))
    for state in states:
        fields = {"topic": state.name, "partitions": state.partitions, "cleanup": state.topic.cleanup}
        result = "; ".join(state.differences) or "OK"
        line = f"{state.name:<40} {state.partitions:>3} partitions  {state.topic.cleanup:<15} {result}"
        print_report({**fields, "differences": state.differences}, [line], is_json=options.json)
    return Exit.NO if options.action != "list" and any(state.differences for state in states) else Exit.OK


def _create(settings: Settings, options: argparse.Namespace) -> None:
    from nearstream.workers.kafka import topics as kafka_topics

    creating = kafka_topics.create_missing(settings, options.replication, options.timeout, options.partitions)
    for name in asyncio.run(creating):
        print_message(f"created {name}")


def add_lag(parser: argparse.ArgumentParser) -> None:
    """Declare `nearstream lag`."""
    behind = "a partition is more than N records behind"
    declare(parser, show_lag, example="nearstream lag --max 10000", no=f"{behind} (--max)")
    parser.add_argument("--max", type=whole_number(0, OFFSET_MAX), metavar="N", help=f"exit with 1 if {behind}")
    add_json(parser, "one JSON object per line")
    add_timeout(parser, 10.0)


def show_lag(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print the consumer lag of each partition.

    The exit code is NO if a partition exceeds the limit.
    """
    groups = asyncio.run(_read_lag(settings, options.timeout))
    rows = [(members, row) for members, found in groups for row in found]
    if not options.json:
        print_line(_LAG_ROW.format(**{name: name for name in _LAG_COLUMNS}))
    for members, row in rows:
        _print_row(members, row, is_json=options.json)
    for members, found in groups:
        for problem in _unread(settings, members, found):
            print_message(problem)
    return Exit.NO if options.max is not None and any(row.records > options.max for _, row in rows) else Exit.OK


def _unread(settings: Settings, members: "GroupMembers", rows: "Sequence[PartitionLag]") -> Iterator[str]:
    from nearstream.workers.kafka.lag import unread

    is_alerting = members.group == own_group(settings, "alert").group
    yield from unread(rows, members, "alert" if is_alerting else "")


def _print_row(members: "GroupMembers", row: "PartitionLag", *, is_json: bool) -> None:
    fields = {"group": members.group, **row.as_json(), "reader": members.hosts.get((row.topic, row.partition))}
    shown = {name: "-" if value is None else value for name, value in fields.items()}
    print_report(fields, [_LAG_ROW.format(**shown)], is_json=is_json)


async def _read_lag(settings: Settings, wait_seconds: float) -> "list[tuple[GroupMembers, list[PartitionLag]]]":
    from nearstream.workers.kafka import offsets as kafka_offsets
    from nearstream.workers.kafka.client import admin
    from nearstream.workers.kafka.lag import GroupMembers, group_members, lag_reader

    topics = [DOCUMENTS, SIGNATURES]
    # This raises SettingsError for a missing topic, for which the lag reader has no rows.
    await kafka_offsets.partitions(settings, [settings.topic_prefix + topic.name for topic in topics], wait_seconds)
    alert, verdicts = own_group(settings, "alert"), settings.topic_prefix + VERDICTS.name
    # Where no worker decides or alerts, its group does not read the verdicts and may lack the right to.
    if await kafka_offsets.ever_committed(settings, verdicts, wait_seconds):
        topics.append(VERDICTS)
    groups = [(settings, topics)]
    if await kafka_offsets.ever_committed_if_known(alert, verdicts, wait_seconds):
        groups.append((alert, [VERDICTS, DEAD_LETTERS]))
    found = []
    for own, read in groups:
        async with admin(own, wait_seconds) as client, lag_reader(own, wait_seconds, read) as read_lag:
            members = await group_members(client, own.group)
            found.append((members or GroupMembers(own.group, is_settled=False, count=0, hosts={}), await read_lag()))
    return found
