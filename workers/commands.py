"""What each command of the command line does: data on stdout, talk on stderr, an exit code back."""

import argparse
import asyncio
import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

from schemas.codec import InvalidMessageError, encode_event
from schemas.events import Event, kind_of
from workers import compare as comparison
from workers import demo as demonstration
from workers import doctor
from workers.checks import Grade
from workers.embedded import Outcome, embedded
from workers.exits import Exit
from workers.run import run_worker
from workers.settings import Settings, table
from workers.settings_bounds import RELATIONS
from workers.show import Progress, escaped, line
from workers.sources import Item, count_lines, read


def scan(settings: Settings, options: argparse.Namespace) -> Exit:
    """Relations among the documents of files, in process."""
    job = embedded(settings)

    async def run() -> Exit:
        refused, found = 0, Counter[str]()
        progress = Progress("scanned", count_lines(options.paths), options.quiet)
        async for outcome in job.outcomes(read(options.paths)):
            refused += bool(outcome.refusal)
            found.update(map(kind_of, outcome.events))
            _tell(outcome, as_json=options.json)
            progress.step()
        progress.end()
        if not options.quiet:
            counts = ", ".join(f"{number} {relation}" for relation, number in found.most_common())
            sys.stderr.write(f"found {counts or 'no relation'}\n")
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


def examine(settings: Settings, options: argparse.Namespace) -> Exit:
    """Checks Kafka, Redis, topics, scheme; says what to do."""

    async def run() -> bool:
        good = True
        async for check in doctor.examine(settings, options.timeout):
            plain = f"{check.grade:<5} {check.subject:<9} {check.detail}"
            print(json.dumps(asdict(check)) if options.json else plain, flush=True)
            good &= check.grade is not Grade.FAIL
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
