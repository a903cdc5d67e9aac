"""Show families of copies, and their members."""

import argparse
import asyncio
import heapq
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nearstream.schemas.documents.document import DEFAULT_COLLECTION, document_key
from nearstream.streams.matching.family import FamilyFacts
from nearstream.workers.cli.arguments import (
    add,
    add_collection,
    add_json,
    add_quiet,
    add_timeout,
    declare,
    document_id,
    whole_number,
)
from nearstream.workers.cli.events import COLUMNS, cut
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings
from nearstream.workers.operations.terminal import Progress, escaped, print_json, print_line, utc_time

if TYPE_CHECKING:  # the client of Redis, which `scan` does not need
    from nearstream.streams.store.record import Recorded
    from nearstream.workers.redis.index.index import RedisIndex

TOP_MAX = 100_000
# Families that are held at a time, beside those to be shown.
HELD = 10_000
# Fewer show no progress.
_NOTABLE = 1_000
_PAGE = 1_000
_SUMMARY = 5
_WINDOWS = ("hour", "day", "week")
RANKINGS = 2
_HEAD = f"{'size':>9} {'hour':>9} {'day':>9} {'week':>9}  {'last joined':<25}  founder"

Rank = Callable[[FamilyFacts], tuple[int, ...]]


def add_families(parser: argparse.ArgumentParser) -> None:
    """Declare `nearstream families`, and `members`."""
    declare(parser, show_families, example="nearstream families --top 20")
    parser.add_argument(
        "--top",
        type=whole_number(1, TOP_MAX),
        default=10,
        metavar="N",
        help="show N of the largest and N of the fastest growing (default 10)",
    )
    add_json(parser, "one JSON object per line, one for each family")
    actions = parser.add_subparsers(metavar="action")
    summary = "show all documents of the family that a document is in"
    example = "nearstream families members '<12@a.example>'"
    members = add(actions, "members", summary, show_members, example=example, no="the id is unknown")
    members.add_argument("id", type=document_id, metavar="ID", help="id of any document of the family")
    add_collection(members, "documents")
    add_json(members, "one JSON object per line")
    add_timeout(members, 10.0)
    add_quiet(parser)
    add_timeout(parser, 10.0)


def show_families(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print the largest families, and those that most documents joined of late."""
    found = asyncio.run(_read(settings, options))
    if options.json:
        for family in found:
            print_json(family_object(family))
    else:
        for line in report_lines(found, options.top):
            print_line(line)
    return Exit.OK


async def _read(settings: Settings, options: argparse.Namespace) -> list[FamilyFacts]:
    """Return the families of an index that may be shown."""
    progress = Progress("read families", quiet=options.quiet)
    async with _opened(settings, options) as index:
        from nearstream.workers.redis.reading.families import families

        found = await selected(families(index), options.top, progress)
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


def show_members(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print all members of the family of a document, in the order of joining."""
    return asyncio.run(_show_members(settings, options))


async def _show_members(settings: Settings, options: argparse.Namespace) -> Exit:
    from nearstream.workers.redis.reading.members import stored_family

    async with _opened(settings, options) as index:
        family = await stored_family(index, document_key(options.collection, options.id))
        if family is None:
            print_line(f"{escaped(options.id)}: not in the index")
            return Exit.NO
        if not options.json:
            print_line(f"family {family.family_id}, size {family.size}")
        async with aclosing(_all_members(index, family)) as found:
            async for member in found:
                _print_member(family, member, options)
    return Exit.OK


def _opened(settings: Settings, options: argparse.Namespace) -> AbstractAsyncContextManager["RedisIndex"]:
    """Open the index to read it."""
    from nearstream.workers.pipeline.deployment import Deployment
    from nearstream.workers.redis.index.index import index_to_read

    return index_to_read(replace(Deployment.of(settings).index_address(), beside=True), options.timeout)


async def _all_members(index: "RedisIndex", family: FamilyFacts) -> AsyncGenerator["Recorded"]:
    from nearstream.workers.redis.reading.members import members

    after: int | None = 0
    while after is not None:
        page = await members(index, family, after, _PAGE)
        for member in page.members:
            yield member
        after = page.next


def _print_member(family: FamilyFacts, member: "Recorded", options: argparse.Namespace) -> None:
    observed_at = utc_time(member.observed_at_ms, "milliseconds")
    if options.json:
        fields = {"id": member.id, "version": member.version, "observed_at": observed_at}
        print_json({"family": family.family_id, **fields})
    else:
        print_line(f"{observed_at}  {escaped(member.id)}")


def summary_lines(families: Sequence[FamilyFacts]) -> Iterator[str]:
    """Yield how many families have copies, then the largest of them."""
    alive = [family for family in families if family.size > 1]
    if not alive:
        return
    copies = sum(family.size - 1 for family in alive)
    yield f"{_counted(len(alive), 'family', 'families')} with {_counted(copies, 'copy', 'copies')}, the largest:"
    for family in _top(alive, _size, _SUMMARY):
        start = f"{family.size:>9}  "
        yield start + cut(_founder(family).removeprefix(f"{DEFAULT_COLLECTION}/"), COLUMNS - len(start))


def report_lines(families: Sequence[FamilyFacts], top: int) -> Iterator[str]:
    """Yield the largest families, then the fastest growing."""
    if not families:
        yield "no family has two members yet"
        return
    for title, rank in _rankings():
        shown = _top(families, rank, top)
        if shown:
            yield f"{title}:"
            yield _HEAD
            yield from map(_row, shown)


def family_object(family: FamilyFacts) -> dict[str, Any]:
    """Return everything known of a family, for JSON."""
    return {
        "family": family.family_id,
        "founder": family.founder or None,
        "representative": family.representative or None,
        "size": family.size,
        "first_seen": utc_time(family.first_seen_ms, "milliseconds"),
        "last_joined": utc_time(family.last_joined_ms, "milliseconds"),
        "joined": dict(zip(_WINDOWS, family.joined, strict=True)),
    }


def best(families: Sequence[FamilyFacts], top: int) -> list[FamilyFacts]:
    """Return the families that one of the rankings shows, the largest first."""
    shown = {_key(family): family for _, rank in _rankings() for family in _top(families, rank, top)}
    return sorted(shown.values(), key=lambda family: (-family.size, _key(family)))


def _rankings() -> Iterator[tuple[str, Rank]]:
    """Yield the title and the numbers of each ranking."""
    yield "the largest families", _size
    yield "the fastest growing: those that most documents joined in the last hour, else day, else week", _joined


def _size(family: FamilyFacts) -> tuple[int, ...]:
    return (family.size,)


def _joined(family: FamilyFacts) -> tuple[int, ...]:
    return family.joined


def _top(families: Sequence[FamilyFacts], rank: Rank, count: int) -> list[FamilyFacts]:
    """Return the families with the largest numbers above 0."""
    ranked = {_key(family): family for family in families if any(rank(family))}.values()
    return heapq.nsmallest(count, ranked, key=lambda family: (*(-number for number in rank(family)), _key(family)))


def _key(family: FamilyFacts) -> tuple[str, int]:
    return family.family_id, family.number


def _row(family: FamilyFacts) -> str:
    hour, day, week = family.joined
    start = f"{family.size:>9} {hour:>9} {day:>9} {week:>9}  {utc_time(family.last_joined_ms):<25}  "
    return start + cut(_founder(family), COLUMNS - len(start))


def _founder(family: FamilyFacts) -> str:
    return family.founder or f"(gone) family {family.family_id}"


def _counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
