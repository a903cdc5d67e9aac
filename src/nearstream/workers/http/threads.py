"""Run work in the threads of a pool, which keeps nothing of work that is given up."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import TypeVar, TypeVarTuple

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")


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
