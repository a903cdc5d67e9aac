"""What each command of the command line does: data on stdout, talk on stderr, an exit code back."""

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import replace
from enum import IntEnum
from pathlib import Path

from schemas.codec import InvalidMessageError, encode_event
from schemas.events import Event
from schemas.record import Record
from workers import compare as comparison
from workers import demo as demonstration
from workers import doctor, feed, kafka_topics
from workers.embedded import Outcome, embedded
from workers.rebuild import rebuild
from workers.redis_rebuild import RebuildRefusedError
from workers.run import run_worker
from workers.settings import RELATIONS, Settings, table
from workers.show import Progress, escaped, line
from workers.sources import Item, count_lines, read


class Exit(IntEnum):
    """Exit codes, after sysexits.h where it has one."""

    OK = 0
    NO = 1
    USAGE = 2
    UNREADABLE = 65
    UNREACHABLE = 69
    MISCONFIGURED = 78
    INTERRUPTED = 130


def scan(settings: Settings, options: argparse.Namespace) -> Exit:
    """Relations among the documents of files, in process."""
    job = embedded(settings)

    async def run() -> Exit:
        refused = 0
        progress = Progress("scanned", count_lines(options.paths), options.quiet)
        async for outcome in job.outcomes(read(options.paths)):
            refused += bool(outcome.refusal)
            _tell(outcome, as_json=options.json)
            progress.step()
        progress.end()
        return Exit.UNREADABLE if refused else Exit.OK

    return asyncio.run(run())


def compare(settings: Settings, options: argparse.Namespace) -> Exit:
    """How two texts relate, with all evidence."""
    try:
        compared = comparison.compare(settings, (options.a, options.b))
    except InvalidMessageError as error:
        sys.stderr.write(f"nearstream: {error}\n")
        return Exit.UNREADABLE
    lines = [comparison.as_json(compared).decode()] if options.json else comparison.as_text(compared)
    for told in lines:
        print(told)
    return Exit.OK if compared.is_related else Exit.NO


def demo(settings: Settings, options: argparse.Namespace) -> Exit:
    """The example documents through the main job, then known against seen relations."""
    settings = replace(settings, relations=" ".join(RELATIONS))
    known = demonstration.known_relations(options.folder)
    job = embedded(settings)
    events: list[Event] = []

    async def run() -> None:
        async for outcome in job.outcomes(_demo_items(options.folder)):
            _tell(outcome, as_json=options.json)
            events.extend(outcome.events)

    asyncio.run(run())
    seen = demonstration.compare(known, events, frozenset(RELATIONS))
    (sys.stderr if options.json else sys.stdout).write(f"\n{demonstration.table(seen)}\n")
    return Exit.OK if seen.good else Exit.NO


def worker(settings: Settings, options: argparse.Namespace) -> Exit:
    """One worker process."""
    run_worker(settings, options.role, options.timeout)
    return Exit.OK


def topics(settings: Settings, options: argparse.Namespace) -> Exit:
    """Lists, creates or checks the topics."""
    if options.action == "create":
        created = asyncio.run(kafka_topics.create_missing(settings, options.replication, options.timeout))
        for name in created:
            sys.stderr.write(f"created {name}\n")
    states = asyncio.run(kafka_topics.topic_states(settings, options.timeout))
    for state in states:
        told = "OK" if not state.differences else "; ".join(state.differences)
        print(f"{state.name:<40} {state.partitions:>3} partitions  {state.topic.cleanup:<15} {told}")
    return Exit.NO if options.action != "list" and any(state.differences for state in states) else Exit.OK


def produce(settings: Settings, options: argparse.Namespace) -> Exit:
    """Documents from files onto the topic."""
    produced = asyncio.run(feed.produce(settings, options.paths, options.timeout, quiet=options.quiet))
    sys.stderr.write(f"sent {produced.sent}, refused {len(produced.refused)}\n")
    return Exit.UNREADABLE if produced.refused else Exit.OK


def tail(settings: Settings, options: argparse.Namespace) -> Exit:
    """Events as they arrive."""

    async def run() -> None:
        following = feed.follow_events(
            settings, options.timeout, from_start=options.from_start, until_end=options.until_end
        )
        async with aclosing(following) as events:
            async for event in events:
                if isinstance(event, Record):
                    print(f"{'unknown':<16} {event.topic} {event.partition} offset {event.offset}", flush=True)
                else:
                    print(encode_event(event).decode() if options.json else line(event), flush=True)

    asyncio.run(run())
    return Exit.OK


def rebuild_index(settings: Settings, options: argparse.Namespace) -> Exit:
    """A lost index, filled anew from the signatures."""
    try:
        rebuilt = asyncio.run(rebuild(settings, options.timeout, quiet=options.quiet))
    except RebuildRefusedError as error:
        sys.stderr.write(f"nearstream: {error}\n")
        return Exit.NO
    print(f"admitted {rebuilt.admitted}, removed {rebuilt.removed}, skipped {rebuilt.skipped}")
    return Exit.OK


def examine(settings: Settings, options: argparse.Namespace) -> Exit:
    """Checks Kafka, Redis, topics, scheme; says what to do."""

    async def run() -> bool:
        good = True
        async for check in doctor.examine(settings, options.timeout):
            print(f"{check.grade:<5} {check.subject:<9} {check.detail}", flush=True)
            good &= check.grade is not doctor.Grade.FAIL
        return good

    return Exit.OK if asyncio.run(run()) else Exit.NO


def show_settings(settings: Settings, options: argparse.Namespace) -> Exit:
    """Every variable, its value, default and meaning."""
    for variable, value, default, meaning in table(settings):
        if options.json:
            print(json.dumps({"variable": variable, "value": value, "default": default, "help": meaning}))
        else:
            print(f"{variable:<36} {value:<36} {meaning}" + (f" (default {default})" if value != default else ""))
    return Exit.OK


def _tell(outcome: Outcome, *, as_json: bool) -> None:
    if outcome.refusal:
        sys.stderr.write(f"refused {escaped(outcome.place)}: {outcome.refusal}\n")
    for event in outcome.events:
        print(encode_event(event).decode() if as_json else line(event), flush=True)


def _demo_items(folder: Path) -> Iterator[Item]:
    """The example documents, then the removal of the last one."""
    last = None
    for item in read([str(folder / "documents.jsonl")]):
        last = item.record
        yield item
    if last is not None:
        key = json.loads(last.value or b"{}")["id"].encode()
        yield Item("the removal", last._replace(offset=last.offset + 1, key=key, value=None))
