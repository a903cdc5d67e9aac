"""The watchdog finds a stuck worker and leaves one alone that waits for a reason."""

import subprocess
import sys
from typing import Any

import pytest

from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.kafka.lag import PartitionLag
from nearstream.workers.monitoring.health import Health
from nearstream.workers.monitoring.watchdog import (
    LOOP_SECONDS,
    PROGRESS_SECONDS,
    REBALANCE_SECONDS,
    Watchdog,
    rules,
)


class Worker:
    """A worker as its watchdog sees it."""

    def __init__(self, *, rebalancing: bool = False, stopping: bool = False, **health: Any) -> None:  # noqa: ANN401
        self.health = Health(**{"assigned": frozenset({("documents", 0)})} | health)
        self.guard = Watchdog(rules(self.health, lambda: rebalancing, lambda: stopping, 30.0))

    def after(self, seconds: float) -> str:
        """Return what is wrong if nothing changes for this many seconds."""
        assert not self.guard.broken(1000.0)
        return self.guard.broken(1000.0 + seconds)


def waiting(committed: int, partition: int = 0, topic: str = "documents") -> PartitionLag:
    return PartitionLag(topic, partition, committed, 0, 1000, 5.0)


@pytest.mark.parametrize(
    ("given", "seconds", "trouble"),
    [
        ({"ticked": 0.0}, LOOP_SECONDS, ""),
        ({"ticked": 0.0}, LOOP_SECONDS + 1, "event loop"),
        ({"rebalancing": True}, REBALANCE_SECONDS, ""),
        ({"rebalancing": True}, REBALANCE_SECONDS + 1, "rebalance"),
        ({"stopping": True, "ticked": 0.0}, 30.0, ""),
        ({"stopping": True, "ticked": 0.0}, 31.0, "stop"),  # a stopped loop does not tick
        ({"lags": (waiting(7),)}, PROGRESS_SECONDS + 1, "acknowledged"),
        ({"in_work": frozenset({"a batch"})}, PROGRESS_SECONDS + 1, "batch"),
        ({"lags": (waiting(7, partition=1),)}, 10 * PROGRESS_SECONDS, ""),  # which belongs to another worker
        ({"rebalancing": True, "lags": (waiting(7),), "halted": "too many letters"}, 10 * PROGRESS_SECONDS, ""),
        ({"rebalancing": True, "lags": (waiting(7),), "away": "no Kafka"}, 10 * PROGRESS_SECONDS, ""),
    ],
)
def test_what_stands_still_is_found_unless_it_waits_for_a_reason(
    given: dict[str, Any], seconds: float, trouble: str
) -> None:
    found = Worker(**given).after(seconds)
    assert trouble in found
    assert bool(found) is bool(trouble)


def test_a_loop_that_turns_and_work_that_is_done_are_left_alone() -> None:
    worker = Worker(ticked=0.0)
    for number in range(30):
        now = number * LOOP_SECONDS
        worker.health.ticked, worker.health.lags = now, (waiting(number),)
        assert not worker.guard.broken(now)


def test_an_agent_that_stands_is_found_while_another_works() -> None:
    worker = Worker(assigned=frozenset({("documents", 0), ("signatures", 0)}))

    def broken(seconds: float) -> bool:
        worker.health.lags = (waiting(int(seconds)), waiting(7, topic="signatures"))
        return bool(worker.guard.broken(seconds))

    assert not any(broken(seconds) for seconds in range(0, int(PROGRESS_SECONDS) + 1, 10))
    assert broken(PROGRESS_SECONDS + 10)


def test_a_batch_may_take_long_while_the_index_is_given_what_it_lost() -> None:
    worker = Worker()
    with worker.health.processing():
        for restored in range(5):
            worker.health.caught_up = restored
            assert not worker.guard.broken(restored * PROGRESS_SECONDS)


def test_a_pause_is_not_counted_as_standing_still() -> None:
    worker = Worker(lags=(waiting(7),))
    assert not worker.guard.broken(0.0)
    worker.health.away = "no Kafka"
    assert not worker.guard.broken(10_000.0)
    worker.health.away = ""
    assert not worker.guard.broken(10_001.0)
    assert not worker.guard.broken(10_001.0 + PROGRESS_SECONDS)
    assert bool(worker.guard.broken(10_002.0 + PROGRESS_SECONDS))


HANGING = """
import asyncio, time
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.monitoring.health import Health
from nearstream.workers.monitoring.watchdog import Watchdog, start_watchdog

hung = Watchdog([("it hangs", 0.0, lambda: ["hanging"])])
start_watchdog(hung, Health(), lambda: True, lambda: Exit({code}), asyncio.new_event_loop())
time.sleep(60)
"""


@pytest.mark.parametrize(("code", "expected"), [(Exit.MISCONFIGURED, 78), (Exit.OK, 1)])
def test_a_worker_that_hangs_exits_with_the_code_of_its_crash_and_never_with_success(code: Exit, expected: int) -> None:
    hanging = subprocess.run([sys.executable, "-c", HANGING.format(code=int(code))], timeout=60, check=False)
    assert hanging.returncode == expected
