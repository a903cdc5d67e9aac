"""Retry until Kafka and the index answer again."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from time import monotonic
from typing import TypeVar

from nearstream.streams.store.limits import IndexLostError, IndexUnavailableError
from nearstream.workers.kafka.errors import KafkaUnreachableError, retriable
from nearstream.workers.monitoring.health import Health
from nearstream.workers.monitoring.metrics import OUTAGES, timed

_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 5.0

_Result = TypeVar("_Result")


class OutageTooLongError(Exception):
    """A service was away for longer than a worker waits. Another worker may be able to reach it."""


@dataclass(frozen=True)
class RetryPolicy:
    """How long an outage is waited out."""

    health: Health  # where each outage is recorded
    seconds: float  # Longest outage until the worker gives up. 0: it never gives up.

    async def call(self, stage: str, action: Callable[[], Awaitable[_Result]]) -> _Result:
        """Return the result of `action`, repeated as a whole until Kafka and the index answer.

        The metrics tell the time of each try under the label `stage`.
        """
        began, cause = monotonic(), None
        with ExitStack() as outage:
            for seconds in backoff():
                try:
                    with timed(stage):
                        return await action()
                except Exception as error:
                    if not is_outage(error):
                        raise
                    if cause is None:
                        began = monotonic()
                        outage.enter_context(self.health.outage(str(error)))
                    elif type(error) is not type(cause):
                        self.health.change_cause(str(error))
                    cause = error
                # Only a rebuild brings a lost index back, however long that takes.
                waits_on = self.seconds == 0 or isinstance(cause, IndexLostError)
                if not waits_on and monotonic() - began > self.seconds:
                    raise OutageTooLongError(f"{cause}: away for {self.seconds:g} s") from cause
                OUTAGES.labels(type(cause).__name__).inc()
                await asyncio.sleep(seconds)
        raise AssertionError  # the backoff never ends


def backoff() -> Iterator[float]:
    """Yield pauses in seconds: 0.1, doubled up to 5, each up to 20 % shorter or longer at random."""
    pause = _FIRST_PAUSE_SECONDS
    while True:
        yield pause * random.uniform(0.8, 1.2)  # noqa: S311 - spreads retries, hides nothing
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)


def is_outage(error: BaseException) -> bool:
    """Return whether waiting may remove an error."""
    return isinstance(error, IndexUnavailableError | IndexLostError | KafkaUnreachableError) or retriable(error)
