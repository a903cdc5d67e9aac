"""Minhash, banding and other samples of sets give the figures of the sources."""

from fractions import Fraction
from itertools import combinations, permutations
from random import Random

import pytest

from benchmarks.reference.permutations import (
    INFINITE,
    first_rows,
    grouped_resemblance,
    minhash,
    signature_matrices,
)
from benchmarks.reference.samples import bin_resemblance, bins, replicate, smallest, two_bit
from benchmarks.reference.supershingles import group_probability, groups, run_probability
from nearstream.streams.signing.scheme import band_values, hit_probability

COLUMNS = ({"a", "d"}, {"c"}, {"b", "d", "e"}, {"a", "c", "d"})


def resemblance(one: set[str], other: set[str]) -> Fraction:
    return Fraction(len(one & other), len(one | other))


def test_the_minhash_of_a_column_is_its_first_row() -> None:
    assert [minhash(column, "beadc") for column in COLUMNS] == ["a", "c", "b", "a"]
    with pytest.raises(ValueError, match="one of the rows"):
        minhash(set(), "beadc")


def test_the_share_of_orders_with_equal_minhashes_is_the_resemblance() -> None:
    known = {(0, 1): 0, (0, 2): "1/4", (0, 3): "2/3", (1, 2): 0, (1, 3): "1/3", (2, 3): "1/5"}
    orders = list(permutations("abcde"))
    for (one, other), expected in known.items():
        agree = sum(minhash(COLUMNS[one], order) == minhash(COLUMNS[other], order) for order in orders)
        assert Fraction(agree, 120) == resemblance(COLUMNS[one], COLUMNS[other]) == Fraction(expected)


def test_hash_functions_stand_for_orders_of_rows() -> None:
    columns = [{"abcde".index(row) for row in column} for column in COLUMNS]
    steps = list(signature_matrices(columns, 5, [lambda x: (x + 1) % 5, lambda x: (3 * x + 1) % 5]))
    assert steps[0] == [[1, INFINITE, INFINITE, 1]] * 2
    assert [line[2] for line in steps[1]] == [2, 4]  # row 1, which the notes call row 2
    assert [line[1] for line in steps[2]] == [3, 2]
    assert steps[3] == [[1, 3, 2, 1], [0, 2, 0, 0]]
    assert steps[4] == [[1, 3, 0, 1], [0, 2, 0, 0]]
    first, *_, last = zip(*steps[4], strict=True)
    assert first == last  # the estimate of S1 and S4 is 1, though their resemblance is 2/3


def test_the_first_rows_of_an_order_may_suffice() -> None:
    columns = dict(zip(("S1", "S2", "S3", "S4"), COLUMNS, strict=True))
    assert all(first_rows(column, "abcde", 3) is not None for column in columns.values())
    assert [name for name, column in columns.items() if first_rows(column, "abcde", 2) is None] == ["S2"]


def test_groups_of_rows_estimate_with_an_error() -> None:
    columns, halves = ({5, 6, 7}, {4, 5, 6}, {3, 4, 5}), (range(1, 5), range(5, 9))
    found = [grouped_resemblance(one, other, halves) for one, other in combinations(columns, 2)]
    assert found == [Fraction(1, 3), Fraction(1, 6), Fraction(1, 2)]
    with pytest.raises(ValueError, match="one of the groups"):
        grouped_resemblance(set(), set(), halves)


def test_a_pair_that_agrees_in_just_the_threshold_is_similar() -> None:
    threshold = (1 / 16) ** (1 / 4)
    assert threshold == Fraction(32, 64)  # step 6 of the notes, "more than t", would lose a pair with 32 of 64 minima


def test_the_curve_of_20_bands_of_5_rows_is_that_of_the_source() -> None:
    points = [hit_probability(share / 10, 20, 5) for share in range(2, 9)]
    assert points == pytest.approx([0.006, 0.047, 0.186, 0.470, 0.802, 0.975, 0.9996], abs=5e-4)
    assert hit_probability(0.8, 1, 5) == pytest.approx(1 - 0.672, abs=5e-4)
    assert 1 / (1 - points[-1]) == pytest.approx(2_809, abs=1)


@pytest.mark.parametrize(
    ("bands", "rows", "half", "textbook"),
    [
        (16, 4, 0.4538, 0.5),
        (20, 5, 0.5087, 0.5493),
        (10, 3, 0.4061, 0.4642),
        (20, 6, 0.5694, 0.6070),
        (50, 5, 0.4244, 0.4573),
    ],
)
def test_the_textbook_threshold_is_neither_half_way_nor_safe(
    bands: int, rows: int, half: float, textbook: float
) -> None:
    """The source calls one number the threshold, the half-way point and the steepest one."""
    assert hit_probability(half, bands, rows) == pytest.approx(0.5, abs=1e-3)
    assert (1 / bands) ** (1 / rows) == pytest.approx(textbook, abs=5e-5)
    assert 0.635 <= hit_probability((1 / bands) ** (1 / rows), bands, rows) <= 0.652


