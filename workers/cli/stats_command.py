"""Show how large an index is."""

import argparse
import asyncio
from dataclasses import replace
from functools import partial

from nearstream.workers.cli.stats_report import index_lines, index_object, slot_lines, slot_object
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings
from nearstream.workers.operations.terminal import Progress, print_json, print_line
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis_index.address import IndexAddress
from nearstream.workers.redis_index.client import until_answered
from nearstream.workers.redis_index.index import RedisIndex
from nearstream.workers.redis_index.scanning import sample_keys
from nearstream.workers.redis_index.stats import SlotFacts, index_facts
from nearstream.workers.redis_index.totals import Totals, totals

_NOTABLE = 100_000  # keys. Fewer show no progress.


def show_stats(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print what an operator asks of an index, or the internals of each slot."""
    address = replace(Deployment.of(settings).index_address(), beside=True)
    slots, whole = asyncio.run(_read(address, options))
    if options.internals:
        _print_internals(slots, address, is_json=options.json)
    elif options.json:
        print_json(index_object(slots, whole, address.scheme, settings.retention_seconds))
    else:
        name = f"{address.namespace}, scheme {address.scheme}"
        for line in index_lines(slots, whole, name, settings.retention_seconds):
            print_line(line)
    return Exit.OK


async def _read(address: IndexAddress, options: argparse.Namespace) -> tuple[tuple[SlotFacts, ...], Totals]:
    index = await until_answered(partial(RedisIndex.open_to_read, address), options.timeout)
    progress = Progress("read keys", quiet=options.quiet)
    try:
        keys = await sample_keys(index, progress.step)
        if progress.done > _NOTABLE:
            progress.end()
        return await index_facts(index, keys), await totals(index, keys)
    finally:
        await index.close()


def _print_internals(slots: tuple[SlotFacts, ...], address: IndexAddress, *, is_json: bool) -> None:
    for number, slot in enumerate(slots):
        if is_json:
            print_json(slot_object(slot, address.scheme, number))
        else:
            of_slots = f", slot {number} of {len(slots)}" if len(slots) > 1 else ""
            for line in slot_lines(slot, f"{address.namespace}, scheme {address.scheme}{of_slots}"):
                print_line(line)
