"""The log of replayed dead letters."""

import argparse
import time

import pytest

from nearstream.workers.cli.arguments import since
from nearstream.workers.operations.dead_letters import (
    ALL_REASONS,
    RecentIds,
    parse_replay_log,
)

NOTHING = parse_replay_log("")


def test_it_covers_what_came_before_the_end_of_a_replay_and_survives_being_text() -> None:
    log = NOTHING.until("a", 5).until("a", 3).until(ALL_REASONS, 2)
    for offset in range(9):
        assert (log.covers("a", offset), log.covers("b", offset)) == (offset < 5, offset < 2)
    assert parse_replay_log(log.text) == log


def test_foreign_metadata_is_an_error() -> None:
    for text in ("x", "[]", '{"a": [1]}', '{"a": "1"}'):
        with pytest.raises(ValueError, match="offsets by reason expected"):
            parse_replay_log(text)


def test_since_takes_an_age_or_a_time_with_its_zone_and_nothing_else() -> None:
    for age, seconds in (("90s", 90), ("15m", 900), ("24h", 86_400), ("7d", 604_800)):
        assert abs(since(age) - 1000 * (time.time() - seconds)) < 5000
    assert since("99999d") == since("1900-01-01T00:00Z") == 1
    for text in ("", "yesterday", "5", "5w", "-5m", "2026-03-02", "2026-03-02T08:15:00", "9999999d"):
        with pytest.raises(argparse.ArgumentTypeError, match="expected"):
            since(text)
    assert since("2026-03-02T08:15:00Z") == since("2026-03-02T10:15+02:00") == 1_772_439_300_000


def test_a_dead_letter_that_was_written_twice_is_counted_once() -> None:
    recent = RecentIds()
    assert [recent.add(dead_id) for dead_id in "abab"] == [True, True, False, False]
    for number in range(100_000):
        recent.add(str(number))
    assert recent.add("a")