@pytest.mark.parametrize(
    ("bands", "rows", "at_3_5_7"),
    [(10, 3, (0.2394, 0.7369, 0.9850)), (20, 6, (0.0145, 0.2702, 0.9182)), (50, 5, (0.1145, 0.7956, 0.9999))],
)
def test_the_exercise_on_bands_has_these_answers(bands: int, rows: int, at_3_5_7: tuple[float, float, float]) -> None:
    assert [hit_probability(share, bands, rows) for share in (0.3, 0.5, 0.7)] == pytest.approx(at_3_5_7, abs=5e-5)


def test_equal_bands_at_different_places_never_meet() -> None:
    columns = [bytes(column) for column in ((1, 3, 0), (0, 2, 1), (0, 1, 3), (0, 2, 1), (2, 2, 1))]
    equal = [pair for pair in combinations(range(5), 2) if columns[pair[0]] == columns[pair[1]]]
    assert equal == [(1, 3)]
    one, other = b"\1\2\3\4", b"\3\4\1\2"
    numbered = [set(enumerate(band_values(sketch, 1, 2, 2))) for sketch in (one, other)]
    assert not numbered[0] & numbered[1]


def test_the_smallest_of_the_union_are_compared() -> None:
    assert smallest({1, 2, 5, 9}, {1, 3, 5, 8}, 4) == 0.5
    assert smallest(set(), set(), 4) == 0.0


def test_bins_empty_on_both_sides_are_not_counted() -> None:
    one, other = bins({0, 5, 9}, 4), bins({0, 5, 6}, 4)
    assert one == [0, 1, None, None]
    assert other == [0, 1, 1, None]
    assert bin_resemblance(one, other) == 2 / 3
    assert bin_resemblance(bins(set(), 4), bins(set(), 4)) == 0.0


@pytest.mark.parametrize(("features", "empty"), [(100, 58), (200, 27), (500, 2.5), (1_000, 0.05)])
def test_small_sets_leave_many_bins_empty(features: int, empty: float) -> None:
    assert 128 * (1 - 1 / 128) ** features == pytest.approx(empty, rel=0.03)
    drawn = [bins(Random(seed).sample(range(10**9), features), 128).count(None) for seed in range(200)]
    assert sum(drawn) / 200 == pytest.approx(empty, abs=1)


def test_two_bit_estimates_are_never_negative() -> None:
    assert [two_bit(matching) for matching in (128, 80, 32, 20)] == [1.0, 0.5, 0.0, 0.0]


def test_a_weight_is_a_number_of_features() -> None:
    one, other = replicate({"a": 2, "b": 1}), replicate({"a": 1, "b": 1})
    assert Fraction(len(one & other), len(one | other)) == Fraction(2, 3)


RESEMBLANCES = (0.75, 0.80, 0.85, 0.90, 0.95, 0.98)


@pytest.mark.parametrize(
    ("run", "needed", "expected"),
    [
        (14, 2, (0.0045, 0.0258, 0.1198, 0.4151, 0.8786, 0.9957)),
        (5, 4, (0.0313, 0.0946, 0.2450, 0.5246, 0.8663, 0.9858)),
    ],
)
def test_megashingles_miss_pairs_that_bands_find(run: int, needed: int, expected: tuple[float, ...]) -> None:
    found = [group_probability(each, run, 6, needed) for each in RESEMBLANCES]
    assert found == pytest.approx(expected, abs=5e-5)
    assert all(hit_probability(each, 15, 8) > chance for each, chance in zip(RESEMBLANCES, found, strict=True))


def test_one_run_of_14_agrees_with_these_probabilities() -> None:
    assert run_probability(0.95, 14) == pytest.approx(0.4877, abs=5e-5)
    assert run_probability(0.90, 14) == pytest.approx(0.2288, abs=5e-5)
    once, agrees = group_probability(0.9, 14, 6, 1), run_probability(0.9, 14)
    assert once == pytest.approx(1 - (1 - agrees) ** 6)
    assert group_probability(0.9, 14, 6, 2) == pytest.approx(once - 6 * (1 - agrees) ** 5 * agrees)


def test_megashingle_groups_meet_if_and_only_if_two_runs_agree() -> None:
    one = [bytes((place,)) for place in range(6)]
    assert len(groups(one, 2)) == len(groups(one, 4)) == 15
    for agreeing in range(7):
        other = one[:agreeing] + [b"other"] * (6 - agreeing)
        assert bool(set(groups(one, 2)) & set(groups(other, 2))) == (agreeing >= 2)
