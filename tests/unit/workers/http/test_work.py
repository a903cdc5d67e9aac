"""A few work at a time, and the newest that waits is next."""

import asyncio
import logging
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from nearstream.workers.http.work import RareLog, Turns, in_thread
from tests.support.turns import turns


class _Work:
    """Tasks that take a turn, with a name each, until they are told to end."""

    def __init__(self, shared: Turns) -> None:
        self.begun: list[str] = []
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self._turns = shared
        self.ends: dict[str, asyncio.Event] = {}

    async def start(self, *names: str) -> None:
        for name in names:
            self.ends[name] = asyncio.Event()
            self.tasks[name] = asyncio.create_task(self._run(name))
            await asyncio.sleep(0)

    async def end(self, name: str) -> None:
        self.ends[name].set()
        await self.tasks[name]
        await turns(5)

    async def _run(self, name: str) -> None:
        async with self._turns.turn():
            self.begun.append(name)
            await self.ends[name].wait()


async def test_the_newest_that_waits_gets_the_next_turn() -> None:
    work = _Work(Turns(2))
    await work.start("a", "b", "c", "d")
    assert work.begun == ["a", "b"]
    await work.end("b")
    await work.end("a")
    assert work.begun == ["a", "b", "d", "c"]


@pytest.mark.parametrize("late", [False, True])
async def test_who_gives_up_while_it_waits_keeps_no_turn(late: bool) -> None:
    work = _Work(Turns(1))
    await work.start("a", "b", "c")
    if late:  # "c" is given the turn, and gives up before it takes it
        work.ends["a"].set()
        await asyncio.sleep(0)
    work.tasks["c"].cancel()
    await turns(5)
    if not late:
        await work.end("a")
    assert work.begun == ["a", "b"]
    await work.end("b")
    await work.start("d")
    assert work.begun == ["a", "b", "d"]
    await work.end("d")


async def test_work_that_fails_or_is_cancelled_passes_its_turn_on() -> None:
    shared = Turns(1)
    work = _Work(shared)
    with pytest.raises(ZeroDivisionError):
        async with shared.turn():
            raise ZeroDivisionError
    await work.start("a", "b")
    work.tasks["a"].cancel()
    await turns(5)
    assert work.begun == ["a", "b"]
    await work.end("b")


class Body:
    """Something that a weak reference may name."""


async def test_work_in_a_thread_has_a_result_or_an_error_and_keeps_no_arguments_when_it_is_given_up() -> None:
    free = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        busy = in_thread(pool, free.wait)
        body = Body()
        known = weakref.ref(body)
        waiting = in_thread(pool, id, body)
        del body
        assert known() is not None
        waiting.cancel()
        await asyncio.sleep(0)
        assert known() is None
        free.set()
        assert await busy
        assert await in_thread(pool, divmod, 7, 2) == (3, 1)
        with pytest.raises(ZeroDivisionError):
            await in_thread(pool, divmod, 7, 0)


async def test_a_line_is_logged_once_and_each_other_one_too(caplog: pytest.LogCaptureFixture) -> None:
    rare = RareLog(logging.getLogger("nearstream.test"))
    for _ in range(100):
        rare.warning("no right to read")
    rare.warning("no right to write, 100 %")
    assert caplog.messages == ["no right to read", "no right to write, 100 %"]
    rare.logged["no right to read"] -= 60.0
    rare.warning("no right to read")
    assert len(caplog.messages) == 3
    for number in range(1_000):
        rare.warning(f"line {number}")
    assert len(rare.logged) <= 64
