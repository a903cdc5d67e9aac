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


@pytest.mark.parametrize(
    ("error", "told"),
    [(ZeroDivisionError(), ["outage: no Redis"]), (IndexBehindError(0, 5), ["outage: no Redis", "outage over"])],
    ids=["it ends the worker", "the index answers that it lost writes"],
)
def test_an_outage_is_over_only_if_the_service_answers(
    error: Exception, told: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), pytest.raises(type(error)), Health().outage("no Redis"):
        raise error
    assert _told(caplog) == told


OWN, AWAY = frozenset({("d", 0)}), "Kafka does not answer"


@pytest.mark.parametrize(
    ("given", "state", "unready"),
    [
        ({}, ("starting", ""), "no partitions assigned yet"),
        ({"assigned": frozenset()}, ("live", "no partition is left for it"), ""),
        ({"assigned": OWN, "lags": (PartitionLag("d", 0, 1, 0, 9, 29.0),)}, ("live", ""), ""),
        (
            {"assigned": OWN, "lags": (PartitionLag("d", 0, 1, 0, 9, 31.0),)},
            ("catching_up", "8 records wait, the oldest for 31 s"),
            "",
        ),
        ({"assigned": OWN, "lags": (PartitionLag("d", 1, 1, 0, 9, 31.0),)}, ("live", ""), ""),
        ({"away": AWAY}, ("paused", AWAY), f"outage: {AWAY}"),
        ({"away": AWAY, "halted": "too many"}, ("halted", "too many"), "halted: too many"),
    ],
)
def test_a_worker_has_one_state_with_its_reason(given: dict[str, Any], state: tuple[str, str], unready: str) -> None:
    health = Health(**given)
    assert (health.state, health.unready) == (state, unready)
