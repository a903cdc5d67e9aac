"""AND, OR and cascades, other families of hash functions, and distances give the figures of the source."""

from itertools import product
from math import pi
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.reference import distances
from benchmarks.reference.amplification import Sensitivity, all_of, any_of, fixed_point, steepest, then
from benchmarks.reference.families import angle, hyperplane_sketch, line_bucket, sampled_bit

AND_OR = then(all_of(4), any_of(4))
OR_AND = then(any_of(4), all_of(4))


def test_both_orders_of_4_and_4_have_these_curves() -> None:
    rising = [AND_OR(share / 10) for share in range(2, 10)]
    assert rising == pytest.approx([0.0064, 0.0320, 0.0985, 0.2275, 0.4260, 0.6666, 0.8785, 0.9860], abs=5e-5)
    falling = [OR_AND(share / 10) for share in range(1, 9)]
    assert falling == pytest.approx([0.0140, 0.1215, 0.3334, 0.5740, 0.7725, 0.9015, 0.9680, 0.9936], abs=5e-5)


def test_a_curve_is_steeper_than_the_source_says() -> None:
    """The source says "not much higher than 2"."""
    assert fixed_point(AND_OR) == pytest.approx(0.7245, abs=5e-5)
    assert fixed_point(OR_AND) == pytest.approx(0.2755, abs=5e-5)
    for curve, place in ((AND_OR, 0.669), (OR_AND, 0.331)):
        assert steepest(curve) == (pytest.approx(place, abs=1e-3), pytest.approx(2.45, abs=5e-3))


def test_a_construction_changes_both_probabilities() -> None:
    family = Sensitivity(0.2, 0.6, 0.8, 0.4)
    assert family.through(AND_OR)[2:] == (pytest.approx(0.8785, abs=5e-5), pytest.approx(0.0985, abs=5e-5))
    assert family.through(OR_AND)[2:] == (pytest.approx(0.9936, abs=5e-5), pytest.approx(0.5740, abs=5e-5))


def test_the_exercises_on_constructions_have_these_fixed_points() -> None:
    curves = (
        then(all_of(2), any_of(3)),
        then(any_of(3), all_of(2)),
        then(all_of(2), any_of(2), all_of(2)),
        then(any_of(2), all_of(2), any_of(2), all_of(2)),
    )
    assert [fixed_point(curve) for curve in curves] == pytest.approx([0.3894, 0.1516, 0.8474, 0.3820], abs=5e-5)


def test_the_cascade_depends_on_its_order() -> None:
    """The source gives the second pair of numbers for the first order, with one digit too many."""
    family = Sensitivity(0.2, 0.8, 0.8, 0.2)
    first, second = family.through(then(AND_OR, OR_AND)), family.through(then(OR_AND, AND_OR))
    assert first[2:] == (pytest.approx(0.99913, abs=5e-6), pytest.approx(4.1e-7, rel=0.02))
    assert second[2:] == (pytest.approx(0.99999959, abs=1e-8), pytest.approx(0.00087148, abs=5e-9))


def test_fingerprints_need_many_grid_squares() -> None:
    """The source says "one in 200". It is one in 244."""
    same, other = 0.2**3 * 0.8**3, 0.2**6
    assert (same, other) == (pytest.approx(0.004096), pytest.approx(0.000064))
    once = any_of(1024)
    assert (once(same), once(other)) == (pytest.approx(0.9850, abs=5e-5), pytest.approx(0.0634, abs=5e-5))
    twice = then(once, all_of(2))
    assert (twice(same), twice(other)) == (pytest.approx(0.9703, abs=5e-5), pytest.approx(0.0040, abs=5e-5))
    many = any_of(2048)
    assert (1 - many(same), many(other)) == (pytest.approx(0.00022, abs=5e-6), pytest.approx(0.1228, abs=5e-5))
    errors = {n: 1 - any_of(n)(same) + any_of(n)(other) for n in range(500, 2000)}
    assert min(errors, key=lambda n: errors[n]) == pytest.approx(1030, abs=1)
    assert min(errors.values()) == pytest.approx(0.0784, abs=5e-5)
    assert 1 / same == pytest.approx(244, abs=0.5)


def signs(text: str) -> list[int]:
    return [1 if sign == "+" else -1 for sign in text]


def test_a_sketch_angle_counts_disagreement() -> None:
    """A summary in the source counts agreement. Its example has v2·x = 3, which is 2."""
    x, y, normals = [3, 4, 5, 6], [4, 3, 2, 1], list(map(signs, ("+-++", "-+-+", "++--")))
    dots = [[sum(a * b for a, b in zip(vector, normal, strict=True)) for normal in normals] for vector in (x, y)]
    assert dots == [[10, 2, -4], [4, -2, 4]]
    assert angle(hyperplane_sketch(x, normals), hyperplane_sketch(y, normals)) == pytest.approx(120)
    assert distances.angle(x, y) == pytest.approx(38.05, abs=5e-3)
    everything = list(product((1, -1), repeat=4))
    assert angle(hyperplane_sketch(x, everything), hyperplane_sketch(y, everything)) == pytest.approx(45)


