"""A thread that ends a worker which does not end itself, or does nothing though it should.

Nothing unacknowledged is ever committed, so a hard exit loses nothing.
"""

import faulthandler
import logging
import os
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from workers.exits import Exit
from workers.health import Health

LOOP_SECONDS = 60.0
REBALANCE_SECONDS = 120.0
PROGRESS_SECONDS = 120.0
_TICK_SECONDS = 0.5

log = logging.getLogger("nearstream.guard")


@dataclass(frozen=True)
class Rule:
    """What must not stay as it is for too long.

    Attributes:
        trouble: What is wrong when it does.
        seconds: How long it may.
        states: What is watched, each by itself; none: the rule is suspended.
    """

    trouble: str
    seconds: float
    states: Callable[[], Iterable[Hashable]]


def rules(
    health: Health, rebalancing: Callable[[], bool], stopping: Callable[[], bool], stop_seconds: float
) -> list[Rule]:
    """The rules for one worker."""

    def while_at_work(states: Iterable[Hashable]) -> Iterable[Hashable]:
        return () if health.in_outage or health.held or stopping() else states

    def turning() -> Iterable[Hashable]:
        return () if stopping() or health.ticked is None else (health.ticked,)

    return [
        Rule("the event loop is blocked", LOOP_SECONDS, turning),
        Rule("a rebalance does not end", REBALANCE_SECONDS, lambda: while_at_work(("rebalancing",) * rebalancing())),
        Rule("nothing is acknowledged though there is work", PROGRESS_SECONDS, lambda: while_at_work(_waiting(health))),
        Rule("it does not stop", stop_seconds, lambda: ("stopping",) * stopping()),
    ]


@dataclass
class Guard:
    """Notes since when each state is what it is."""

    rules: Sequence[Rule]
    _since: dict[str, dict[Hashable, float]] = field(default_factory=dict)

    def broken(self, now: float) -> Rule | None:
        """The first rule of which a state stood still for too long, at `now` monotonic seconds."""
        for rule in self.rules:
            before = self._since.get(rule.trouble, {})
            since = self._since[rule.trouble] = {state: before.get(state, now) for state in rule.states()}
            if any(now - began > rule.seconds for began in since.values()):
                return rule
        return None


def start_guard(guard: Guard, health: Health, stopping: Callable[[], bool]) -> None:
    """Watches from a thread of its own, and exits the process when a rule is broken.

    A stop in a hold or in an outage ends the process at once: Faust waits without end for a record
    that is never acknowledged, as then there is one.
    """
    threading.Thread(target=_watch, args=(guard, health, stopping), name="guard", daemon=True).start()


def _watch(guard: Guard, health: Health, stopping: Callable[[], bool]) -> None:
    while True:
        time.sleep(_TICK_SECONDS)
        if stopping() and health.held:
            log.warning("stopped in a hold: what was not acknowledged comes again")
            os._exit(Exit.UNREADABLE)
        if stopping() and health.in_outage:
            log.warning("stopped in an outage: what was not acknowledged comes again")
            os._exit(Exit.NO)
        rule = guard.broken(time.monotonic())
        if rule is not None:
            log.critical("%s for %g s: ending now, nothing unacknowledged is committed", rule.trouble, rule.seconds)
            faulthandler.dump_traceback()
            os._exit(Exit.NO)


def _waiting(health: Health) -> Iterable[Hashable]:
    """How far this worker is in each topic that has records for it: one agent's work hides no other that stands."""
    ours = [lag for lag in health.lags if (lag.topic, lag.partition) in (health.assigned or ())]
    for topic in {lag.topic for lag in ours if lag.records}:
        yield frozenset((topic, lag.partition, lag.committed) for lag in ours if lag.topic == topic), health.caught_up
