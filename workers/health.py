"""How a worker is: told by its loop or its watch, read by its guard, its status port."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic

from streams.index import IndexBehindError
from workers.kafka_lag import PartitionLag

log = logging.getLogger("nearstream.health")


@dataclass
class Health:
    """Plain values that any thread may read without waiting for another.

    Attributes:
        outages: How many agents wait for a service now.
        cause: What the last of them waits for.
        away: What does not answer the watch; empty: all answers.
        caught_up: Parts delivered again for an index that had lost them.
        held: Why nothing more is consumed; empty: it is.
        ticked: When the event loop last had a turn, monotonic seconds; None: it has not begun.
        assigned: Topics with partitions of this worker; None: no assignment yet.
        lags: The group's partitions as the broker last told.
    """

    outages: int = 0
    cause: str = ""
    away: str = ""
    caught_up: int = 0
    held: str = ""
    ticked: float | None = None
    assigned: frozenset[tuple[str, int]] | None = None
    lags: tuple[PartitionLag, ...] = ()
    _began: float = field(default=0.0, repr=False)

    @property
    def in_outage(self) -> bool:
        """Whether the worker waits for a service, or would if it had work."""
        return self.outages > 0 or bool(self.away)

    @property
    def unready(self) -> str:
        """Why this worker does no work now; empty: it does, or would."""
        if self.held:
            return f"hold: {self.held}"
        if self.in_outage:
            return f"outage: {self.away or self.cause}"
        return "" if self.assigned is not None else "no partitions assigned yet"

    @contextmanager
    def outage(self, cause: str) -> Iterator[None]:
        """Counts an outage of one agent; its end is told when what was away answers again."""
        before = self.in_outage
        self.outages += 1
        self.cause = cause
        self._tell(before, cause)
        answers = True
        try:
            yield
        except BaseException as error:
            answers = isinstance(error, IndexBehindError)
            raise
        finally:
            self.outages -= 1
            if answers:
                self._tell(True, "")

    def change_cause(self, cause: str) -> None:
        """Tells that an outage of an agent goes on for another reason, which may have another cure."""
        self.cause = cause
        log.warning("outage goes on: %s", cause)

    def find_away(self, what: str) -> None:
        """Notes what does not answer the watch; empty: all answers."""
        before = self.in_outage
        self.away = what
        self._tell(before, what)

    def _tell(self, before: bool, cause: str) -> None:
        """One line when the first finds an outage, one when it is over for the last."""
        if self.in_outage and not before:
            self._began = monotonic()
            log.warning("outage: %s", cause)
        elif before and not self.in_outage:
            log.warning("outage over after %.1f s", monotonic() - self._began)
