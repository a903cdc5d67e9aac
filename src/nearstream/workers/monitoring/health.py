"""The state of one worker.

The event loop and the probe write it, the watchdog and the status server read it.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic

from nearstream.schemas.live.state import WorkerStateName
from nearstream.streams.store.limits import IndexBehindError
from nearstream.workers.kafka.lag import PartitionLag

BEHIND_SECONDS = 30.0  # age of the oldest waiting record above which a worker is catching up
_GOODBYE_SECONDS = 2.0

log = logging.getLogger(__name__)


@dataclass
class Health:
    """Plain values that any thread may read without a lock."""

    outages: int = 0  # number of agents that are waiting for a service now
    cause: str = ""  # the error that the last of these agents is waiting out
    away: str = ""  # The error of the service that does not answer the probe. Empty: all services answer.
    caught_up: int = 0  # number of batches delivered again because the index had lost them
    in_work: frozenset[object] = frozenset()  # a token for each batch that is decided and delivered now
    refused: str = ""  # Why this worker must not go on. Empty: it may.
    halted: str = ""  # Why the worker consumes nothing more. Empty: it consumes.
    drained_ms: int = 0  # Refused records from before this time, in milliseconds since 1970, do not halt the worker.
    ticked: float | None = None  # When the event loop last ran, in monotonic seconds. None: it has not started.
    # Topic and number of each partition assigned to this worker. None: no assignment yet.
    assigned: frozenset[tuple[str, int]] | None = None
    lags: tuple[PartitionLag, ...] = ()  # lag of the group's partitions, as last read from the broker
    is_leaving: bool = False  # whether this worker is being stopped on purpose
    has_left: threading.Event | None = None  # Set once others know that. None: nothing is said to others.
    _began: float = field(default=0.0, repr=False)

    @property
    def in_outage(self) -> bool:
        """Whether a service is unavailable to an agent or to the probe."""
        return self.outages > 0 or bool(self.away)

    @property
    def own_lags(self) -> list[PartitionLag]:
        """Lag of the partitions that are assigned to this worker.

        Of a group each partition belongs to one worker at a time, so sums over workers count it once.
        """
        return [lag for lag in self.lags if (lag.topic, lag.partition) in (self.assigned or ())]

    @property
    def unready(self) -> str:
        """Why this worker would not process a record now. Empty: it would."""
        if self.halted:
            return f"halted: {self.halted}"
        if self.in_outage:
            return f"outage: {self.away or self.cause}"
        return "" if self.assigned is not None else "no partitions assigned yet"

    @property
    def state(self) -> tuple[WorkerStateName, str]:
        """The state of this worker with its reason, which may be empty."""
        if self.halted:
            return "halted", self.halted
        if self.in_outage:
            return "paused", self.away or self.cause
        if self.assigned is None:
            return "starting", ""
        waiting = [lag for lag in self.own_lags if lag.seconds is not None]
        oldest = max((lag.seconds or 0.0 for lag in waiting), default=0.0)
        if oldest > BEHIND_SECONDS:
            return "catching_up", f"{sum(lag.records for lag in waiting)} records wait, the oldest for {oldest:.0f} s"
        return "live", "" if self.assigned else "no partition is left for it"

    def leave(self) -> None:
        """Let others know that this worker is stopped on purpose, and wait a moment until they do."""
        self.is_leaving = True
        if self.has_left is not None:
            self.has_left.wait(_GOODBYE_SECONDS)

    @contextmanager
    def outage(self, cause: str) -> Iterator[None]:
        """Count an outage of one agent for the duration of the context.

        The end of the outage is logged only if the service answers again, not if an error ends the worker.
        """
        was_in_outage = self.in_outage
        self.outages += 1
        self.cause = cause
        self._log_change(was_in_outage, cause)
        answers = True
        try:
            yield
        except BaseException as error:
            answers = isinstance(error, IndexBehindError)
            raise
        finally:
            self.outages -= 1
            if answers:
                self._log_change(True, "")

    @contextmanager
    def processing(self) -> Iterator[None]:
        """Count a batch as in work for the duration of the context."""
        token = object()
        self.in_work |= {token}  # a new set, because the watchdog may be reading the old one
        try:
            yield
        finally:
            self.in_work -= {token}

    def change_cause(self, cause: str) -> None:
        """Log that an outage goes on for another reason, which may need another remedy."""
        self.cause = cause
        log.warning("outage goes on: %s", cause)

    def find_away(self, what: str) -> None:
        """Set why a service does not answer the probe. Empty: all services answer."""
        was_in_outage = self.in_outage
        self.away = what
        self._log_change(was_in_outage, what)

    def _log_change(self, was_in_outage: bool, cause: str) -> None:
        if self.in_outage and not was_in_outage:
            self._began = monotonic()
            log.warning("outage: %s", cause)
        elif was_in_outage and not self.in_outage:
            log.warning("outage over after %.1f s", monotonic() - self._began)
