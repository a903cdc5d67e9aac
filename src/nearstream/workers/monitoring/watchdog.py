"""A thread that exits the process when the worker hangs.

The worker hangs if it does not stop, or does nothing although there is work. Only acknowledged records are ever
committed, so a hard exit loses nothing.
"""

import asyncio
import inspect
import logging
import os
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType

from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.monitoring.health import Health

LOOP_SECONDS = 60.0
REBALANCE_SECONDS = 120.0
PROGRESS_SECONDS = 120.0
_TICK_SECONDS = 0.5

log = logging.getLogger(__name__)


# A limit on how long a state may stay unchanged: what is wrong if it stays so for longer, how many seconds it may, and
# what returns the states to watch, each timed by itself. While that returns none, the rule is suspended.
WatchdogRule = tuple[str, float, Callable[[], Iterable[Hashable]]]


def rules(
    health: Health, rebalancing: Callable[[], bool], stopping: Callable[[], bool], stop_seconds: float
) -> list[WatchdogRule]:
    """Return the rules for one worker."""

    def while_working(states: Iterable[Hashable]) -> Iterable[Hashable]:
        return () if health.in_outage or health.halted or stopping() else states

    def loop_turns() -> Iterable[Hashable]:
        return () if stopping() or health.ticked is None else (health.ticked,)

    return [
        ("the event loop is blocked", LOOP_SECONDS, loop_turns),
        ("a rebalance does not end", REBALANCE_SECONDS, lambda: while_working(("rebalancing",) * rebalancing())),
        (
            "no record is acknowledged although some are waiting",
            PROGRESS_SECONDS,
            lambda: while_working(_progress(health)),
        ),
        ("a batch does not end", PROGRESS_SECONDS, lambda: while_working(_batches(health))),
        ("the worker does not stop", stop_seconds, lambda: ("stopping",) * stopping()),
    ]


@dataclass
class Watchdog:
    """Measures for how long each state has been unchanged."""

    rules: Sequence[WatchdogRule]
    _since: dict[str, dict[Hashable, float]] = field(default_factory=dict)

    def broken(self, now: float) -> str:
        """Return the trouble of the first rule whose state has stayed too long, or nothing."""
        for trouble, seconds, states in self.rules:
            known = self._since.get(trouble, {})
            since = self._since[trouble] = {state: known.get(state, now) for state in states()}
            if any(now - began > seconds for began in since.values()):
                return f"{trouble} for {seconds:g} s"
        return ""


def start_watchdog(
    watchdog: Watchdog,
    health: Health,
    stopping: Callable[[], bool],
    end_code: Callable[[], Exit],
    loop: asyncio.AbstractEventLoop,
) -> None:
    """Start a thread that exits the process when a rule is broken.

    It also exits at once when the worker stops while it is halted or in an outage. In both cases there is a record that
    is never acknowledged, and Faust would wait for it forever. `end_code` logs why the worker stops, unless a signal
    asked it to, and returns its exit code. The tasks of the loop are logged if a rule is broken.
    """
    watch = partial(_watch, watchdog, health, stopping, end_code, loop)
    threading.Thread(target=watch, name="watchdog", daemon=True).start()


def _watch(
    watchdog: Watchdog,
    health: Health,
    stopping: Callable[[], bool],
    end_code: Callable[[], Exit],
    loop: asyncio.AbstractEventLoop,
) -> None:
    while True:
        time.sleep(_TICK_SECONDS)
        if health.refused:
            log.critical("%s: exiting, unacknowledged records will be redelivered", health.refused)
            os._exit(Exit.MISCONFIGURED)
        if stopping() and health.halted:
            log.warning("stopped while halted: unacknowledged records will be redelivered")
            health.leave()
            os._exit(Exit.UNREADABLE)
        if stopping() and health.in_outage:
            log.warning("stopped during an outage: unacknowledged records will be redelivered")
            health.leave()
            os._exit(end_code())
        if broken := watchdog.broken(time.monotonic()):
            log.critical("%s: exiting, unacknowledged records will be redelivered", broken)
            code = Exit.NO
            try:
                code = end_code() or code  # A worker that hangs has failed, even if a signal asked it to stop.
                for line in (*stacks(), *task_stacks(loop)):
                    log.critical("%s", line)
            finally:
                os._exit(code)  # also if the tasks changed while they were read


def stacks() -> Iterator[str]:
    """Yield what each thread is doing, the outermost function first."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, frame in sys._current_frames().items():
        yield f"thread {names.get(ident, ident)}: {_line(reversed([each for each, _ in traceback.walk_stack(frame)]))}"


def task_stacks(loop: asyncio.AbstractEventLoop) -> Iterator[str]:
    """Yield each place at which tasks of an event loop wait, and their number.

    A place is a chain of calls, of which the outermost coroutine comes first.
    """
    places = Counter(_line(_frames(task.get_coro())) for task in asyncio.all_tasks(loop))
    yield from (f"tasks {count}: {place}" for place, count in places.most_common())


def _line(frames: Iterable[FrameType]) -> str:
    code = [(each.f_code, each.f_lineno) for each in frames]
    return " > ".join(f"{'/'.join(Path(each.co_filename).parts[-2:])}:{line} {each.co_name}" for each, line in code)


def _frames(waiting: object) -> Iterator[FrameType]:
    """Yield the frames of a coroutine and of those that it awaits."""
    while inspect.iscoroutine(waiting) and waiting.cr_frame is not None:
        yield waiting.cr_frame
        waiting = waiting.cr_await


def _batches(health: Health) -> Iterable[Hashable]:
    """Yield each batch in work.

    The offsets of other partitions move on beside a batch that hangs, so that `_progress` would not show it.
    """
    return [(token, health.caught_up) for token in health.in_work]


def _progress(health: Health) -> Iterable[Hashable]:
    """Yield the committed offsets of our partitions, per topic with unread records.

    Each topic is a state of its own, so that a busy agent cannot hide a stuck one.
    """
    ours = health.own_lags
    for topic in {lag.topic for lag in ours if lag.records}:
        yield frozenset((topic, lag.partition, lag.committed) for lag in ours if lag.topic == topic), health.caught_up
