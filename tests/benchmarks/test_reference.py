"""The methods of the sources give the figures that these print, errors of theirs included."""

import ast
import json
import math
import random
from fractions import Fraction
from functools import cache
from itertools import pairwise, permutations
from pathlib import Path

import numpy as np
import pytest
from rapidfuzz.distance import Levenshtein

from benchmarks.reference.amplification import Sensitivity, all_of, any_of, fixed_point, steepest, then
from benchmarks.reference.block_comparison import cross_distance
from benchmarks.reference.ld_compression import (
    compress_to_bits,
    compress_to_symbols,
    residual,
    scaled_distance,
    window_sums,
)
from benchmarks.reference.permutations import INFINITE, minhash, signature_matrices
from benchmarks.reference.samples import bin_resemblance, bins, replicate, smallest, two_bit
from benchmarks.reference.stop_words import stop_word_shingles
from benchmarks.reference.supershingles import groups
from benchmarks.reference.text_profile import profile_digest, text_profile
from nearstream.streams.signing.scheme import hit_probability

EXAMPLES = Path(__file__).parents[2] / "examples/documents.jsonl"

# Blog, section "How well does it work?", second table, at C = 100: lengths, signature lengths, distance of the
# signatures, true distance, estimate, error over the longer text, residual. Two errors are printed shorter or rounded.
ACCURACY = [
    ((27_478, 23_932), (366, 419), 366, 20_706, 24_002, 0.1200, 0.855),
    ((27_620, 27_620), (305, 305), 0, 0, 0, 0.0, 0.0),
    ((4_865, 2_404), (34, 61), 27, 2_461, 2_153, 0.0632, 0.0),
    ((4_865, 2_474), (27, 61), 34, 2_391, 2_711, 0.0659, 0.0),
    ((4_865, 4_801), (59, 61), 3, 64, 239, 0.0360, 0.017),
]
AND_OR = then(all_of(4), any_of(4))
OR_AND = then(any_of(4), all_of(4))
COLUMNS = ({"a", "d"}, {"c"}, {"b", "d", "e"}, {"a", "c", "d"})
CAT = "The cat sat. The cat ran; the dog sat on it!"
NEWS = (
    "A spokesperson for the Sudzo Corporation revealed today that studies have shown it is good for people to buy"
    " Sudzo products"
)
STOP_WORDS = {"a", "for", "the", "that", "have", "it", "is", "to", "i", "you", "your"}


@cache
def texts() -> list[str]:
    documents = [json.loads(line) for line in EXAMPLES.read_text(encoding="utf-8").splitlines()]
    return [document["text"] for document in sorted(documents, key=lambda document: str(document["id"]))]


@cache
def speeches() -> list[str]:
    """Return the first 13,508 characters of speeches, the length of the paper's text."""
    documents = [json.loads(line) for line in EXAMPLES.read_text(encoding="utf-8").splitlines()]
    long = [entry for entry in documents if entry["labels"]["kind"] == "speech" and len(entry["text"]) >= 13_508]
    return [entry["text"][:13_508] for entry in sorted(long, key=lambda entry: str(entry["id"]))]


def estimate(one: str, other: str, rate: int, neighbourhood: int) -> float:
    signatures = [compress_to_bits(text.encode(), rate=rate, neighbourhood=neighbourhood) for text in (one, other)]
    distance = Levenshtein.distance(signatures[0].tobytes(), signatures[1].tobytes())
    return scaled_distance(distance, (len(one), len(other)), (signatures[0].size, signatures[1].size))


def test_a_fixed_text_has_a_fixed_signature() -> None:
    text = "It was the best of times, it was the worst of times, it was the age of wisdom"
    assert compress_to_symbols(text, rate=5, neighbourhood=12) == "IpK8shriO8s3"
    assert "".join(map(str, compress_to_bits(text.encode(), rate=5, neighbourhood=4))) == "1001010001001"


