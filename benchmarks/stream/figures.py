"""The arithmetic: reports of processes become figures, ratios and gates."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.speed.gates import Gate, at_least, at_most
from benchmarks.stream.reporting import Report

Figures = dict[str, Any]  # Any: a tree of numbers as in JSON

OURS, OURS_BY_STAGE, LOOP, BARE = "worker", "worker-by-stage", "loop", "bare"
BY_HAND, BY_HAND_BATCHED = "by-hand", "by-hand-batched"
# Documents a second over those of the stream by hand.
RATIOS = {"unique": 12.0, "crawl": 8.0, "mail": 8.0, "revisions": 8.0}
UNIQUE_PER_SECOND = 1_800.0
UNIQUE_CPU_US = 700.0
P99_MS, HALF = 100.0, 0.5
LONGEST_STEP_MS = 50.0


class TooFewDocumentsError(ValueError):
    """All documents were done before there was anything to measure."""


@dataclass(frozen=True)
class Moment:
    """The state of a measured loop at one time.

    Attributes:
        reports: Of each of its processes.
        servers: CPU seconds of each server.
    """

    reports: Sequence[Report]
    servers: Mapping[str, float]

    @property
    def documents(self) -> int:
        """Documents acknowledged so far. One that two processes acknowledged counts once."""
        ends: dict[int, int] = {}
        for report in self.reports:
            for partition, end in report.offsets.items():
                ends[partition] = max(end, ends.get(partition, 0))
        return sum(ends.values())


def cost(first: Moment, last: Moment) -> Figures:
    """Return what a document cost between the first and the last acknowledgement.

    Raises:
        TooFewDocumentsError: Nothing was acknowledged between them.
    """
    documents = last.documents - first.documents
    if documents <= 0:
        raise TooFewDocumentsError("all documents were done at the first report: expected more documents")
    seconds = max(report.acknowledged_at for report in last.reports) - min(report.at for report in first.reports)
    us = 1e6 / documents
    stages = _difference(_added(last), _added(first))
    cpu = {"worker": sum(stages.values()), **_difference(last.servers, first.servers)}
    compared = sum(report.comparisons for report in last.reports) - sum(report.comparisons for report in first.reports)
    return {
        "documents": documents,
        "seconds": round(seconds, 3),
        "documents_per_second": round(documents / seconds, 1),
        "cpu_us": {name: round(us * spent, 1) for name, spent in (*cpu.items(), ("all", sum(cpu.values())))},
        "stages": {
            name: {"us": round(us * spent, 1), "share": round(spent / cpu["worker"], 4)}
            for name, spent in sorted(stages.items(), key=lambda stage: -stage[1])
        },
        "comparisons": round(compared / documents, 2),
    }


def slower_median(runs: Sequence[Figures]) -> Figures:
    """Return the run of the median speed, of an even number of runs the slower one in the middle."""
    return sorted(runs, key=lambda run: run["documents_per_second"])[(len(runs) - 1) // 2]


def later_median(runs: Sequence[Figures]) -> Figures:
    """Return the run with the median of `p99`, of an even number of runs the one with the longer times."""
    return sorted(runs, key=lambda run: run["p99"])[len(runs) // 2]


def ratios(rounds: Mapping[str, Sequence[Figures]]) -> dict[str, float]:
    """Return the documents a second of a worker over those of each other loop, the median of all rounds.

    A machine may change its speed between rounds, so only runs of one round are compared. A loop that ran once, before
    the rounds, is compared with all runs of the worker.
    """
    ours = [run["documents_per_second"] for run in rounds[OURS]]
    found = {}
    for name, runs in rounds.items():
        if name not in (OURS, OURS_BY_STAGE):
            theirs = [run["documents_per_second"] for run in runs]
            pairs = zip(ours, theirs if len(theirs) > 1 else theirs * len(ours), strict=True)
            found[name] = round(statistics.median(one / other for one, other in pairs), 2)
    return found


def gates(stream: str, loops: Mapping[str, Figures], by_hand: float, latency: Figures) -> dict[str, Gate]:
    """Return `value`, `limit` and `ok` of each gate of a stream.

    Args:
        stream: Its name.
        loops: The median run of each loop.
        by_hand: The ratio to the stream by hand, as `ratios` returns it.
        latency: Times from produce to event.
    """
    ours, by_stage = loops[OURS], loops[OURS_BY_STAGE]
    at_half = [latency["p99"]] if latency["load"] == HALF else []
    found = {
        "documents a second / by hand": at_least([by_hand], RATIOS[stream]),
        "ms from produce to event at half load, p99": at_most(at_half, P99_MS),
        "ms of CPU that the event loop is held": at_most([by_stage["longest_step_ms"]], LONGEST_STEP_MS),
    }
    if stream == "unique":
        found["documents a second"] = at_least([ours["documents_per_second"]], UNIQUE_PER_SECOND)
        found["us of CPU of all processes"] = at_most([ours["cpu_us"]["all"]], UNIQUE_CPU_US)
    return found


def table(run: Figures) -> str:
    """Return the figures of a stream as Markdown tables."""
    loops, gated, latency = run["loops"], run["gates"], run["latency_ms"]
    compared = [
        [
            name,
            f"{each['documents_per_second']:,.0f}",
            f"{run['ratios'][name]:.2f}" if name in run["ratios"] else "",
            *(f"{each['cpu_us'][part]:,.0f}" for part in ("worker", "redis", "broker", "all")),
            "" if name in (BARE, LOOP) else f"{each['redis_bytes']:,}",
        ]
        for name, each in loops.items()
    ]
    head = ["loop", "documents/s", "worker is faster x", "us: process", "Redis", "broker", "all", "Redis bytes"]
    stages = [
        [name, f"{each['us']:,.1f}", f"{each['share']:.1%}"] for name, each in loops[OURS_BY_STAGE]["stages"].items()
    ]
    verdicts = {True: "met", False: "missed", None: "not measured"}
    judged = [[name, f"{gate['value']}", f"{gate['limit']:g}", verdicts[gate["ok"]]] for name, gate in gated.items()]
    title = (
        f"## {run['stream']}: {run['documents']:,} documents of {run['characters']:,} characters, "
        f"median of {len(run['rounds'][OURS])} rounds, "
        f"{loops[OURS]['comparisons']} comparisons each; produce to event at {latency['documents_per_second']}/s, "
        f"{latency['load']:.3g} of the greatest rate: p50 {latency['p50']} ms, p99 {latency['p99']} ms, "
        f"{latency['cpu_us']['all']:,.0f} us of CPU"
    )
    return "\n\n".join(
        [
            title,
            _rows(head, compared),
            _rows(["stage of the worker", "us", "share"], stages),
            _rows(["gate", "value", "limit", ""], judged),
        ]
    )


def _added(moment: Moment) -> dict[str, float]:
    """Return the stages of all processes together."""
    found: dict[str, float] = {}
    for report in moment.reports:
        for name, spent in report.stages.items():
            found[name] = found.get(name, 0.0) + spent
    return found


def _difference(last: Mapping[str, float], first: Mapping[str, float]) -> dict[str, float]:
    return {name: spent - first.get(name, 0.0) for name, spent in last.items()}


def _rows(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows])
