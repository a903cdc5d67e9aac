"""Sketches, their error and their bands."""

import numpy as np
import pytest

from nearstream.streams.fingerprints.minhash import sketch
from nearstream.streams.fingerprints.parameters import SketchRules
from nearstream.streams.fingerprints.polynomials import distinct
from nearstream.streams.signing.scheme import band_values, hit_probability
from tests.support.signing_reference import sketch_reference

TRIALS = 1500
WIDE = SketchRules()


def pair(random: np.random.Generator, size: int, common: int) -> tuple[bytes, bytes]:
    """Return sketches of two random sets of `size` features with `common` ones."""
    features = random.integers(0, 2**64, 2 * size - common, dtype=np.uint64)
    return tuple(sketch(distinct(part.copy()), WIDE) for part in (features[:size], features[size - common :]))


def equal_slots(a: bytes, b: bytes) -> int:
    return int(np.count_nonzero(np.frombuffer(a, dtype="<u4") == np.frombuffer(b, dtype="<u4")))


def share_a_band(a: bytes, b: bytes) -> bool:
    return any(x == y for x, y in zip(band_values(a, 4, 25, 5), band_values(b, 4, 25, 5), strict=True))


def test_no_features_give_a_sketch_of_ones() -> None:
    assert sketch(np.empty(0, dtype=np.uint64), WIDE) == b"\xff" * 512
    assert sketch(np.empty(0, dtype=np.uint64), SketchRules(bits=8)) == b"\xff" * 128


@pytest.mark.parametrize("size", [1, 2, 3, 4, 20, 165, 850, 1025])
def test_slots_are_those_of_the_reference_whichever_rounds_fill_them(size: int) -> None:
    for seed in range(5):
        features = distinct(np.random.default_rng(seed).integers(0, 2**64, size, dtype=np.uint64))
        expected = sketch_reference(set(features.tolist()))
        assert np.frombuffer(sketch(features, WIDE), dtype="<u4").tolist() == expected


@pytest.mark.parametrize("bits", [8, 16])
def test_narrow_slots_are_the_low_bits_of_wide_ones(bits: int) -> None:
    features = distinct(np.arange(1, 40, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    wide = np.frombuffer(sketch(features, WIDE), dtype="<u4")
    assert sketch(features, SketchRules(bits=bits)) == wide.astype(f"<u{bits // 8}").tobytes()


@pytest.mark.parametrize(("size", "common"), [(20, 18), (50, 44), (200, 178), (2000, 1778)])
def test_the_error_is_at_most_that_of_k_permutations(size: int, common: int) -> None:
    random = np.random.default_rng(size)
    true = common / (2 * size - common)
    ours = np.array([equal_slots(*pair(random, size, common)) for _ in range(TRIALS)]) / 128
    theirs = random.binomial(128, true, 200_000) / 128
    assert np.abs(ours - true).mean() <= 1.05 * np.abs(theirs - true).mean()


def test_at_resemblance_80_of_20_features_nearly_all_pairs_share_a_band() -> None:
    random = np.random.default_rng(5)
    hits = sum(share_a_band(*pair(random, 18, 16)) for _ in range(TRIALS))
    assert hits >= 0.99 * TRIALS


@pytest.mark.parametrize(("common", "size"), [(400, 700), (500, 750), (600, 800), (700, 850)])
def test_the_hit_curve_follows_the_formula(common: int, size: int) -> None:
    random = np.random.default_rng(common)
    trials = 600
    expected = hit_probability(common / (2 * size - common), 25, 5)
    hits = sum(share_a_band(*pair(random, size, common)) for _ in range(trials)) / trials
    assert abs(hits - expected) <= 4 * (expected * (1 - expected) / trials) ** 0.5