def test_rate_100_leaves_31_symbols_and_rate_310_one() -> None:
    text = "".join(texts())[:200_000]
    found = {rate: len(set(compress_to_symbols(text, rate=rate, neighbourhood=12))) for rate in (25, 31, 62, 100, 310)}
    assert found == {25: 62, 31: 2, 62: 1, 100: 31, 310: 1}
    assert found == {rate: 62 // math.gcd(rate, 62) for rate in found}


@pytest.mark.parametrize(("lengths", "signatures", "distance", "true", "estimated", "error", "left"), ACCURACY)
def test_the_blogs_table_follows_from_the_ratio_of_lengths(
    lengths: tuple[int, int],
    signatures: tuple[int, int],
    distance: int,
    true: int,
    estimated: int,
    error: float,
    left: float,
) -> None:
    assert int(scaled_distance(distance, lengths, signatures)) == pytest.approx(estimated, abs=1)
    assert abs(scaled_distance(distance, lengths, signatures) - true) / max(lengths) == pytest.approx(error, abs=1e-4)
    assert residual(distance, signatures) == pytest.approx(left, abs=5e-4)


def test_an_additive_hash_cannot_see_anagrams() -> None:
    assert window_sums(b"abcd", 4) == window_sums(b"dcba", 4)
    assert window_sums(b"ac", 2) == window_sums(b"bb", 2)


def test_bits_overestimate_few_substitutions_and_fall_short_at_many() -> None:
    errors = [np.mean([substitution_error(text, percent) for text in speeches()[:10]]) for percent in (5, 20, 30)]
    assert errors[0] > 0.02 > errors[1] > errors[2]
    assert errors[2] < -0.02


def substitution_error(text: str, percent: int) -> float:
    """Return the signed error of the estimate at C = 50, N = 4.

    It is divided by the paper's distance of unrelated texts.
    """
    rng = random.Random(percent)
    changed = list(text)
    for place in rng.sample(range(len(text)), len(text) * percent // 100):
        changed[place] = chr(rng.randint(32, 126))
    other = "".join(changed)
    return (estimate(text, other, 50, 4) - Levenshtein.distance(text, other)) / 12_430


@pytest.mark.parametrize("blocks", [1, 5, 10])
def test_inserted_blocks_come_out_near_the_truth(blocks: int) -> None:
    rng = random.Random(blocks)
    estimates = []
    for text, other in pairwise(speeches()[:11]):
        grown = text
        for _ in range(blocks):
            at, start = rng.randrange(len(grown)), rng.randrange(10_000)
            grown = grown[:at] + other[start : start + 500] + grown[at:]
        estimates.append(estimate(text, grown, 50, 4))
    assert np.mean(estimates) == pytest.approx(500 * blocks, rel=0.35)


def test_the_reference_rests_on_nothing_that_it_shall_judge() -> None:
    for room in (EXAMPLES.parents[1] / "benchmarks/reference").glob("*.py"):
        for node in ast.walk(ast.parse(room.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                ours = name.split(".")[0] == "nearstream"
                assert not ours or name.startswith(
                    ("benchmarks.reference", "nearstream.streams.fingerprints.normalize")
                ), f"{room}: {name}"


@pytest.mark.parametrize(
    ("text", "profile", "digest"),
    [
        (CAT, "cat 2\nsat 2\nthe 2", "fc7dd611c5dbe187ff04a506633f85a3"),
        ("the CAT sat the cat hid: the dog sat upon it", "cat 2\nsat 2\nthe 2", "fc7dd611c5dbe187ff04a506633f85a3"),
        ("one two three", "one 1\nthree 1\ntwo 1", "99a9525fdb41ea78db6bdc79810b27c4"),
        ("don't stop; don't stop", "don 2\nstop 2", "d961b9b3f4b60f22e75858b5c20295b6"),
    ],
)
def test_a_profile_is_that_of_nutch(text: str, profile: str, digest: str) -> None:
    assert (text_profile(text), profile_digest(text)) == (profile, digest)


def test_an_article_has_stop_words_and_an_advertisement_none() -> None:
    found = stop_word_shingles(NEWS, STOP_WORDS)
    assert found[:3] == ["a spokesperson for", "for the sudzo", "the sudzo corporation"]
    assert len(found) == 9
    assert stop_word_shingles("Buy Sudzo", STOP_WORDS) == []
    exercise = "I recommend that you buy Sudzo for your laundry"
    assert len(stop_word_shingles(exercise, STOP_WORDS)) == 4
    assert len(stop_word_shingles(f"{exercise} today", STOP_WORDS)) == 5


def test_blocks_are_found_in_another_order() -> None:
    one, other = "AAAAABBBBBCCCCC", "CCCCCAAAAABBBBB"
    assert Levenshtein.distance(one, other) == 10
    assert cross_distance(one, other, 5) == 0
    assert cross_distance(one, "CCCCCAAAAABBXBB", 5) == 1
    assert cross_distance(one, "CCCCCAAAAABBXBB", 5, best=2) == 0
    with pytest.raises(ValueError, match="at least one symbol"):
        cross_distance("", other, 5)


def resemblance(one: set[str], other: set[str]) -> Fraction:
    return Fraction(len(one & other), len(one | other))


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


def test_the_curve_of_20_bands_of_5_rows_is_that_of_the_source() -> None:
    points = [hit_probability(share / 10, 20, 5) for share in range(2, 9)]
    assert points == pytest.approx([0.006, 0.047, 0.186, 0.470, 0.802, 0.975, 0.9996], abs=5e-4)
    assert hit_probability(0.8, 1, 5) == pytest.approx(1 - 0.672, abs=5e-4)
    assert 1 / (1 - points[-1]) == pytest.approx(2_809, abs=1)


def test_the_smallest_of_the_union_are_compared() -> None:
    assert smallest({1, 2, 5, 9}, {1, 3, 5, 8}, 4) == 0.5
    assert smallest(set(), set(), 4) == 0.0


def test_bins_empty_on_both_sides_are_not_counted() -> None:
    one, other = bins({0, 5, 9}, 4), bins({0, 5, 6}, 4)
    assert one == [0, 1, None, None]
    assert other == [0, 1, 1, None]
    assert bin_resemblance(one, other) == 2 / 3
    assert bin_resemblance(bins(set(), 4), bins(set(), 4)) == 0.0


def test_two_bit_estimates_are_never_negative() -> None:
    assert [two_bit(matching) for matching in (128, 80, 32, 20)] == [1.0, 0.5, 0.0, 0.0]


def test_a_weight_is_a_number_of_features() -> None:
    one, other = replicate({"a": 2, "b": 1}), replicate({"a": 1, "b": 1})
    assert Fraction(len(one & other), len(one | other)) == Fraction(2, 3)


def test_megashingle_groups_meet_if_and_only_if_two_runs_agree() -> None:
    one = [bytes((place,)) for place in range(6)]
    assert len(groups(one, 2)) == len(groups(one, 4)) == 15
    for agreeing in range(7):
        other = one[:agreeing] + [b"other"] * (6 - agreeing)
        assert bool(set(groups(one, 2)) & set(groups(other, 2))) == (agreeing >= 2)


def test_a_curve_is_steeper_than_the_source_says() -> None:
    """The source says "not much higher than 2"."""
    assert fixed_point(AND_OR) == pytest.approx(0.7245, abs=5e-5)
    assert fixed_point(OR_AND) == pytest.approx(0.2755, abs=5e-5)
    for curve, place in ((AND_OR, 0.669), (OR_AND, 0.331)):
        assert steepest(curve) == (pytest.approx(place, abs=1e-3), pytest.approx(2.45, abs=5e-3))


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
