"""The exact join finds every pair, with the bounds of the source and few comparisons."""

from fractions import Fraction
from itertools import combinations
from math import floor
from random import Random

import pytest

from nearstream.workers.operations.audit.recall import (
    ExactJoin,
    longest,
    prefix_length,
)

NINE_TENTHS, FOUR_FIFTHS = Fraction(9, 10), Fraction(4, 5)


def letters(text: str) -> list[int]:
    return [ord(letter) for letter in text]


def resemblance(one: set[int], other: set[int]) -> Fraction:
    return Fraction(len(one & other), len(one | other))


def test_prefix_length_and_sizes_are_exact_where_floats_are_not() -> None:
    assert [longest(size, NINE_TENTHS) for size in (9, 8)] == [10, 8]
    assert [longest(20, Fraction(share)) for share in ("0.85", "0.95", "0.98")] == [23, 21, 20]
    assert floor((1 - 0.9) * 10) + 1 == 1
    assert prefix_length(10, NINE_TENTHS) == 2
    assert [prefix_length(size, NINE_TENTHS) for size in (9, 10, 19, 20, 29)] == [1, 2, 2, 3, 3]
    assert [prefix_length(15, Fraction(share)) for share in ("0.85", "0.95", "0.8")] == [3, 1, 4]
    assert prefix_length(15, Fraction(11, 15)) == 5
    assert prefix_length(15, Fraction(11, 15) + Fraction(1, 10**9)) == 4


def test_a_pair_at_the_bound_meets_and_one_below_does_not() -> None:
    join = ExactJoin(NINE_TENTHS)
    assert join.add("nine", letters("bcdefghij")) == []
    assert join.add("ten", letters("abcdefghij")) == [("nine", NINE_TENTHS)]
    assert join.add("eight", letters("cdefghij")) == []
    assert join.probe(letters("abcdefghij")) == [("nine", NINE_TENTHS), ("ten", Fraction(1))]
    assert join.features == 27
    assert join.add("none", []) == []


def related_sets(seed: int) -> list[set[int]]:
    """Return sets in clusters whose members differ by some symbols."""
    random, found = Random(seed), list[set[int]]()
    for _ in range(25):
        core = set(random.sample(range(4_000), random.randint(3, 40)))
        for _ in range(9):
            kept = set(random.sample(sorted(core), random.randint(max(1, len(core) - 4), len(core))))
            found.append(kept | set(random.sample(range(4_000), random.randint(0, 2))))
    random.shuffle(found)
    return found


@pytest.mark.parametrize("share", ["0.7", "0.9"])
def test_no_pair_at_the_bound_or_above_is_missed(share: str) -> None:
    sets, bound = related_sets(3), Fraction(share)
    join, found = ExactJoin(bound), set[tuple[int, int]]()
    for number, each in enumerate(sets):
        found.update((int(name), number) for name, _ in join.add(str(number), sorted(each)))
    pairs = list(combinations(range(len(sets)), 2))
    assert found == {pair for pair in pairs if resemblance(sets[pair[0]], sets[pair[1]]) >= bound}
    assert len(found) > 100
    assert join.compared <= len(pairs) / 10


def test_a_resemblance_out_of_range_is_refused() -> None:
    for wrong in (Fraction(0), Fraction(11, 10)):
        with pytest.raises(ValueError, match="a resemblance above 0"):
            ExactJoin(wrong)
