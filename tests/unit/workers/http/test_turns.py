"""A few work at a time, and the newest that waits is next."""

import asyncio

import pytest

from nearstream.workers.http.work import Turns


class _Work:
    """Tasks that take a turn, with a name each, until they are told to end."""

    def __init__(self, turns: Turns) -> None:
        self.begun: list[str] = []
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self._turns = turns
        self.ends: dict[str, asyncio.Event] = {}

    async def start(self, *names: str) -> None:
        for name in names:
            self.ends[name] = asyncio.Event()
            self.tasks[name] = asyncio.create_task(self._run(name))
            await asyncio.sleep(0)

    async def end(self, name: str) -> None:
        self.ends[name].set()
        await self.tasks[name]
        await _settled()

    async def _run(self, name: str) -> None:
        async with self._turns.turn():
            self.begun.append(name)
            await self.ends[name].wait()


async def _settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


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
    await _settled()
    if not late:
        await work.end("a")
    assert work.begun == ["a", "b"]
    await work.end("b")
    await work.start("d")
    assert work.begun == ["a", "b", "d"]
    await work.end("d")


async def test_work_that_fails_or_is_cancelled_passes_its_turn_on() -> None:
    turns = Turns(1)
    work = _Work(turns)
    with pytest.raises(ZeroDivisionError):
        async with turns.turn():
            raise ZeroDivisionError
    await work.start("a", "b")
    work.tasks["a"].cancel()
    await _settled()
    assert work.begun == ["a", "b"]
    await work.end("b")


async def test_nothing_is_kept_of_those_who_gave_up_while_newer_ones_come() -> None:
    turns = Turns(1)
    work = _Work(turns)
    await work.start("first")
    for number in range(100):
        await work.start(f"old {number}", f"new {number}")
        work.tasks[f"old {number}"].cancel()
        await _settled()
        assert len(turns._waiting) == number + 1
    for task in work.tasks.values():
        task.cancel()
    await _settled()
    assert turns._waiting == []
