"""Rates count verdicts by kind over the last hour."""

import pytest

from nearstream.workers.http.live.feed import SLOT_MS, SLOTS, Rates

NOW = 1_772_440_205_000


def test_verdicts_are_counted_in_the_slot_of_their_time() -> None:
    rates = Rates()
    for back, kind in ((0, "unique"), (0, "unique"), (1, "near_duplicate"), (SLOTS - 1, "unique")):
        rates.add(kind, NOW - back * SLOT_MS, 5)
    series = rates.series(NOW)
    assert {len(numbers) for numbers in series.values()} == {SLOTS}
    assert (series["unique"][-1], series["unique"][0], series["near_duplicate"][-2]) == (2, 1, 1)
    assert sum(map(sum, series.values())) == 4


def test_what_is_older_than_an_hour_is_not_kept() -> None:
    rates = Rates()
    rates.add("unique", NOW, 5)
    rates.add("unique", NOW - SLOTS * SLOT_MS, 5)
    assert sum(rates.series(NOW)["unique"]) == 1
    for hour in range(1, 5):
        for slot in range(SLOTS):
            rates.add("unique", NOW + (hour * SLOTS + slot) * SLOT_MS, 5)
    assert len(rates._slots) == SLOTS


def test_the_rate_is_that_of_whole_slots() -> None:
    rates = Rates()
    for second in range(120):
        for _ in range(3):
            rates.add("unique", NOW - second * 1000, 5)
    assert rates.per_second(NOW) == 3.0


def test_a_quantile_is_off_by_less_than_a_tenth() -> None:
    for milliseconds in [0, 1, 7, 150, 90_000, 86_400_000]:
        rates = Rates()
        for _ in range(99):
            rates.add("unique", NOW, milliseconds)
        rates.add("unique", NOW, 10_000_000_000)
        half, most = rates.ages(NOW, 0.5, 0.999)
        assert half == pytest.approx(milliseconds / 1000, rel=0.1)
        assert most == pytest.approx(10_000_000, rel=0.1)
        assert Rates().ages(NOW, 0.5) == [None]
