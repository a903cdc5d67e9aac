"""Waits out what comes back by itself: Kafka or the index being away."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import TypeVar

from streams.index import IndexLostError, IndexUnavailableError
from workers.health import Health
from workers.kafka_tools import KafkaUnreachableError, retriable
from workers.metrics import OUTAGES, timed

_PAUSE_SECONDS = (0.1, 5.0)

_Result = TypeVar("_Result")


class OutageTooLongError(Exception):
    """A service stayed away longer than a worker waits; another worker may see it."""


@dataclass(frozen=True)
class Patience:
    """How outages are borne.

    Attributes:
        health: Told of each.
        seconds: Longest pause until the worker gives up; 0: for ever.
    """

    health: Health
    seconds: float

    async def through(self, stage: str, action: Callable[[], Awaitable[_Result]]) -> _Result:
        """The result of `action`, repeated as a whole until neither Kafka nor the index is away.

        Raises:
            OutageTooLongError: One was away for too long.
            Exception: What no waiting cures.
        """
        try:
            return await _timed(stage, action)
        except Exception as error:
            if not _outage(error):
                raise
            cause = error
        with self.health.outage(str(cause)):
            return await self._repeated(partial(_timed, stage, action), cause)

    async def _repeated(self, action: Callable[[], Awaitable[_Result]], cause: Exception) -> _Result:
        began = monotonic()
        for pause in pauses():
            OUTAGES.labels(type(cause).__name__).inc()
            await asyncio.sleep(pause)
            try:
                return await action()
            except Exception as error:
                if not _outage(error):
                    raise
                if type(error) is not type(cause):
                    self.health.change_cause(str(error))
                cause = error
            # A lost index comes back by a rebuild only, however long that takes.
            patient = self.seconds == 0 or isinstance(cause, IndexLostError)
            if not patient and monotonic() - began > self.seconds:
                raise OutageTooLongError(f"{cause}: away for {self.seconds:g} s") from cause
        raise AssertionError  # the pauses never end


def pauses() -> Iterator[float]:
    """Seconds: .1, doubling to 5, each 20 % shorter or longer."""
    pause, longest = _PAUSE_SECONDS
    while True:
        yield pause * random.uniform(0.8, 1.2)  # noqa: S311 - spreads retries, hides nothing
        pause = min(2 * pause, longest)


async def _timed(stage: str, action: Callable[[], Awaitable[_Result]]) -> _Result:
    with timed(stage):
        return await action()


def _outage(error: Exception) -> bool:
    return isinstance(error, IndexUnavailableError | IndexLostError | KafkaUnreachableError) or retriable(error)
