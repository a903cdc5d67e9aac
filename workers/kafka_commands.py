"""What the commands about topics do: data on stdout, talk on stderr, an exit code back."""

import argparse
import asyncio
import json
import sys
from contextlib import aclosing

from schemas.codec import encode_event
from schemas.record import Record
from schemas.topics import DOCUMENTS, SIGNATURES
from workers import feed, kafka_offsets, kafka_topics
from workers.exits import Exit
from workers.kafka_lag import PartitionLag, lag_reader
from workers.settings import Settings
from workers.show import line


def topics(settings: Settings, options: argparse.Namespace) -> Exit:
    """Lists, creates or checks the topics."""
    if options.action == "create":
        if not options.dry_run:
            _create(settings, options)
    elif options.dry_run or options.apply_config:
        sys.stderr.write("nearstream topics: --dry-run and --apply-config belong to create\n")
        return Exit.USAGE
    states = asyncio.run(kafka_topics.topic_states(settings, options.timeout))
    for state in states:
        if options.json:
            row = {"topic": state.name, "partitions": state.partitions, "cleanup": state.topic.cleanup}
            print(json.dumps({**row, "differences": state.differences}))
            continue
        told = "OK" if not state.differences else "; ".join(state.differences)
        print(f"{state.name:<40} {state.partitions:>3} partitions  {state.topic.cleanup:<15} {told}")
    return Exit.NO if options.action != "list" and any(state.differences for state in states) else Exit.OK


def _create(settings: Settings, options: argparse.Namespace) -> None:
    for name in asyncio.run(kafka_topics.create_missing(settings, options.replication, options.timeout)):
        sys.stderr.write(f"created {name}\n")
    if options.apply_config:
        for change in asyncio.run(kafka_topics.apply_configs(settings, options.timeout)):
            sys.stderr.write(f"set {change}\n")


def lag(settings: Settings, options: argparse.Namespace) -> Exit:
    """How far behind the group is, partition by partition; no if one is further than the limit."""
    rows = asyncio.run(_read_lag(settings, options.timeout))
    if not options.json:
        print(f"{'group':<24} {'topic':<36} {'partition':>9} {'committed':>12} {'end':>12} {'records':>9}  seconds")
    for row in rows:
        told = row.as_json()
        if options.json:
            print(json.dumps({"group": settings.group, **told}))
            continue
        committed, seconds = ("-" if told[name] is None else told[name] for name in ("committed", "seconds"))
        print(
            f"{settings.group:<24} {row.topic:<36} {row.partition:>9} {committed:>12} {row.end:>12} "
            f"{row.records:>9}  {seconds}"
        )
    return Exit.NO if options.max is not None and any(row.records > options.max for row in rows) else Exit.OK


async def _read_lag(settings: Settings, wait_seconds: float) -> list[PartitionLag]:
    topics = [settings.topic_prefix + topic.name for topic in (DOCUMENTS, SIGNATURES)]
    await kafka_offsets.partitions(settings, topics, wait_seconds)  # a missing topic has no lag
    async with lag_reader(settings, wait_seconds) as read_lag:
        return await read_lag()


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
