"""An outage is logged once, however many tasks notice it."""

import logging
from typing import Any

import pytest

from nearstream.streams.store.limits import IndexBehindError
from nearstream.workers.kafka.lag import PartitionLag
from nearstream.workers.monitoring.health import Health


def _told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage().split(" after")[0] for record in caplog.records]


def test_an_outage_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    health = Health()
    with caplog.at_level(logging.WARNING):
        with health.outage("no Redis"), health.outage("no Redis either"):
            health.find_away("no Redis at all")
            assert health.in_outage
        assert health.in_outage
        health.find_away("")
    assert not health.in_outage
    assert _told(caplog) == ["outage: no Redis", "outage over"]


def test_what_the_watch_finds_first_is_told_by_it(caplog: pytest.LogCaptureFixture) -> None:
    health = Health()
    with caplog.at_level(logging.WARNING):
        health.find_away("no Kafka")
        with health.outage("not confirmed"):
            health.find_away("")
        health.find_away("no Kafka")
        health.find_away("still no Kafka")
        health.find_away("")
    assert _told(caplog) == ["outage: no Kafka", "outage over", "outage: no Kafka", "outage over"]


def test_an_outage_that_ends_the_worker_is_not_over(caplog: pytest.LogCaptureFixture) -> None:
    health = Health()
    with caplog.at_level(logging.WARNING), pytest.raises(ZeroDivisionError), health.outage("no Redis"):
        raise ZeroDivisionError
    assert _told(caplog) == ["outage: no Redis"]


def test_an_index_that_answers_that_it_lost_writes_is_back(caplog: pytest.LogCaptureFixture) -> None:
    health = Health()
    with caplog.at_level(logging.WARNING), pytest.raises(IndexBehindError), health.outage("no Redis"):
        raise IndexBehindError(0, 5)
    assert _told(caplog) == ["outage: no Redis", "outage over"]


def test_a_worker_says_why_it_is_not_ready() -> None:
    health = Health()
    assert health.unready == "no partitions assigned yet"
    health.assigned = frozenset()
    assert health.unready == ""
    health.away = "no Kafka"
    assert health.unready == "outage: no Kafka"
    health.halted = "100 dead letters in a row"
    assert health.unready == "halted: 100 dead letters in a row"


@pytest.mark.parametrize(
    ("given", "state"),
    [
        ({}, ("starting", "")),
        ({"assigned": frozenset()}, ("live", "no partition is left for it")),
        ({"assigned": frozenset({("d", 0)}), "lags": (PartitionLag("d", 0, 1, 0, 9, 29.0),)}, ("live", "")),
        (
            {"assigned": frozenset({("d", 0)}), "lags": (PartitionLag("d", 0, 1, 0, 9, 31.0),)},
            ("catching_up", "8 records wait, the oldest for 31 s"),
        ),
        ({"assigned": frozenset({("d", 0)}), "lags": (PartitionLag("d", 1, 1, 0, 9, 31.0),)}, ("live", "")),
        ({"away": "Kafka does not answer"}, ("paused", "Kafka does not answer")),
        ({"away": "Kafka does not answer", "halted": "too many"}, ("halted", "too many")),
    ],
)
def test_a_worker_has_one_state_with_its_reason(given: dict[str, Any], state: tuple[str, str]) -> None:
    assert Health(**given).state == state
