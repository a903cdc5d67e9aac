"""Measure what documents of each kind cost, and print what a deployment needs for 1, 10 and 100 million of them.

    python -m benchmarks.capacity [--kind KIND ...] [--documents N] [--days D] [--peak P] [--json]

Documents of each kind go through `nearstream worker all` with a Kafka and a Redis of their own, under each scheme that
fits. CPU times are those of the processes, bytes of Redis those of its memory, bytes of Kafka those of its logs before
any replication. From these follow the needs of so many documents that are kept for D days each, where P times their
mean rate arrives in the busiest hour and no process is busy for more than .6 of it. Prints a table, or with `--json`
all figures.
"""

import argparse
import asyncio
import json
import math
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from redis import Redis

from benchmarks.crawl.sizing import bytes_of, seconds_of, server_seconds
from benchmarks.speed.measure import positive
from benchmarks.stream.deployed import deployment
from benchmarks.stream.measuring import Servers
from benchmarks.stream.measuring import servers as started
from benchmarks.stream.prose import Prose, sources
from benchmarks.stream.texts import STREAMS, Record
from nearstream.schemas.topics.table import DOCUMENTS, SIGNATURES

CASES = (
    *(("unique", "fine"), ("unique", "compact"), ("crawl", "fine"), ("crawl", "compact")),
    *(("mail", "mail"), ("revisions", "fine"), ("revisions", "compact")),
)
MILLIONS = (1, 10, 100)
HASH_KEY = "the key of a benchmark, which is no secret"
_BUSY = 0.6
_WARM = 200  # documents before those that are measured
_LEAST_PARTITIONS, _PARTITIONS_OF_A_CORE = 6, 4
_DAYS_OF_DOCUMENTS, _DAYS_OF_EVENTS, _DAYS_MORE = 7, 30, 7  # in Kafka, and of `signatures` after the retention

Figures = dict[str, float]


async def measured(servers: Servers, records: Sequence[Record], scheme: str) -> Figures:
    """Return what a document costs in a new deployment: milliseconds of CPU, and bytes."""
    deployed = await deployment(servers.stack)
    given = {"NEARSTREAM_SCHEME": scheme, "NEARSTREAM_HASH_KEY": HASH_KEY, "NEARSTREAM_VERDICTS": "all"}
    deployed = replace(deployed, environment=deployed.environment | given)
    documents = [(record.key.encode(), record.value) for record in records]
    with Redis.from_url(servers.redis_url) as redis, deployed.process("nearstream", "worker", "all") as worker:
        spans = []
        for some in (documents[:_WARM], documents[_WARM:]):
            await deployed.send_keyed(some)
            await deployed.drained(DOCUMENTS.name)
            await deployed.drained(SIGNATURES.name)
            logs = _logs(servers.folder, deployed.settings.topic_prefix)
            spans.append(
                {"worker_ms": 1000 * seconds_of(worker), "redis_ms": 1000 * server_seconds(redis)}
                | {"redis_bytes": bytes_of(redis), "documents_bytes": logs.pop("documents")}
                | {"signatures_bytes": logs.pop("signatures"), "events_bytes": sum(logs.values())}
            )
    before, after = spans
    return {name: round((after[name] - before[name]) / (len(documents) - _WARM), 3) for name in after}


def _logs(folder: Path, prefix: str) -> Counter[str]:
    """Return the bytes of the logs of each topic of a deployment."""
    sizes = Counter[str]()
    for log in (folder / "kafka" / "data").glob(f"{prefix}nearstream.*/*.log"):
        sizes[log.parent.name.removeprefix(f"{prefix}nearstream.").partition(".")[0]] += log.stat().st_size
    return sizes


def needs(cost: Figures, documents: int, days: float, peak: float) -> Figures:
    """Return what a deployment needs for so many documents that are kept for so many days."""
    mean = documents / (days * 86_400)
    cores = {name: peak * mean * cost[f"{name}_ms"] / 1000 / _BUSY for name in ("worker", "redis")}
    stored = mean * 86_400 * (_DAYS_OF_DOCUMENTS * cost["documents_bytes"] + _DAYS_OF_EVENTS * cost["events_bytes"])
    stored += documents * (days + _DAYS_MORE) / days * cost["signatures_bytes"]
    return {
        "peak_per_second": round(peak * mean, 1),
        "workers": max(math.ceil(cores["worker"]), 1),
        "redis_cores": max(math.ceil(cores["redis"]), 1),
        "partitions": max(_LEAST_PARTITIONS, _PARTITIONS_OF_A_CORE * math.ceil(cores["worker"])),
        "redis_gb": round(documents * cost["redis_bytes"] / 1e9, 1),
        "kafka_gb": round(stored / 1e9, 1),
    }


def table(found: Sequence[tuple[str, str, Figures, Sequence[Figures]]]) -> str:
    """Return costs and needs as a table in Markdown. A cell of bytes has all numbers of documents."""
    head = ("kind, scheme", "ms of a worker, of Redis", "workers, cores of Redis, partitions", "Redis, GB", "Kafka, GB")
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for kind, scheme, cost, sizes in found:
        most = ", ".join(f"{sizes[-1][name]:,}" for name in ("workers", "redis_cores", "partitions"))
        stored = [", ".join(f"{each[name]:,.3g}" for each in sizes) for name in ("redis_gb", "kafka_gb")]
        lines.append(
            f"| {kind}, `{scheme}` | {cost['worker_ms']:.2f}, {cost['redis_ms']:.2f} | {most} | {' | '.join(stored)} |"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kind", choices=STREAMS, nargs="+", default=tuple(STREAMS), help="default: all of them")
    parser.add_argument("--documents", type=positive, default=3_000, metavar="N", help="of each kind (default 3000)")
    parser.add_argument("--days", type=float, default=30.0, metavar="D", help="for which they are kept (default 30)")
    parser.add_argument("--peak", type=float, default=4.0, metavar="P", help="busiest hour over the mean (default 4)")
    parser.add_argument("--json", action="store_true", help="print all figures")
    options = parser.parse_args(arguments)
    found = []
    for kind, scheme in (each for each in CASES if each[0] in options.kind):
        records = STREAMS[kind](Prose(sources(None), 1), options.documents + _WARM, 1)
        with tempfile.TemporaryDirectory() as folder, started(Path(folder)) as servers:
            cost = asyncio.run(measured(servers, records, scheme))
        sizes = [needs(cost, each * 10**6, options.days, options.peak) for each in MILLIONS]
        found.append((kind, scheme, cost, sizes))
    print(json.dumps({**vars(options), "found": found}, indent=1) if options.json else table(found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
