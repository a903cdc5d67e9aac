"""List, show, replay and skip dead letters."""

import argparse
import asyncio
from collections.abc import Iterator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING

from nearstream.schemas.documents.record import ConsumerRecord
from nearstream.schemas.topics.dead_letter import NOT_OURS, Reason, StoredDeadLetter, dead_id
from nearstream.schemas.topics.table import DEAD_LETTERS
from nearstream.workers.cli.arguments import (
    OFFSET_MAX,
    add,
    add_json,
    add_quiet,
    add_since,
    add_timeout,
    whole_number,
)
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings
from nearstream.workers.operations.terminal import (
    Progress,
    escaped,
    print_line,
    print_message,
    print_report,
    report_lines,
    row,
    utc_time,
)

if TYPE_CHECKING:
    from nearstream.workers.operations.dead_letters import ReasonCount

SHOWN_CHARACTERS = 2000
_PARTITION_MAX = 2**31 - 1
_DAY_SECONDS = 86_400


def add_dlq(parser: argparse.ArgumentParser) -> None:
    """Declare the actions of `nearstream dlq`."""
    actions = parser.add_subparsers(required=True, metavar="action")
    summary, example = "count the dead letters of each reason, show their ids", "nearstream dlq list --since 24h"
    listing = add(actions, "list", summary, list_reasons, example=example)
    listing.add_argument("--each", action="store_true", help="print a line for each dead letter with its id")
    add_json(listing, "one JSON object per line")
    summary, example = "show a dead letter: reason, headers, bytes", "nearstream dlq show nearstream.documents.v1 0 17"
    show = add(actions, "show", summary, show_dead_letter, example=example, no="there is no such dead letter")
    add_json(show, "one JSON object with all bytes in hex")
    replaying = add(
        actions,
        "replay",
        "send refused records to their topics again, each once",
        replay,
        example="nearstream dlq replay --reason not_json --dry-run",
    )
    replaying.add_argument("--dry-run", action="store_true", help="send nothing, count what would be sent")
    for command in (listing, replaying):
        reasons = [reason.value for reason in Reason]
        meaning = "only dead letters of this reason"
        command.add_argument("--reason", choices=reasons, default="", metavar="R", help=meaning)
        add_quiet(command)
    add_since(listing, "only dead letters", 0)
    summary = "skip a record that crashes the workers; stop them first"
    example = "nearstream dlq skip nearstream.signatures.v1 0 17"
    skipping = add(actions, "skip", summary, skip, example=example, no="the record cannot be skipped")
    for command in (show, skipping):
        command.add_argument("topic", metavar="TOPIC", help="full name of the topic that holds the refused record")
        for name, most in (("partition", _PARTITION_MAX), ("offset", OFFSET_MAX)):
            command.add_argument(name, type=whole_number(0, most), metavar=name.upper(), help=f"{name} of the record")
    for command in (listing, show, replaying, skipping):
        add_timeout(command, 10.0)


