"""Bands of a sketch."""

import pytest

from nearstream.streams.signing.scheme import band_values, choose, hit_probability


def test_bands_are_consecutive_slots() -> None:
    assert band_values(bytes(range(12)), 2, 2, 3) == [bytes(range(6)), bytes(range(6, 12))]


def test_slots_beyond_the_last_band_are_left_out() -> None:
    values = band_values(bytes(512), 4, 25, 5)
    assert [len(each) for each in values] == [20] * 25


@pytest.mark.parametrize(("similarity", "expected"), [(0.5, 0.55), (0.7, 0.99), (0.8, 1.0), (0.0, 0.0), (1.0, 1.0)])
def test_the_curve_has_its_known_values(similarity: float, expected: float) -> None:
    assert hit_probability(similarity, 25, 5) == pytest.approx(expected, abs=0.006)


def test_the_preset_is_the_choice_for_resemblance_70_with_recall_99() -> None:
    assert choose(0.7, 0.989, 128) == (25, 5)


@pytest.mark.parametrize("similarity", [0.3, 0.5, 0.7, 0.9, 0.99, 1.0])
@pytest.mark.parametrize("recall", [0.5, 0.9, 0.99])
def test_the_choice_reaches_the_recall_with_no_band_to_spare(similarity: float, recall: float) -> None:
    bands, rows = choose(similarity, recall, 128)
    assert bands * rows <= 128
    assert hit_probability(similarity, bands, rows) >= recall
    assert bands == 1 or hit_probability(similarity, bands - 1, rows) < recall
    most = 128 // (rows + 1)
    assert most == 0 or hit_probability(similarity, most, rows + 1) < recall


@pytest.mark.parametrize("numbers", [(0.0, 0.9, 128), (1.1, 0.9, 128), (0.5, 0.0, 128), (0.5, 1.0, 128), (0.5, 0.9, 0)])
def test_numbers_out_of_range_are_refused(numbers: tuple[float, float, int]) -> None:
    with pytest.raises(ValueError, match="expected"):
        choose(*numbers)


def test_an_unreachable_recall_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot find"):
        choose(0.01, 0.99, 128)
