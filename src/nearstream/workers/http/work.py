"""Do the work of requests: in threads of a pool, in turns, and with few lines in the log."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar, TypeVarTuple

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")
_PAUSE_SECONDS = 60.0
_LINES_MAX = 64  # different ones that are remembered


def in_thread(pool: Executor, work: Callable[[*Arguments], Result], *arguments: *Arguments) -> asyncio.Future[Result]:
    """Return the future result of work in a thread of a pool.

    If it is cancelled before a thread is free, its arguments are dropped at once. The pool itself would keep them until
    a thread is free, and they may be many bodies of 36 MiB.
    """
    held: list[Callable[[], Result]] = [partial(work, *arguments)]

    def run() -> Result:
        begun = held.pop()
        return begun()

    future = asyncio.get_running_loop().run_in_executor(pool, run)
    future.add_done_callback(lambda _: held.clear())
    return future


class Turns:
    """Lets a few work at a time.

    Under more load than the machine can carry, work that is given up at a deadline would leave time for none that ends
    before it. The newest has the most time left.
    """

    def __init__(self, most: int) -> None:
        self._free = most
        self._waiting: list[asyncio.Future[None]] = []

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn, and have it during the block."""
        if self._free:
            self._free -= 1
        else:
            await self._given()
        try:
            yield
        finally:
            self._pass_on()

    async def _given(self) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        try:
            await future
        except asyncio.CancelledError:
            if not future.cancelled():  # it was given and is not taken
                self._pass_on()
            elif future in self._waiting:  # or it would stay as long as newer ones come
                self._waiting.remove(future)
            raise

    def _pass_on(self) -> None:
        while self._waiting:
            newest = self._waiting.pop()
            if not newest.done():
                newest.set_result(None)
                return
        self._free += 1


@dataclass(frozen=True)
class RareLog:
    """Logs warnings, each line at most once a minute."""

    log: logging.Logger  # where they are logged
    # When each line was logged last, in seconds of the clock of the event loop.
    logged: dict[str, float] = field(default_factory=dict)

    def warning(self, line: str) -> None:
        """Log a line, unless it was logged within the last minute."""
        now = asyncio.get_running_loop().time()
        if now < self.logged.get(line, -_PAUSE_SECONDS) + _PAUSE_SECONDS:
            return
        if len(self.logged) >= _LINES_MAX:
            self.logged.clear()
        self.logged[line] = now
        self.log.warning("%s", line)
