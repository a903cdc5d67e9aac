"""Show the families of an index: the largest, and those that grow."""

import argparse
import asyncio
from collections.abc import AsyncIterable
from dataclasses import replace
from functools import partial

from nearstream.streams.index.family import FamilyFacts
from nearstream.workers.cli.family_report import RANKINGS, best, family_object, report_lines
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings
from nearstream.workers.operations.terminal import Progress, print_json, print_line
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis_index.address import IndexAddress
from nearstream.workers.redis_index.client import until_answered
from nearstream.workers.redis_index.families import families
from nearstream.workers.redis_index.index import RedisIndex

# Families that are held at a time, beside those to be shown.
HELD = 10_000
# Fewer show no progress.
_NOTABLE = 1_000


def show_families(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print the largest families, and those that most documents joined of late."""
    address = replace(Deployment.of(settings).index_address(), beside=True)
    found = asyncio.run(_read(address, options))
    if options.json:
        for family in found:
            print_json(family_object(family))
    else:
        for line in report_lines(found, options.top):
            print_line(line)
    return Exit.OK


async def _read(address: IndexAddress, options: argparse.Namespace) -> list[FamilyFacts]:
    """Return the families of an index that may be shown."""
    index = await until_answered(partial(RedisIndex.open_to_read, address), options.timeout)
    progress = Progress("read families", quiet=options.quiet)
    try:
        found = await selected(families(index), options.top, progress)
    finally:
        await index.close()
    if progress.done > _NOTABLE:
        progress.end()
    return found


async def selected(all_families: AsyncIterable[FamilyFacts], top: int, progress: Progress) -> list[FamilyFacts]:
    """Return the families that may be shown, without holding all of them at a time."""
    found: list[FamilyFacts] = []
    async for facts in all_families:
        found.append(facts)
        progress.step()
        if len(found) >= HELD + RANKINGS * top:
            found = best(found, top)
    return best(found, top)
