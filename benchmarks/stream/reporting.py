"""A process that is measured, and what it reports about itself."""

import json
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from benchmarks.stream.stages import StageClock, main_thread_seconds, whole


class Report(msgspec.Struct, frozen=True):
    """What a process has done so far.

    Attributes:
        at: Time of the report, by the clock that all processes share.
        acknowledged_at: Time of its last acknowledgement.
        offsets: The offset after the last acknowledged one, by partition.
        stages: CPU seconds of each stage, all together those of the process.
        longest_step: CPU seconds of the longest piece of work between two turns of the event loop, since the last
            report.
        comparisons: Earlier documents that it has compared.
    """

    at: float
    acknowledged_at: float
    offsets: dict[int, int]
    stages: dict[str, float]
    longest_step: float
    comparisons: float


@dataclass
class Reporter:
    """Counts what is acknowledged, and answers each line on stdin with a report on stdout.

    Attributes:
        clock: Measures the stages.
        topic: The topic whose acknowledgements count.
        comparisons: Returns how many earlier documents were compared.
    """

    clock: StageClock
    topic: str
    comparisons: Callable[[], float] = lambda: 0.0
    _offsets: dict[int, int] = field(default_factory=dict)
    _acknowledged_at: float = 0.0

    def acknowledged(self, records: Sequence[Any]) -> None:
        """Count records of the topic."""
        ends = {record.partition: record.offset + 1 for record in records if record.topic == self.topic}
        if ends:
            self._offsets.update(ends)
            self._acknowledged_at = time.monotonic()

    def start(self) -> None:
        """Answer from a thread, so that a busy event loop delays no answer."""
        threading.Thread(target=self._answer, name="reporter", daemon=True).start()

    def _answer(self) -> None:
        out = sys.__stdout__
        for _ in sys.stdin:
            if out is not None:
                out.write(json.dumps(msgspec.to_builtins(self.report(), str_keys=True)) + "\n")
                out.flush()

    def report(self) -> Report:
        """Return what was done so far."""
        stages = whole(dict(self.clock.seconds), main_thread_seconds(), time.process_time())
        longest, self.clock.longest = self.clock.longest, 0.0
        return Report(time.monotonic(), self._acknowledged_at, dict(self._offsets), stages, longest, self.comparisons())
