"""Format families as lines for a person, or as JSON."""

import heapq
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from nearstream.schemas.documents.document import DEFAULT_COLLECTION
from nearstream.streams.matching.family import FamilyFacts
from nearstream.workers.cli.fitting import COLUMNS, cut
from nearstream.workers.operations.terminal import utc_time

_SUMMARY = 5
_WINDOWS = ("hour", "day", "week")
RANKINGS = 2
_HEAD = f"{'size':>9} {'hour':>9} {'day':>9} {'week':>9}  {'last joined':<25}  founder"

Rank = Callable[[FamilyFacts], tuple[int, ...]]


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
