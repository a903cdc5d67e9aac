"""Pipeline steps: decide, recover lost admissions, yield to the event loop."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import NamedTuple, Protocol

from nearstream.schemas.documents.record import ConsumerRecord, ProducerRecord

YIELD_SECONDS = 0.005
# Pauses double from one to the next, up to 64 times the first one.
FIRST_TURN_SECONDS, SHORT_TURNS, LONG_TURNS = 0.0015, 5, 17

Decide = Callable[[Sequence[ConsumerRecord]], Awaitable[Sequence[ProducerRecord]]]
Send = Callable[[Sequence[ProducerRecord]], Awaitable[None]]  # returns when all are confirmed
CountBatch = Callable[[Sequence[ConsumerRecord], Sequence[ProducerRecord]], None]


class Lost(NamedTuple):
    """A range of records whose admission the index has lost."""

    partition: int  # partition of the topic that is matched
    checkpoint: int  # last offset that the index knows. -1: none
    end: int  # offset after the last one that is lost


class Recovery(Protocol):
    """Finds what the index lost, and restores it."""

    async def lost(self, partitions: Collection[int]) -> Sequence[Lost]:
        """Return what the index lost of these partitions.

        A worker knows only what it admitted itself, or what the group has committed.
        """

    def catch_up(self, lost: Lost) -> AsyncIterator[Sequence[ProducerRecord]]:
        """Admit the lost records again, and yield their events to be sent again, by batch."""


class Lanes:
    """Batches of a step that are in work side by side, or one recovery by itself.

    The consumer makes sure that batches in work at the same time have no partition in common.
    """

    def __init__(self, count: int = 1) -> None:
        self.count = count
        self._free = asyncio.Semaphore(count)
        self._taking_all = asyncio.Lock()

    @asynccontextmanager
    async def one(self) -> AsyncGenerator[None]:
        """Hold a lane, for a batch."""
        async with self._free:
            yield

    @asynccontextmanager
    async def all(self) -> AsyncGenerator[None]:
        """Hold all lanes, for a recovery. The caller must hold none."""
        # Two recoveries that took some of the lanes each would wait for each other without end.
        async with self._taking_all, AsyncExitStack() as held:
            for _ in range(self.count):
                await held.enter_async_context(self._free)
            yield


@dataclass(frozen=True)
class Step:
    """What an agent does with a batch."""

    name: str  # label of its processing time in the metrics
    batch: int  # maximum number of records in a batch
    decide: Decide  # Returns the records to send for a batch. After an outage it is called again.
    count: CountBatch  # called once for each batch, after everything is delivered
    recovery: Recovery | None = None  # Restores what the index lost. None: the step uses no index.
    lanes: Lanes = field(default_factory=Lanes, compare=False)  # how many batches may be in work at a time


async def patience(waits: Sequence[tuple[int, bool]]) -> list[bool]:
    """Wait a moment for other lanes to decide about copies, once for all, and return for each whether to go on waiting.

    A copy that came before is waited for a second in all, and another one for 50 ms: whoever waits longest, one of two
    copies is always first. No decision depends on how long. For each document `waits` says how often it has waited, and
    whether one that it waits for came before it.
    """
    patient = [turn < (LONG_TURNS if is_smaller else SHORT_TURNS) for turn, is_smaller in waits]
    turns = [turn for (turn, _), goes_on in zip(waits, patient, strict=True) if goes_on]
    if turns:
        await asyncio.sleep(FIRST_TURN_SECONDS * 2 ** min(*turns, 6))
    return patient


def cooperative_yield() -> Callable[[], Awaitable[None]]:
    """Return a function to await between pieces of work, which lets the event loop run every `YIELD_SECONDS`."""
    since = monotonic()

    async def pause() -> None:
        nonlocal since
        if monotonic() - since > YIELD_SECONDS:
            await asyncio.sleep(0)
            since = monotonic()

    return pause
