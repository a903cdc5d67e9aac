"""Bands of a sketch."""

import pytest

from nearstream.streams.signing.scheme import band_values, hit_probability


def test_bands_are_consecutive_slots() -> None:
    assert band_values(bytes(range(12)), 2, 2, 3) == [bytes(range(6)), bytes(range(6, 12))]


def test_slots_beyond_the_last_band_are_left_out() -> None:
    values = band_values(bytes(512), 4, 25, 5)
    assert [len(each) for each in values] == [20] * 25


@pytest.mark.parametrize(("similarity", "expected"), [(0.5, 0.55), (0.7, 0.99), (0.8, 1.0), (0.0, 0.0), (1.0, 1.0)])
def test_the_curve_has_its_known_values(similarity: float, expected: float) -> None:
    assert hit_probability(similarity, 25, 5) == pytest.approx(expected, abs=0.006)
