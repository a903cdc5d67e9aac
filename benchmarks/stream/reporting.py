"""A process that is measured, and what it reports about itself."""

import json
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from benchmarks.stream.latency import number_of
from benchmarks.stream.stages import StageClock, main_thread_seconds, whole
from nearstream.schemas.documents.record import ConsumerRecord, traceparent


class Hop(NamedTuple):
    """What a step did with a document, in nanoseconds since 1970."""

    step: str  # name of the step
    number: int  # number of the document
    taken: int  # when its batch was taken
    decided: int  # When its results were there. For `match`, the index has answered by then.
    delivered: int  # when the broker had confirmed them


class Report(msgspec.Struct, frozen=True):
    """What a process has done so far."""

    at: float  # time of the report, by the clock that all processes share
    acknowledged_at: float  # time of its last acknowledgement
    offsets: dict[int, int]  # the offset after the last acknowledged one, by partition
    stages: dict[str, float]  # CPU seconds of each stage, all together those of the process
    # CPU seconds of the longest piece of work between two turns of the event loop, since the last report.
    longest_step: float
    comparisons: float  # earlier documents that it has compared
    hops: Sequence[Hop] = ()  # what it did with documents that have a number, since the last report


@dataclass
class Reporter:
    """Counts what is acknowledged, and answers each line on stdin with a report on stdout."""

    clock: StageClock  # measures the stages
    topic: str  # the topic whose acknowledgements count
    comparisons: Callable[[], float] = lambda: 0.0  # returns how many earlier documents were compared
    _offsets: dict[int, int] = field(default_factory=dict)
    _acknowledged_at: float = 0.0
    _hops: list[Hop] = field(default_factory=list)

    def traced(self, step: str, records: Sequence[ConsumerRecord], times: tuple[int, int, int]) -> None:
        """Note when a batch was taken, decided and delivered."""
        traces = [trace for record in records if (trace := traceparent(record.headers)) is not None]
        self._hops += [Hop(step, number_of(trace), *times) for trace in traces]

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
        hops, self._hops = self._hops, []
        done = dict(self._offsets)
        return Report(time.monotonic(), self._acknowledged_at, done, stages, longest, self.comparisons(), hops)
