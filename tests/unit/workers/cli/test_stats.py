"""What `stats` says of an index and of its families, and what a scan says of them at its end."""

import io
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from nearstream.streams.matching.family import FamilyFacts
from nearstream.streams.store.limits import IndexState
from nearstream.workers.cli import stats
from nearstream.workers.cli.stats import (
    Selected,
    best,
    family_lines,
    family_report,
    index_lines,
    select,
    summary_lines,
)
from nearstream.workers.operations.terminal import Progress
from nearstream.workers.redis.reading.stats import IndexFacts
from tests.support.forged import FORGED, dangerous

BEGIN_MS = round(1000 * datetime(2026, 3, 2, 8, tzinfo=UTC).timestamp())
HOUR_MS = 3_600_000

NOW_MS = 1_700_000_000_000
OBSERVED = "2023-11-14T22:13:20+00:00"
FACTS = IndexFacts(frozenset({IndexState.READY}), 4096, NOW_MS, 4 * 1024**2, 16 * 1024**2)


def family(number: int, size: int, joined: tuple[int, int, int] = (0, 0, 0), founder: str = "") -> FamilyFacts:
    name = founder or f"default/d{number}"
    return FamilyFacts(f"{number:032x}", number, number, size, BEGIN_MS, BEGIN_MS + HOUR_MS, joined, name)


LARGE, SLOW, QUICK = family(1, 900), family(2, 20, (0, 50, 90)), family(3, 10, (4, 4, 4))
GONE = FamilyFacts("ab" * 16, 7, 0, 12, BEGIN_MS, BEGIN_MS, (0, 0, 0))


def test_the_largest_families_are_told_then_those_that_grew_last() -> None:
    # A walk through the keys of a server may meet one of them again.
    assert list(family_lines([SLOW, LARGE, QUICK, GONE, SLOW], 3)) == [
        "the largest families:",
        "     size      hour       day      week  last joined                founder",
        "      900         0         0         0  2026-03-02T09:00:00+00:00  default/d1",
        "       20         0        50        90  2026-03-02T09:00:00+00:00  default/d2",
        f"       12         0         0         0  2026-03-02T08:00:00+00:00  (gone) family {'ab' * 16}",
        "the fastest growing: those that most documents joined in the last hour, else day, else week:",
        "     size      hour       day      week  last joined                founder",
        "       10         4         4         4  2026-03-02T09:00:00+00:00  default/d3",
        "       20         0        50        90  2026-03-02T09:00:00+00:00  default/d2",
    ]
    assert len(list(family_lines([LARGE], 3))) == 3
    assert best([SLOW, LARGE, QUICK, LARGE], 1) == [LARGE, QUICK]
    assert (family_report(GONE)["founder"], family_report(GONE)["representative"]) == (None, None)


async def _of(*families: FamilyFacts) -> Selected:
    async def stored() -> AsyncIterator[FamilyFacts]:
        for each in families:
            yield each

    return await select(stored(), stats.SUMMARY, Progress("families", stream=io.StringIO()))


async def test_a_scan_is_summed_up_in_a_few_lines() -> None:
    assert list(summary_lines(await _of(QUICK, LARGE, SLOW, family(4, 1)))) == [
        "3 families with 927 copies, the largest:",
        "      900  d1",
        "       20  d2",
        "       10  d3",
    ]
    assert len(list(summary_lines(await _of(*(family(number, 2) for number in range(1, 1000)))))) == 6
    assert next(summary_lines(await _of(family(1, 2)))) == "1 family with 1 copy, the largest:"
    assert list(summary_lines(await _of(family(1, 1)))) == []


async def test_s16_a_family_is_one_line_whatever_its_founder() -> None:
    for name in (FORGED[0], "x" * 600, "日本" * 200):
        families = [family(1, 10**9, (10**8,) * 3, f"default/{name}")]
        for line in (*family_lines(families, 1), *summary_lines(await _of(*families))):
            assert not dangerous(line)
            assert line.splitlines() == [line]


async def test_what_is_selected_of_many_families_are_the_best_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats, "HELD", 5)
    families = [
        family(number, 2 + number * 7919 % 101, (number % 13, number % 17, number % 19)) for number in range(1, 200)
    ]

    monkeypatch.setattr(stats, "SUMMARY", 4)
    copies = sum(each.size - 1 for each in families)
    assert await _of(*families) == Selected(len(families), copies, best(families, 4))


def told(facts: IndexFacts, retention_seconds: int) -> list[str]:
    return list(index_lines(facts, Selected(24, 80, []), "n", retention_seconds))


def test_an_operator_is_told_documents_families_and_what_redis_has_left() -> None:
    assert told(FACTS, 30 * 86_400) == [
        "n: ready",
        f"documents        4096 live, the oldest observed {OBSERVED}, kept for 30 days",
        "families         24 with 80 copies",
        "Redis            4.0 MiB used, 1024 bytes a document, maxmemory 16.0 MiB (25 %), room for about 12288 "
        "documents more",
    ]
    states = frozenset({IndexState.LOST, IndexState.READY})
    assert told(replace(FACTS, states=states, documents=0, oldest_ms=None, limit_bytes=0), 0) == [
        "n: lost, ready",
        "documents        0 live, kept without limit",
        "families         24 with 80 copies",
        "Redis            4.0 MiB used, no maxmemory: set it, so that a full index pauses the workers",
    ]
