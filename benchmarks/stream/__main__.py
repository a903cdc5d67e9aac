"""Measure the speed of the whole stream, from documents to events, beside other loops on the same servers.

    python -m benchmarks.stream [--documents N] [--stream NAME ...] [--rounds R] [--seconds S] [--workers K]
                                [--load SHARE ...] [--corpus DIR] [--json]

Starts its own Kafka and Redis. The documents of a stream lie in their topic when a loop starts, and time runs from the
first to the last acknowledgement, of a slow loop to the end of its seconds. The loops are a worker, a worker with a
clock around its stages, the stream that is written by hand with datasketch, aiokafka without work, and our own loop
without work. The worker and the stream by hand run in turn, because a machine may change its speed, until the 95 %
interval of their ratio is within 10 %. The others run once, before the rounds. A ratio is the median of those of the
rounds. The figures of a loop are those of its run of median speed, and the times from produce to event, with those of
each hop, are those of the run with the median of the 99th percentile. Texts are made of those of the examples, or of a
corpus. Prints tables, or one JSON object. The exit code is 1 if a gate is missed, 2 if an input cannot be read or there
are too few documents.
"""

import argparse
import asyncio
import json
import logging
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.quality.corpus import CorpusError
from benchmarks.speed.gates import failed
from benchmarks.speed.measure import positive
from benchmarks.stream.deployed import log_progress
from benchmarks.stream.figures import (
    BARE,
    BY_HAND,
    BY_HAND_BATCHED,
    HALF,
    INTERVAL,
    LOOP,
    OURS,
    OURS_BY_STAGE,
    TENTH,
    Figures,
    TooFewDocumentsError,
    gates,
    interval,
    later_median,
    ratios,
    slower_median,
    table,
)
from benchmarks.stream.measuring import Run, Servers, machine, measured, measured_worker, servers
from benchmarks.stream.prose import Prose, sources
from benchmarks.stream.texts import STREAMS

_WITHOUT_WORK = 4  # how often a loop without work finds each document, because it is done with them soon
_FEWEST = 400


async def measure(servers: Servers, stream: str, options: argparse.Namespace, texts: Sequence[str]) -> Figures:
    """Return the figures of one stream.

    The broker is warm when the loops with work begin. Rounds end as soon as the ratio to the stream by hand is known.
    """
    count, run = options.documents, Run(options.workers, options.seconds)
    records = STREAMS[stream](Prose(texts, options.seed), 2 * count, options.seed)
    records, further = records[:count], records[count:]
    log_progress(f"{stream}: {count} documents made")
    runs = {name: [await measured(servers, name, records, run, _WITHOUT_WORK)] for name in (BARE, LOOP)}
    runs[OURS_BY_STAGE] = [await measured(servers, OURS_BY_STAGE, records, run)]
    runs |= {name: [] for name in (BY_HAND, BY_HAND_BATCHED, OURS)}
    latencies: dict[float, list[Figures]] = {load: [] for load in options.load}
    while len(runs[OURS]) < options.rounds and interval(runs[OURS], runs[BY_HAND]) > INTERVAL:
        for name in (BY_HAND, BY_HAND_BATCHED):
            runs[name].append(await measured(servers, name, records, run))
        ours, found = await measured_worker(servers, records, further, run, options.load)
        runs[OURS].append(ours)
        for each in found:
            latencies[each["load"]].append(each)
    loops, compared = {name: slower_median(each) for name, each in runs.items()}, ratios(runs)
    medians = [later_median(each) for each in latencies.values()]
    return {
        "stream": stream,
        "documents": count,
        "characters": round(sum(len(record.text) for record in records) / count),
        "workers": run.workers,
        "seed": options.seed,
        "texts": "corpus" if options.corpus else "examples",
        "machine": f"{machine()}, {servers.redis_version}",
        "rounds": {name: [each["documents_per_second"] for each in some] for name, some in runs.items()},
        "loops": loops,
        "latencies": medians,
        "ratios": compared,
        "interval": interval(runs[OURS], runs[BY_HAND]),
        "gates": gates(stream, loops, compared, medians),
    }


def run(options: argparse.Namespace) -> list[Figures]:
    """Return the figures of all streams asked for.

    Raises:
        CorpusError: A file of the corpus is missing or invalid.
    """
    texts = sources(options.corpus)
    with tempfile.TemporaryDirectory() as folder, servers(Path(folder)) as started:
        return [asyncio.run(measure(started, stream, options, texts)) for stream in options.stream]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--documents", type=_enough, default=8_000, metavar="N", help="documents of a stream")
    parser.add_argument("--stream", choices=STREAMS, nargs="+", default=list(STREAMS), help="default: all")
    parser.add_argument(
        "--rounds",
        type=positive,
        default=6,
        metavar="R",
        help="how often the worker and the stream by hand run at most",
    )
    parser.add_argument("--workers", type=positive, default=1, metavar="K", help="processes of each loop")
    parser.add_argument(
        "--corpus", type=Path, metavar="DIR", help="directory with docs.jsonl.gz, default: the examples"
    )
    parser.add_argument(
        "--load",
        type=_share,
        nargs="+",
        default=[HALF, TENTH],
        metavar="SHARE",
        help="of the greatest rate, at which latency is measured",
    )
    parser.add_argument(
        "--seconds", type=positive, default=10, metavar="S", help="of each run, and of each measurement of latency"
    )
    parser.add_argument("--seed", type=int, default=1, help="another seed makes other documents")
    parser.add_argument("--json", action="store_true", help="print a JSON object instead of tables")
    options = parser.parse_args(arguments)
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # a topic that was just made has no leader for a moment
    try:
        runs = run(options)
    except (CorpusError, TooFewDocumentsError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    print(json.dumps({"runs": runs}) if options.json else "\n\n".join(map(table, runs)))
    return int(any(failed(each["gates"]) for each in runs))


def _share(text: str) -> float:
    """Parse a share of the greatest rate.

    Raises:
        ArgumentTypeError: It is no share.
        ValueError: It is no number.
    """
    share = float(text)
    if not 0 < share <= 1:
        raise argparse.ArgumentTypeError("expected more than 0, at most 1")
    return share


def _enough(text: str) -> int:
    """Parse a number of documents.

    Raises:
        ArgumentTypeError: It is too small to measure anything.
        ValueError: It is no number.
    """
    number = int(text)
    if number < _FEWEST:
        raise argparse.ArgumentTypeError(f"expected at least {_FEWEST}")
    return number


if __name__ == "__main__":
    sys.exit(main())
