"""The precision of a window by a field that no rule uses."""

from dataclasses import replace
from random import Random

import pytest

from nearstream.workers.cli.audit import precision_lines
from nearstream.workers.operations.audit.precision import (
    FieldPrecision,
    Found,
    Observed,
    measure,
)

DAY = 24 * 3_600_000


def window(true: int, false: int) -> tuple[list[Observed], list[Found]]:
    """Return 90 days of documents from 20 hosts, with exact duplicates, and true and false near-duplicates.

    A copy appears on the host of the first one, a day after it.
    """
    random = Random(5)

    def observed(name: str, time_ms: int, host: int) -> Observed:
        return Observed(time_ms, name, "0", "default", None, f"h{host}")

    first = [observed(f"a{at}", random.randrange(90) * DAY, random.randrange(20)) for at in range(600)]
    found, copies = [], []
    for at in range(200 + true + false):
        one = first[at]
        if at < 200 + true:
            copy = observed(f"b{at}", one.observed_at_ms + DAY, int(one.host[1:]))
        else:
            copy = observed(f"b{at}", random.randrange(10, 90) * DAY, random.randrange(20))
            one = random.choice([each for each in first if each.observed_at_ms < copy.observed_at_ms])
        copies.append(copy)
        found.append(Found("exact_duplicate" if at < 200 else "near_duplicate", 1.0 if at < 200 else 0.85, copy, one))
    return [*first, *copies], found


def by_field(true: int, false: int) -> dict[str, FieldPrecision]:
    return {found.field: found for found in measure(*window(true, false)).fields}


def test_the_share_of_true_pairs_is_near_what_was_planted() -> None:
    for true, false in ((300, 0), (200, 100), (0, 300)):
        for found in by_field(true, false).values():
            shares = {share.group: share for share in found.shares}
            assert set(shares) == {"near_duplicate", "0.8"}
            share = shares["near_duplicate"]
            assert share == replace(shares["0.8"], group="near_duplicate")
            assert share.pairs == true + false
            assert share.share == pytest.approx(true / 300, abs=0.15)
            assert share.low <= share.share <= share.high


def test_random_pairs_are_of_one_collection_and_of_two_lineages_and_the_newer_comes_later() -> None:
    newer = Observed(5, "n", "0", "mail", "one", "")
    others = [
        Observed(4, "o", "0", "mail", "two", ""),
        Observed(3, "same", "0", "mail", "one", ""),
        Observed(2, "elsewhere", "0", "news", "three", ""),
        Observed(9, "later", "0", "mail", "four", ""),
    ]
    hours, host = measure([newer, *others], [Found("overlap", 0.1, newer, others[0])]).fields
    assert hours.random is not None
    assert 0 < hours.random.pairs <= 10
    assert hours.random.value == pytest.approx(1 / 3_600_000)
    assert host.random is None
    assert (hours.certain, hours.shares) == (None, ())


def test_a_field_with_one_mean_tells_nothing() -> None:
    observed, found = window(100, 0)
    at_once = [each._replace(observed_at_ms=7) for each in observed]
    pairs = [
        each._replace(newer=each.newer._replace(observed_at_ms=7), older=each.older._replace(observed_at_ms=7))
        for each in found
    ]
    hours, host = measure(at_once, pairs).fields
    assert hours.shares == ()
    assert host.shares
    lines = list(precision_lines(measure(at_once, pairs)))
    assert "                 tells nothing here: both means are alike, or there are too few pairs" in lines
    assert any(line.startswith("  near_duplicate  ") for line in lines)
    assert any(line.startswith("  from 0.8  ") for line in lines)
