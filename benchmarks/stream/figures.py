"""The arithmetic: reports of processes become figures, ratios and gates."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.speed.gates import Gate, at_least, at_most
from benchmarks.stream.latency import Way
from benchmarks.stream.reporting import Hop, Report

Figures = dict[str, Any]  # Any: a tree of numbers as in JSON

OURS, OURS_BY_STAGE, LOOP, BARE = "worker", "worker-by-stage", "loop", "bare"
BY_HAND, BY_HAND_BATCHED = "by-hand", "by-hand-batched"
HALF, TENTH = 0.5, 0.1
# Documents a second over those of the stream by hand, and of that one with look-ups in batches.
RATIOS = {"unique": 14.0, "crawl": 9.0, "mail": 9.0, "revisions": 9.0}
RATIO_BATCHED = 3.0
CPU_US = {"unique": 750.0, "crawl": 1_300.0, "mail": 1_300.0, "revisions": 1_300.0}
P99_MS = {HALF: 150.0, TENTH: 40.0}
DEARER_AT_HALF = 1.25
LONGEST_STEP_MS = 50.0
INTERVAL = 0.10  # of a ratio, to each side, at which no further round is needed
_T95 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26)  # Student's t for 2, 3, 4 and more rounds
HOPS = ("until `sign` takes it", "signed and sent", "until `match` takes it", "index answered", "sent", "received")


class TooFewDocumentsError(ValueError):
    """All documents were done before there was anything to measure."""


@dataclass(frozen=True)
class Moment:
    """The state of a measured loop at one time."""

    reports: Sequence[Report]  # of each of its processes
    servers: Mapping[str, float]  # CPU seconds of each server

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


def times_of(ways: Sequence[Way], hops: Sequence[Hop]) -> Figures:
    """Return percentiles of the milliseconds from produce to event, and the median and p99 of each hop.

    Args:
        ways: When each document was due, and when its verdict arrived.
        hops: What the steps did with each document. Of a document that a step had twice, the first time counts.
    """
    steps: dict[tuple[str, int], Hop] = {}
    for hop in hops:
        steps.setdefault((hop.step, hop.number), hop)
    parts: dict[str, list[float]] = {name: [] for name in HOPS}
    for number, way in enumerate(ways):
        signed, matched = steps[("sign", number)], steps[("match", number)]
        moments = (way.due, signed.taken, signed.delivered, matched.taken, matched.decided, matched.delivered)
        for name, one, other in zip(HOPS, moments, (*moments[1:], way.arrived), strict=True):
            parts[name].append(max(other - one, 0) / 1e6)  # a verdict may arrive before it is confirmed
    return {
        **_percentiles([(way.arrived - way.due) / 1e6 for way in ways]),
        "hops": {name: _percentiles(each) for name, each in parts.items()},
    }


def _percentiles(times: Sequence[float]) -> dict[str, float]:
    cuts = statistics.quantiles(times, n=100)
    return {"p50": round(cuts[49], 1), "p99": round(cuts[98], 1)}


def later_median(runs: Sequence[Figures]) -> Figures:
    """Return the run with the median of `p99`, of an even number of runs the one with the longer times."""
    return sorted(runs, key=lambda run: run["p99"])[len(runs) // 2]


def interval(ours: Sequence[Figures], theirs: Sequence[Figures]) -> float:
    """Return half the width of the 95 % interval of the ratio of two loops, as a share of it. One round has none: 1."""
    if len(ours) < 2:
        return 1.0
    logs = [
        math.log(one["documents_per_second"] / other["documents_per_second"])
        for one, other in zip(ours, theirs, strict=True)
    ]
    t95 = _T95[min(len(logs) - 2, len(_T95) - 1)]
    return round(math.expm1(t95 * statistics.stdev(logs) / math.sqrt(len(logs))), 3)


def dearer(full: Figures, latency: Figures) -> float:
    """Return how much more of worker and Redis a document costs at a load than in a full stream.

    The broker is left out, because at a load it also serves the clients of the benchmark.
    """
    at_load, at_full = (sum(each["cpu_us"][name] for name in ("worker", "redis")) for each in (latency, full))
    return float(round(at_load / at_full, 2))


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


def gates(
    stream: str, loops: Mapping[str, Figures], compared: Mapping[str, float], latencies: Sequence[Figures]
) -> dict[str, Gate]:
    """Return `value`, `limit` and `ok` of each gate of a stream.

    Args:
        stream: Its name.
        loops: The median run of each loop.
        compared: The ratios to the other loops, as `ratios` returns them.
        latencies: Times from produce to event, for each load.
    """
    ours, by_stage = loops[OURS], loops[OURS_BY_STAGE]
    by_load = {each["load"]: each for each in latencies}
    found = {
        "documents a second / by hand": at_least([compared[BY_HAND]], RATIOS[stream]),
        "documents a second / by hand, batched": at_least([compared[BY_HAND_BATCHED]], RATIO_BATCHED),
        "us of CPU of all processes": at_most([ours["cpu_us"]["all"]], CPU_US[stream]),
    }
    for load, limit in P99_MS.items():
        p99 = [by_load[load]["p99"]] if load in by_load else []
        found[f"ms from produce to event at {load:g} of the rate, p99"] = at_most(p99, limit)
    cost_at_half = [dearer(ours, by_load[HALF])] if HALF in by_load else []
    found["CPU of worker and Redis at half load / full"] = at_most(cost_at_half, DEARER_AT_HALF)
    found["ms of CPU that the event loop is held"] = at_most([by_stage["longest_step_ms"]], LONGEST_STEP_MS)
    return found


def table(run: Figures) -> str:
    """Return the figures of a stream as Markdown tables."""
    loops, gated = run["loops"], run["gates"]
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
        f"{loops[OURS]['comparisons']} comparisons each, interval of the ratio to by-hand {run['interval']:.0%}"
    )
    times = [
        [
            f"{each['load']:g} ({each['documents_per_second']}/s)",
            f"{each['p50']}, {each['p99']}",
            *(f"{each['hops'][name]['p50']}, {each['hops'][name]['p99']}" for name in HOPS),
            *(f"{each['cpu_us'][part]:,.0f}" for part in ("worker", "redis", "broker")),
        ]
        for each in run["latencies"]
    ]
    return "\n\n".join(
        [
            title,
            _rows(head, compared),
            _rows(["load", "ms to the event: p50, p99", *HOPS, "us: process", "Redis", "broker"], times),
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
