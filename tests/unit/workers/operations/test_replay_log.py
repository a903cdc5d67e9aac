"""The log of replayed dead letters."""

import argparse
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearstream.workers.cli.arguments import since
from nearstream.workers.config.exit_codes import RefusalError
from nearstream.workers.operations.dead_letters import (
    ALL_REASONS,
    RecentIds,
    Replayed,
    parse_replay_log,
)

NOTHING = parse_replay_log("")


def test_spans_take_as_little_place_as_they_can() -> None:
    touching = NOTHING.with_span("a", 5, 9).with_span("a", 0, 3).with_span("a", 3, 5).with_span("a", 7, 8)
    assert touching.spans == {"a": ((0, 9),)}
    assert touching.with_span("a", 4, 4) == touching
    covered_by_all = NOTHING.with_span("a", 0, 3).with_span("b", 2, 6).with_span(ALL_REASONS, 0, 4)
    assert covered_by_all.spans == {"b": ((2, 6),), ALL_REASONS: ((0, 4),)}
    assert NOTHING.with_span(ALL_REASONS, 0, 0) == NOTHING
    no_longer_held = NOTHING.with_span("a", 0, 3).with_span("a", 4, 8).with_span("b", 0, 4)
    assert no_longer_held.since(4).spans == {"a": ((4, 8),)}


@given(st.lists(st.tuples(st.sampled_from(["", "a", "b"]), st.integers(0, 60), st.integers(0, 60))))
def test_it_is_the_set_of_its_offsets_and_survives_being_text(given: list[tuple[str, int, int]]) -> None:
    decided, known = NOTHING, set[tuple[str, int]]()
    for reason, start, end in given:
        decided = decided.with_span(reason, start, end)
        known |= {(reason, offset) for offset in range(start, end)}
    assert parse_replay_log(decided.text(10**6)) == decided
    for reason in ("a", "b"):
        for offset in range(61):
            assert decided.covers(reason, offset) == bool({(reason, offset), ("", offset)} & known)


def test_more_spans_than_commit_metadata_holds_are_an_error() -> None:
    decided = Replayed({"a": tuple((10 * number, 10 * number + 1) for number in range(1000))})
    with pytest.raises(RefusalError, match="Kafka stores at most 4096"):
        decided.text(4096)


def test_foreign_metadata_is_an_error() -> None:
    for text in ("x", "[]", '{"a": [[1]]}', '{"a": [["1", 2]]}', '{"a": 1}'):
        with pytest.raises(ValueError, match="spans of offsets expected"):
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
