"""Show how large the index is, and which families of copies are large or grow."""

import argparse
import asyncio
import heapq
from collections.abc import AsyncIterable, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from nearstream.schemas.documents.document import DEFAULT_COLLECTION
from nearstream.streams.matching.family import FamilyFacts
from nearstream.workers.cli.arguments import add_json, add_quiet, add_timeout, declare, whole_number
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings
from nearstream.workers.operations.terminal import Progress, in_bytes, print_report, printable, row, utc_time
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis.server.address import IndexAddress

if TYPE_CHECKING:
    from nearstream.workers.redis.reading.stats import IndexFacts

TOP_MAX = 100_000
HELD = 10_000  # families that are held at a time, beside those to be shown
RANKINGS = 2
_NOTABLE = 100_000  # keys. Fewer show no progress.
_MANY = 1_000  # documents. Of fewer, what a server needs for itself is the larger part.
_DAY_SECONDS = 86_400
SUMMARY = 5
_WINDOWS = ("hour", "day", "week")
_HEAD = f"{'size':>9} {'hour':>9} {'day':>9} {'week':>9}  {'last joined':<25}  founder"

Rank = Callable[[FamilyFacts], tuple[int, ...]]


def add_stats(parser: argparse.ArgumentParser) -> None:
    """Declare `nearstream stats`."""
    declare(parser, show_stats, example="nearstream stats --top 20")
    top = "show N of the largest and N of the fastest growing families (default 10, 0: none)"
    parser.add_argument("--top", type=whole_number(0, TOP_MAX), default=10, metavar="N", help=top)
    add_json(parser, "one JSON object")
    add_quiet(parser)
    add_timeout(parser, 10.0)


def show_stats(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print what an operator asks of an index."""
    address = replace(Deployment.of(settings).index_address(), beside=True)
    facts, found = asyncio.run(_read(address, options))
    shown = [family_report(family) for family in found.shown]
    report = {
        "scheme": address.scheme,
        **asdict(facts),
        "families": found.families,
        "copies": found.copies,
        "top": shown,
    }
    name = f"{address.namespace}, scheme {address.scheme}"
    lines = index_lines(facts, found, name, settings.retention_seconds)
    print_report(report, (*lines, *family_lines(found.shown, options.top)), is_json=options.json)
    return Exit.OK


async def _read(address: IndexAddress, options: argparse.Namespace) -> "tuple[IndexFacts, Selected]":
    from nearstream.workers.redis.index.index import index_to_read
    from nearstream.workers.redis.reading.stats import families, index_facts

    progress = Progress("read keys", quiet=options.quiet)
    async with index_to_read(address, options.timeout) as index:
        facts = await index_facts(index)
        found = await select(families(index), options.top, progress)
        if progress.done > _NOTABLE:
            progress.end()
        return facts, found


@dataclass(frozen=True)
class Selected:
    """The families of an index, of which some are shown."""

    families: int  # how many have a second member
    copies: int  # their members but the first of each
    shown: list[FamilyFacts]


async def select(all_families: AsyncIterable[FamilyFacts], top: int, progress: Progress) -> Selected:
    """Count all families, and return the ones to show, of which few are held at a time."""
    found: list[FamilyFacts] = []
    families = copies = 0
    async for facts in all_families:
        families, copies = families + (facts.size > 1), copies + max(facts.size - 1, 0)
        found.append(facts)
        progress.step()
        if len(found) >= HELD + RANKINGS * top:
            found = best(found, top)
    return Selected(families, copies, best(found, top))


def index_lines(facts: "IndexFacts", found: Selected, name: str, retention_seconds: int) -> Iterator[str]:
    """Yield the documents, families and memory of an index. A retention of 0 seconds has no limit."""
    yield f"{name}: {', '.join(sorted(map(str, facts.states)))}"
    oldest = f", the oldest observed {utc_time(facts.oldest_ms)}" if facts.oldest_ms else ""
    days = retention_seconds / _DAY_SECONDS
    kept = f", kept for {days:g} days" if days else ", kept without limit"
    yield row("documents", f"{facts.documents} live{oldest}{kept}")
    yield row("families", f"{found.families} with {found.copies} copies")
    yield row("Redis", _of_limit(facts))


def family_report(family: FamilyFacts) -> dict[str, Any]:
    """Return a family as JSON has it."""
    return {
        "id": family.family_id,
        "founder": family.founder or None,
        "representative": family.representative or None,
        "size": family.size,
        "first_seen": utc_time(family.first_seen_ms),
        "last_joined": utc_time(family.last_joined_ms),
        "joined": dict(zip(_WINDOWS, family.joined, strict=True)),
    }


def family_lines(families: Sequence[FamilyFacts], top: int) -> Iterator[str]:
    """Yield the largest families, then the fastest growing."""
    for title, rank in _rankings():
        shown = _top(families, rank, top)
        if shown:
            yield f"{title}:"
            yield _HEAD
            yield from map(_family_row, shown)


def summary_lines(found: Selected, members: Mapping[str, Sequence[str]] | None = None) -> Iterator[str]:
    """Yield how many families have copies, then the largest of them, each with its members if these are given."""
    if not found.copies:
        return
    families, copies = _counted(found.families, "family", "families"), _counted(found.copies, "copy", "copies")
    yield f"{families} with {copies}, the largest:"
    for family in _top(found.shown, _size, min(SUMMARY, found.families)):
        yield f"{family.size:>9}  {printable(_founder(family).removeprefix(f'{DEFAULT_COLLECTION}/'))}"
        yield from (f"{'':>11}  {printable(name)}" for name in (members or {}).get(family.family_id, ())[1:])


def best(families: Sequence[FamilyFacts], top: int) -> list[FamilyFacts]:
    """Return the families that one of the rankings shows, the largest first."""
    shown = {_key(family): family for _, rank in _rankings() for family in _top(families, rank, top)}
    return sorted(shown.values(), key=lambda family: (-family.size, _key(family)))


def _rankings() -> Iterator[tuple[str, Rank]]:
    yield "the largest families", _size
    yield "the fastest growing: those that most documents joined in the last hour, else day, else week", _joined


def _size(family: FamilyFacts) -> tuple[int, ...]:
    return (family.size,)


def _joined(family: FamilyFacts) -> tuple[int, ...]:
    return family.joined


def _top(families: Sequence[FamilyFacts], rank: Rank, count: int) -> list[FamilyFacts]:
    ranked = {_key(family): family for family in families if any(rank(family))}.values()
    return heapq.nsmallest(count, ranked, key=lambda family: (*(-number for number in rank(family)), _key(family)))


def _key(family: FamilyFacts) -> tuple[str, int]:
    return family.family_id, family.number


def _family_row(family: FamilyFacts) -> str:
    hour, day, week = family.joined
    start = f"{family.size:>9} {hour:>9} {day:>9} {week:>9}  {utc_time(family.last_joined_ms):<25}  "
    return start + printable(_founder(family))


def _founder(family: FamilyFacts) -> str:
    return family.founder or f"(gone) family {family.family_id}"


def _counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _of_limit(facts: "IndexFacts") -> str:
    used, limit = facts.used_bytes, facts.limit_bytes
    each = round(used / facts.documents) if facts.documents >= _MANY else None
    told = f"{in_bytes(used)} used" + (f", {each} bytes a document" if each else "")
    if not limit:
        return f"{told}, no maxmemory: set it, so that a full index pauses the workers"
    more = f", room for about {max(limit - used, 0) // each} documents more" if each else ""
    return f"{told}, maxmemory {in_bytes(limit)} ({100 * used / limit:.0f} %){more}"