def list_reasons(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print the dead letters of each reason, or print each one."""
    from nearstream.workers.operations import dead_letters

    if options.each:
        asyncio.run(_list_each(settings, options))
        return Exit.OK
    progress = Progress("dead letters", 0, options.quiet)
    counts = asyncio.run(dead_letters.count(settings, options.reason, options.since, options.timeout, progress))
    if counts and not options.json:
        print_line(f"{'reason':<26} {'letters':>9} {'replayed':>9}  written")
    for count in counts:
        print_report(count, [_count_line(count)], is_json=options.json)
    return Exit.OK


async def _list_each(settings: Settings, options: argparse.Namespace) -> None:
    from nearstream.workers.operations import dead_letters

    progress = Progress("dead letters", 0, quiet=True)
    listing = dead_letters.each(settings, options.reason, options.since, options.timeout, progress)
    async with aclosing(listing) as listed:
        async for record, dead_letter in listed:
            fields = _listed_object(record, dead_letter)
            print_report(fields, [_listed_line(fields)], is_json=options.json)


def show_dead_letter(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print one dead letter with the headers and bytes of the original record."""
    from nearstream.workers.operations import dead_letters

    topic, partition, offset = place = options.topic, options.partition, options.offset
    dead_letter = asyncio.run(dead_letters.find(settings, dead_id(*place), options.timeout))
    if dead_letter is None:
        days = (DEAD_LETTERS.retention_seconds or 0) // _DAY_SECONDS
        reason = f"there is no such record, or it was not refused, or longer than {days} days ago"
        print_message(f"no dead letter about {topic} {partition} {offset}: {reason}")
        return Exit.NO
    print_report(_whole_object(dead_letter), _lines(dead_letter), is_json=options.json)
    return Exit.OK


def _count_line(count: "ReasonCount") -> str:
    replayed = "-" if count.replayed is None else count.replayed
    written = f"{utc_time(count.oldest_ms)} to {utc_time(count.newest_ms)}"
    return f"{escaped(count.reason):<26} {count.letters:>9} {replayed:>9}  {written}"


def _listed_line(fields: Mapping[str, object]) -> str:
    position = f"{escaped(str(fields['topic']))} {fields['partition']} {fields['offset']}"
    detail = f": {fields['detail']}" if "detail" in fields else ""
    told = f"{escaped(str(fields['reason']))}{_printable(detail)}"
    return f"{fields['id'] or '-':<32}  {fields['written']}  {position}  {told}"


def _listed_object(record: ConsumerRecord, dead_letter: StoredDeadLetter | None) -> dict[str, object]:
    reason, refused = (dead_letter.reason, dead_letter.original) if dead_letter else (NOT_OURS, record)
    fields: dict[str, object] = {
        "reason": reason,
        "id": dead_id(refused.topic, refused.partition, refused.offset) if dead_letter else None,
        "topic": refused.topic,
        "partition": refused.partition,
        "offset": refused.offset,
        "written": utc_time(record.timestamp_ms, "milliseconds"),
    }
    if dead_letter:
        names = ("stage", "detail", "worker", "replays", "size", "sha256", "payload")
        fields |= {name: getattr(dead_letter, name) for name in names}
    return fields


def _whole_object(dead_letter: StoredDeadLetter) -> dict[str, object]:
    """Return a dead letter with the bytes of the refused record in hex, None for a null."""
    original = dead_letter.original
    return {
        **_listed_object(dead_letter.record, dead_letter),
        "key": _in_hex(original.key),
        "headers": [{"name": name, "value": _in_hex(value)} for name, value in original.headers],
        "value": _in_hex(original.value),
    }


def _in_hex(value: bytes | None) -> str | None:
    return None if value is None else value.hex()


def _lines(dead_letter: StoredDeadLetter) -> Iterator[str]:
    yield from report_lines(_listed_object(dead_letter.record, dead_letter))
    yield row("key", _printable_key(dead_letter))
    for name, value in dead_letter.original.headers:
        yield row("header", f"{_printable(name)}: {_printable_bytes(value)}")
    yield from _text_lines(dead_letter.original.value or b"")


def _printable_key(dead_letter: StoredDeadLetter) -> str:
    key = dead_letter.original.key
    if key is None or dead_letter.payload != "hash":
        return _printable_bytes(key)
    return f"{key.hex()} (blake2b-16 of the original key)"


def _text_lines(value: bytes) -> Iterator[str]:
    head = value[: 4 * SHOWN_CHARACTERS].decode("utf-8", "backslashreplace")
    shown = head[:SHOWN_CHARACTERS]
    yield from shown.removesuffix("\n").split("\n")
    if len(shown) < len(head) or len(value) > 4 * SHOWN_CHARACTERS:
        yield "… (--json shows all)"


def _printable(text: str) -> str:
    return escaped(text, SHOWN_CHARACTERS)


def _printable_bytes(value: bytes | None) -> str:
    return "null" if value is None else _printable(value.decode("utf-8", "backslashreplace"))


def replay(settings: Settings, options: argparse.Namespace) -> Exit:
    """Send refused records to their topics again, or count what would be sent."""
    # Imported on use, because this loads the client of Redis.
    from nearstream.workers.operations.replay import SENT, plan_replay, replay_dead_letters
    from nearstream.workers.pipeline.deployment import Deployment

    run = plan_replay if options.dry_run else replay_dead_letters
    deployment, progress = Deployment.of(settings), Progress("dead letters", 0, options.quiet)
    outcome = asyncio.run(run(deployment, options.reason, options.timeout, progress))
    sent = outcome.pop(SENT, 0)
    causes = ", ".join(f"{number} {cause}" for cause, number in outcome.most_common())
    verb = "would be sent" if options.dry_run else "sent"
    print_message(f"{verb} {sent}, skipped {outcome.total()}{f': {causes}' if causes else ''}")
    return Exit.OK


def skip(settings: Settings, options: argparse.Namespace) -> Exit:
    """Skip one record that crashes the workers."""
    from nearstream.workers.kafka.client import TopicPartition
    from nearstream.workers.operations.replay import skip_record
    from nearstream.workers.pipeline.deployment import Deployment

    tp = TopicPartition(options.topic, options.partition)
    asyncio.run(skip_record(Deployment.of(settings), tp, options.offset, options.timeout))
    print_message(f"skipped {options.offset}")
    return Exit.OK
