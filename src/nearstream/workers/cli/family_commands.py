"""Show families of copies, and their members."""

import argparse
import asyncio
from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import aclosing
from dataclasses import replace
from functools import partial

from nearstream.schemas.documents.document import document_key
from nearstream.streams.matching.family import FamilyFacts
from nearstream.streams.store.record import Recorded
from nearstream.workers.cli.family_report import RANKINGS, best, family_object, report_lines
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings
from nearstream.workers.operations.terminal import Progress, escaped, print_json, print_line, utc_time
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis.index.index import RedisIndex
from nearstream.workers.redis.reading.families import families
from nearstream.workers.redis.reading.members import StoredFamily, members, stored_family
from nearstream.workers.redis.server.address import IndexAddress
from nearstream.workers.redis.server.client import until_answered

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


_PAGE = 1_000


def show_members(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print all members of the family of a document, in the order of joining."""
    address = replace(Deployment.of(settings).index_address(), beside=True)
    return asyncio.run(_show(address, options))


async def _show(address: IndexAddress, options: argparse.Namespace) -> Exit:
    index = await until_answered(partial(RedisIndex.open_to_read, address), options.timeout)
    try:
        family = await stored_family(index, document_key(options.collection, options.id))
        if family is None:
            print_line(f"{escaped(options.id)}: not in the index")
            return Exit.NO
        if not options.json:
            print_line(f"family {family.facts.family_id}, size {family.facts.size}")
        async with aclosing(_all_members(index, family)) as found:
            async for member in found:
                _print_member(family, member, options)
    finally:
        await index.close()
    return Exit.OK


async def _all_members(index: RedisIndex, family: StoredFamily) -> AsyncGenerator[Recorded]:
    after: int | None = 0
    while after is not None:
        page = await members(index, family, after, _PAGE)
        for member in page.members:
            yield member
        after = page.next


def _print_member(family: StoredFamily, member: Recorded, options: argparse.Namespace) -> None:
    observed_at = utc_time(member.observed_at_ms, "milliseconds")
    if options.json:
        fields = {"id": member.id, "version": member.version, "observed_at": observed_at}
        print_json({"family": family.facts.family_id, **fields})
    else:
        print_line(f"{observed_at}  {escaped(member.id)}")
