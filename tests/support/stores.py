"""Stores whose time a test sets, which lose answers, or which let others go first."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from random import Random
from typing import Any, TypeVar

from nearstream.streams.matching.protocol.decision import founder_of
from nearstream.streams.store.families import Growth
from nearstream.streams.store.limits import IndexLimits, IndexUnavailableError
from nearstream.streams.store.messages import Measure, Query
from nearstream.streams.store.part import Part
from nearstream.streams.store.store import Call, Local, Shape, Store, Transport
from nearstream.workers.sqlite.file import IndexFile

Make = Callable[..., Awaitable[Store]]
T = TypeVar("T")


def parts_store(limits: IndexLimits, shape: Shape) -> Store:
    """Return a store in memory of this shape, with the time of this machine."""
    return Store(Local([Part(limits, wall_clock) for _ in range(shape.slots)]), shape, limits)


def wall_clock() -> int:
    return time.time_ns() // 10**6


def through(store: Store, carrier: Callable[[Transport], Transport]) -> Store:
    """Return a store whose calls are carried by another one."""
    return Store(carrier(store._transport), store.shape, store.limits)


def at_time(store: Store, now_ms: int) -> "tuple[Store, Timed]":
    """Return a store whose time a test sets, and what it is set with."""
    timed = Timed(store._transport, now_ms)
    return through(store, lambda _: timed), timed


class Timed:
    """Carries calls at the time that a test sets."""

    def __init__(self, transport: Transport, now_ms: int) -> None:
        self.now_ms = now_ms
        self._transport = transport

    async def all(self, calls: Sequence[Call]) -> Sequence[Sequence[Any]]:
        return await self._transport.all([call._replace(items=list(map(self._timed, call.items))) for call in calls])

    def _timed(self, item: Any) -> Any:  # noqa: ANN401 - any message
        return item._replace(now_ms=self.now_ms) if hasattr(item, "now_ms") else item


class Committing:
    """Commits after each call, so that the next one finds in the file what the last one did."""

    def __init__(self, index: IndexFile, transport: Transport) -> None:
        self._index, self._transport = index, transport

    async def all(self, calls: Sequence[Call]) -> Sequence[Sequence[Any]]:
        answers = await self._transport.all(calls)
        self._index.commit()
        return answers


class Shaky:
    """Loses some answers, up to a number, after some or all of the calls were made."""

    def __init__(self, transport: Transport, random: Random, share: float, most: int) -> None:
        self.lost = 0
        self._transport, self._random = transport, random
        self._share, self._most = share, most

    async def all(self, calls: Sequence[Call]) -> Sequence[Sequence[Any]]:
        if self.lost == self._most or self._random.random() >= self._share:
            return await self._transport.all(calls)
        self.lost += 1
        await self._transport.all(calls[: self._random.randint(0, len(calls))])
        raise IndexUnavailableError("the answer was lost")


class Interleaved:
    """Lets others go first before each call, as a random number generator decides."""

    def __init__(self, transport: Transport, random: Random) -> None:
        self._transport, self._random = transport, random

    async def all(self, calls: Sequence[Call]) -> Sequence[Sequence[Any]]:
        for _ in range(self._random.choice((0, 1, 1, 2, 3, 6, 12))):
            await asyncio.sleep(0)
        return await self._transport.all(calls)


async def until_done(call: Callable[[], Awaitable[T]]) -> T:
    """Repeat a call until the store answers."""
    for _ in range(300):
        try:
            return await call()
        except IndexUnavailableError:
            continue
    raise AssertionError("the store answers at last")


async def founders(store: Store, numbers: Iterable[int]) -> dict[int, int]:
    """Return the founder of the family of each state that the store knows a decision of."""
    wanted = list(numbers)
    views = await store.fetch([Query(number) for number in wanted])
    return {
        number: founder_of(view.decision)
        for number, view in zip(wanted, views, strict=True)
        if view is not None and view.decision is not None
    }


async def growths(store: Store, numbers: Iterable[int]) -> list[Growth]:
    """Return the families of states that more than one document has joined, by the number of their founder."""
    wanted = sorted(set((await founders(store, numbers)).values()))
    return [growth for growth in await store.growth([Measure(founder) for founder in wanted]) if growth is not None]