def test_the_exercise_on_sketches_has_these_angles() -> None:
    normals = list(map(signs, ("+++-", "++-+", "+-++", "-+++")))
    vectors = ([2, 3, 4, 5], [-2, 3, -4, 5], [2, -3, 4, -5])
    sketches = [hyperplane_sketch(vector, normals) for vector in vectors]
    assert ["".join("-+"[side] for side in sketch) for sketch in sketches] == ["++++", "-+-+", "+-+-"]
    places = ((0, 1), (0, 2), (1, 2))
    assert [angle(sketches[a], sketches[b]) for a, b in places] == [90, 90, 180]
    assert [round(distances.angle(vectors[a], vectors[b])) for a, b in places] == [75, 105, 180]


def test_sampled_bits_agree_as_often_as_components() -> None:
    one, other = (1, 0, 1, 0, 1), (1, 1, 1, 1, 0)
    agree = sum(sampled_bit(one, place) == sampled_bit(other, place) for place in range(5))
    assert agree / 5 == 1 - distances.hamming(one, other) / 5 == pytest.approx(0.4)


@pytest.mark.parametrize(("apart", "exact", "bound"), [(0.5, 0.682, 0.5), (2.0, 0.163, 1 / 3)])
def test_lines_in_the_plane_keep_the_bounds_of_the_source(apart: float, exact: float, bound: float) -> None:
    random, agree, draws = Random(5), 0, 20_000
    for _ in range(draws):
        towards, offset = (random.gauss(0, 1), random.gauss(0, 1)), random.random()
        agree += line_bucket((0, 0), towards, 1, offset) == line_bucket((apart, 0), towards, 1, offset)
    assert agree / draws == pytest.approx(exact, abs=0.012)
    assert agree / draws > bound if apart < 1 else agree / draws < bound
    assert 1 - 0.5 * 2 / pi == pytest.approx(0.682, abs=5e-4)


def test_the_exercise_on_lines_has_these_candidates() -> None:
    points, axes = ((1, 2, 3), (0, 2, 4), (4, 3, 2)), ((1, 0, 0), (0, 1, 0), (0, 0, 1))

    def meet(one: int, other: int, width: float) -> bool:
        return any(line_bucket(points[one], axis, width) == line_bucket(points[other], axis, width) for axis in axes)

    assert [meet(*pair, 1) for pair in ((0, 1), (0, 2), (1, 2))] == [True, False, False]
    assert all(meet(*pair, 2) for pair in ((0, 1), (0, 2), (1, 2)))


def test_distances_have_the_values_of_the_source() -> None:
    one, other = (2, 7), (6, 4)
    assert [distances.minkowski(one, other, r) for r in (2, 1)] == pytest.approx([5, 7])
    assert distances.largest_difference(one, other) == 4
    assert distances.minkowski((5, 6, 7), (8, 2, 4), 1) == pytest.approx(10)
    assert distances.minkowski((5, 6, 7), (8, 2, 4), 2) == pytest.approx(5.831, abs=5e-4)
    assert distances.angle((1, 2, -1), (2, 1, 1)) == pytest.approx(60)
    assert [distances.jaccard({1, 2, 3, 4}, {2, 3, 4, 5}), distances.jaccard({1, 2, 3}, {4, 5, 6})] == [
        pytest.approx(2 / 5),
        1,
    ]
    pairs = (
        ((3, -1, 2), (-2, 3, 1), -1 / 2),
        ((1, 2, 3), (2, 4, 6), 1),
        ((5, 0, -4), (-1, -6, 2), -0.3171),
        ((0, 1, 1, 0, 1, 1), (0, 0, 1, 0, 0, 0), 1 / 2),
    )
    for one_vector, other_vector, expected in pairs:
        assert distances.cosine(one_vector, other_vector) == pytest.approx(expected, abs=5e-5)
    words = ("000000", "110011", "010101", "011100")
    found = [distances.hamming(words[a], words[b]) for a in range(4) for b in range(a + 1, 4)]
    assert (distances.hamming("10101", "11110"), found) == (3, [4, 3, 3, 3, 5, 2])


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("abcde", "acfdeg", (3, 3, 3)),
        ("aba", "bab", (2, 2, 2)),
        ("abcdef", "bdaefc", (4, 4, 4)),
        ("abccdabc", "acbdcab", (5, 4, 3)),
        ("abcdef", "baedfc", (6, 5, 4)),
        ("Bill", "William", (5, 4, 4)),
    ],
)
def test_insert_delete_distance_is_not_levenshtein(one: str, other: str, expected: tuple[int, int, int]) -> None:
    measures = (distances.insert_delete, distances.levenshtein, distances.with_swaps)
    assert tuple(measure(one, other) for measure in measures) == expected


def test_a_larger_norm_is_equal_where_one_coordinate_differs() -> None:
    """The source asks to prove that it is always smaller."""
    assert [distances.minkowski((0, 5), (0, 1), r) for r in (1, 2, 3)] == pytest.approx([4, 4, 4])


@given(*[st.text("abc", max_size=8)] * 3)
def test_edit_distances_keep_the_triangle_inequality(x: str, y: str, z: str) -> None:
    for measure in (distances.insert_delete, distances.levenshtein):
        assert measure(x, z) <= measure(x, y) + measure(y, z)
