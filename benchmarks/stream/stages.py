"""CPU time of the stages of a process, which add up to that of the whole process."""

import threading
import time
from collections.abc import Callable, Coroutine, Generator, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from inspect import iscoroutinefunction
from types import coroutine
from typing import Any

EVENT_LOOP = "event loop and everything else of its thread"
OTHER_THREADS = "other threads: fetching, heartbeats"


class StageClock:
    """Measures the CPU time of stages in the main thread.

    A stage within a stage counts for itself only. A coroutine counts while it runs, not while it waits.

    Attributes:
        seconds: CPU time of each stage so far.
        longest: CPU time of the longest piece of work between two turns of the event loop.
    """

    def __init__(self, now: Callable[[], float] = time.thread_time) -> None:
        """Start at nothing."""
        self.seconds: dict[str, float] = {}
        self.longest = 0.0
        self._now = now
        self._open: list[str] = []
        self._since = self._began = 0.0

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the block as a stage."""
        self._enter(name)
        try:
            yield
        finally:
            self._leave()

    def measure(self, owner: object, name: str, stage: str) -> None:
        """Count a function or coroutine function, which the class or module must have, as a stage."""
        part = getattr(owner, name)
        setattr(owner, name, self._steps(part, stage) if iscoroutinefunction(part) else self._calls(part, stage))

    def _calls(self, part: Callable[..., Any], stage: str) -> Callable[..., Any]:
        @wraps(part)
        def measured(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - passed on
            with self.stage(stage):
                return part(*arguments, **options)

        return measured

    def _steps(
        self, part: Callable[..., Coroutine[Any, Any, Any]], stage: str
    ) -> Callable[..., Coroutine[Any, Any, Any]]:
        @wraps(part)
        async def measured(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - passed on
            return await self._driven(part(*arguments, **options), stage)

        return measured

    @coroutine
    def _driven(self, work: Coroutine[Any, Any, Any], stage: str) -> Generator[Any, Any, Any]:
        """Run a coroutine and count each of its steps."""
        step: Callable[[], Any] = lambda: work.send(None)  # noqa: E731
        while True:
            try:
                with self.stage(stage):
                    waits_for = step()
            except StopIteration as ended:
                return ended.value
            try:
                sent = yield waits_for
            except BaseException as error:  # noqa: BLE001 - it belongs to the coroutine
                step = _throwing(work, error)
            else:
                step = _sending(work, sent)

    def _enter(self, name: str) -> None:
        now = self._now()
        if self._open:
            self._add(now)
        else:
            self._began = now
        self._open.append(name)
        self._since = now

    def _leave(self) -> None:
        now = self._now()
        self._add(now)
        self._open.pop()
        self._since = now
        if not self._open:
            self.longest = max(self.longest, now - self._began)

    def _add(self, now: float) -> None:
        name = self._open[-1]
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self._since


def _throwing(work: Coroutine[Any, Any, Any], error: BaseException) -> Callable[[], Any]:
    return lambda: work.throw(error)


def _sending(work: Coroutine[Any, Any, Any], sent: object) -> Callable[[], Any]:
    return lambda: work.send(sent)


def whole(stages: Mapping[str, float], main_thread: float, process: float) -> dict[str, float]:
    """Add what no stage has counted, so that all add up to the time of the process."""
    rest = main_thread - sum(stages.values())
    return {**stages, EVENT_LOOP: rest, OTHER_THREADS: process - main_thread}


def main_thread_seconds() -> float:
    """Return the CPU time of the main thread, whichever thread asks."""
    return time.clock_gettime(time.pthread_getcpuclockid(threading.main_thread().ident or 0))
