"""Families as a person reads them, and as JSON."""

import io
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from nearstream import Document, HashKey, Matcher, Signer, local_store, preset
from nearstream.streams.matching.family import FamilyFacts, families_of
from nearstream.workers.cli import families as families_command
from nearstream.workers.cli.events import COLUMNS
from nearstream.workers.cli.families import best, family_object, report_lines, selected, summary_lines
from nearstream.workers.operations.terminal import Progress, columns
from tests.support.forged import FORGED, dangerous

BEGIN = datetime(2026, 3, 2, 8, tzinfo=UTC)
BEGIN_MS = round(1000 * BEGIN.timestamp())
HOUR_MS = 3_600_000


def family(number: int, size: int, joined: tuple[int, int, int] = (0, 0, 0), founder: str = "") -> FamilyFacts:
    name = founder or f"default/d{number}"
    return FamilyFacts(f"{number:032x}", number, number, size, BEGIN_MS, BEGIN_MS + HOUR_MS, joined, name)


async def storms(*sizes: int, days: int = 0) -> list[FamilyFacts]:
    """Return the families of storms of each size, the documents a minute apart, asked `days` after the last."""
    now = BEGIN
    store = local_store(clock=lambda: round(1000 * now.timestamp()))
    key = HashKey.public()
    scheme = preset("dense", key)
    signer, matcher = Signer(scheme, key), Matcher(store, scheme, key)
    numbers = []
    for storm, size in enumerate(sizes):
        text = " ".join(f"word{storm}x{place}" for place in range(60))
        for copy in range(size):
            now += timedelta(minutes=1)
            matched = await matcher.match(signer.sign(Document(id=f"{storm}-{copy}", text=text, observed_at=now)))
            numbers.append(matched.registered.number)
    now += timedelta(days=days)
    return await families_of(store, numbers)


async def test_the_largest_families_are_told_first() -> None:
    found = await storms(3, 5, 1, 2)
    assert list(report_lines(found, 2)) == [
        "the largest families:",
        "     size      hour       day      week  last joined                founder",
        "        5         4         4         4  2026-03-02T08:08:00+00:00  default/1-0",
        "        3         2         2         2  2026-03-02T08:03:00+00:00  default/0-0",
        "the fastest growing: those that most documents joined in the last hour, else day, else week:",
        "     size      hour       day      week  last joined                founder",
        "        5         4         4         4  2026-03-02T08:08:00+00:00  default/1-0",
        "        3         2         2         2  2026-03-02T08:03:00+00:00  default/0-0",
    ]


async def test_families_that_do_not_grow_are_only_large() -> None:
    found = await storms(3, days=8)
    assert list(report_lines(found, 9)) == [
        "the largest families:",
        "     size      hour       day      week  last joined                founder",
        "        3         0         0         0  2026-03-02T08:03:00+00:00  default/0-0",
    ]


async def test_a_scan_is_summed_up_in_a_few_lines() -> None:
    found = await storms(3, 5, 1, 2)
    assert list(summary_lines(found)) == [
        "3 families with 7 copies, the largest:",
        "        5  1-0",
        "        3  0-0",
        "        2  3-0",
    ]
    many = list(summary_lines([family(number, 2) for number in range(1, 1000)]))
    assert (many[0], len(many)) == ("999 families with 999 copies, the largest:", 6)
    assert next(summary_lines([family(1, 2)])) == "1 family with 1 copy, the largest:"


async def test_without_copies_there_is_nothing_to_sum_up() -> None:
    found = await storms(1, 1)
    assert list(summary_lines(found)) == []
    assert list(summary_lines([family(1, 1)])) == []
    assert list(report_lines(found, 5)) == ["no family has two members yet"]


def test_families_that_grew_in_the_last_hour_come_before_those_that_grew_before_it() -> None:
    large, slow, quick = family(1, 900), family(2, 20, (0, 50, 90)), family(3, 10, (4, 4, 4))
    lines = list(report_lines([slow, large, quick], 2))
    assert [line.split()[-1] for line in lines if "default/" in line] == [
        "default/d1",
        "default/d2",
        "default/d3",
        "default/d2",
    ]
    assert best([slow, large, quick], 1) == [large, quick]


def test_equal_families_are_told_in_the_order_of_their_ids() -> None:
    families = [family(number, 2) for number in (3, 1, 2)]
    assert [each.number for each in best(families, 2)] == [1, 2]
    assert best(families, 2) == best(families[::-1], 2)


def test_a_family_that_was_read_twice_is_told_once() -> None:
    """A walk through the keys of a server may meet one of them again."""
    families = [family(number, 2, (1, 1, 1)) for number in (1, 2, 1, 1)]
    assert [each.number for each in best(families, 3)] == [1, 2]
    assert [line.split()[-1] for line in report_lines(families, 3) if "default/" in line] == [
        "default/d1",
        "default/d2",
        "default/d1",
        "default/d2",
    ]


def test_a_founder_that_is_gone_is_told_as_such() -> None:
    gone = FamilyFacts("ab" * 16, 7, 0, 2, BEGIN_MS, BEGIN_MS, (0, 0, 0))
    assert list(report_lines([gone], 1))[-1].endswith(f"  (gone) family {'ab' * 16}")
    told = family_object(gone)
    assert (told["founder"], told["representative"]) == (None, None)


def test_a_family_has_these_fields_in_json() -> None:
    assert json.loads(msgspec.json.encode(family_object(family(5, 9, (1, 2, 3))))) == {
        "family": f"{5:032x}",
        "founder": "default/d5",
        "representative": 5,
        "size": 9,
        "first_seen": "2026-03-02T08:00:00.000+00:00",
        "last_joined": "2026-03-02T09:00:00.000+00:00",
        "joined": {"hour": 1, "day": 2, "week": 3},
    }


@pytest.mark.parametrize("name", [*FORGED, "x" * 600, "日本" * 200])
def test_s16_a_family_is_told_in_lines_of_120_columns(name: str) -> None:
    families = [family(1, 10**9, (10**8,) * 3, f"default/{name}")]
    for line in (*report_lines(families, 1), *summary_lines(families)):
        assert columns(line) <= COLUMNS
        assert not dangerous(line)
        assert line.splitlines() == [line]


async def test_what_is_selected_of_many_families_are_the_best_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(families_command, "HELD", 5)
    families = [
        family(number, 2 + number * 7919 % 101, (number % 13, number % 17, number % 19)) for number in range(1, 200)
    ]

    async def stored() -> AsyncIterator[FamilyFacts]:
        for each in families:
            yield each

    progress = Progress("read families", stream=io.StringIO())
    assert await selected(stored(), 4, progress) == best(families, 4)
    assert progress.done == len(families)
