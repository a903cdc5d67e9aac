"""Measure the CPU time of one thread on one core."""

import argparse
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class Effort:
    """The number of repetitions, and the least nanoseconds of each."""

    repeats: int
    shortest_ns: int

    @classmethod
    def of(cls, options: argparse.Namespace) -> "Effort":
        """Return the effort that the options of `effort_options` ask for."""
        return cls(options.repeats, options.shortest_ms * 1_000_000)


@dataclass(frozen=True)
class Timing:
    """The best of several repetitions."""

    us: float  # microseconds of CPU time for one item in the best repetition
    spread: float  # how much longer the median repetition took, as a share of the best
    n: int  # number of repetitions


def positive(text: str) -> int:
    """Parse an option that must be at least 1.

    Raises:
        ValueError: The text is not such a number.
    """
    number = int(text)
    if number < 1:
        raise ValueError(f"expected a number of at least 1, got {number}")
    return number


def effort_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `Effort` to a parser."""
    parser.add_argument("--repeats", type=positive, default=9, help="repetitions, of which the best counts")
    parser.add_argument(
        "--shortest-ms", type=positive, default=20, help="least duration of a repetition in milliseconds"
    )


def pin() -> int:
    """Pin this process to the last core that it may use.

    Returns:
        The number of the core.
    """
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return core


def timed(run: Callable[[_Item], object], items: Sequence[_Item], effort: Effort) -> Timing:
    """Measure the CPU time for one item, after a warm-up.

    Only the time of this thread counts.
    """
    rounds = 1
    while (spent := _spent(run, items, rounds)) < effort.shortest_ns:
        rounds *= max(2, effort.shortest_ns // max(spent, 1))
    spents = [_spent(run, items, rounds) for _ in range(effort.repeats)]
    best = min(spents)
    return Timing(best / rounds / len(items) / 1_000, statistics.median(spents) / best - 1, effort.repeats)


def percentiles(run: Callable[[_Item], object], item: _Item, calls: int) -> tuple[float, float]:
    """Return p50 and p99 of the microseconds of CPU of single calls."""
    spents = sorted(_spent(run, [item], 1) / 1_000 for _ in range(calls))
    return spents[calls // 2], spents[calls * 99 // 100]


def cpu() -> str:
    """Return the name of the processor as Linux reports it."""
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return os.uname().machine


def _spent(run: Callable[[_Item], object], items: Sequence[_Item], rounds: int) -> int:
    start = time.thread_time_ns()
    for _ in range(rounds):
        for item in items:
            run(item)
    return time.thread_time_ns() - start
