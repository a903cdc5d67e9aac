"""Measure how one collection grows with slots, servers and workers.

    python -m benchmarks.scale [--documents N] [--stream unique|crawl|mail|revisions] [--slots N ...] [--servers N]
                               [--workers N] [--chart FILE]

Documents of a stream are dealt to 16 partitions, and these to workers, each of which is a process. All match at once
through one index, whose slots lie on the primaries of a Redis Cluster. Times are CPU times, so they say what servers
and workers of their own would have to do, although all run on the cores of one machine. Signing is left out.

`ceiling` is computed: how many documents a second the busiest server allows, as a server has one thread. `model` is
computed too: the ceiling if each slot had a server of its own and all were equally busy. Prints one JSON object.
"""

import argparse
import asyncio
import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from redis import Redis

from benchmarks.index.growth import Figures, documents_of
from benchmarks.speed.measure import positive
from benchmarks.stream.deployed import described
from benchmarks.stream.texts import STREAMS
from nearstream.schemas.documents.signature import Signature
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.matching.arriving import Arrival
from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.signing.scheme import DEFAULT_LABEL, preset
from nearstream.streams.signing.signer import Signer
from nearstream.streams.store.limits import IndexLimits
from nearstream.streams.store.store import Position
from nearstream.workers.pipeline.step import patience
from nearstream.workers.redis.index.index import RedisIndex
from nearstream.workers.redis.server.address import IndexAddress
from nearstream.workers.worker.topology import MATCH_BATCH
from tests.support.cluster import redis_cluster

PARTITIONS = 16
KEY = HashKey.public()


@dataclass(frozen=True)
class Deployment:
    """What one measurement runs on: the URL of a node of the cluster, slots of the index, workers, documents."""

    url: str
    slots: int
    workers: int
    documents: int

    async def open(self, *, may_create: bool = False) -> RedisIndex:
        """Open the index."""
        scheme, limits = preset(DEFAULT_LABEL, KEY), IndexLimits(documents=max(self.documents, 1_000))
        address = IndexAddress(self.url, "scale", scheme.name, limits, slots=self.slots, cluster=True)
        return await RedisIndex.open(address, partitions=PARTITIONS, may_create=may_create)


def dealt(signatures: Sequence[Signature], workers: int) -> list[list[tuple[int, int, Sequence[Signature]]]]:
    """Return the batches of each worker: partition, first offset, signatures."""
    hands: list[list[tuple[int, int, Sequence[Signature]]]] = [[] for _ in range(workers)]
    for at, start in enumerate(range(0, len(signatures), MATCH_BATCH)):
        partition = at % PARTITIONS
        batch = signatures[start : start + MATCH_BATCH]
        hands[partition % workers].append((partition, at // PARTITIONS * MATCH_BATCH, batch))
    return hands


def work(
    on: Deployment, hand: Sequence[tuple[int, int, Sequence[Signature]]], begins: Barrier, used: "Queue[float]"
) -> None:
    """Match the batches of one worker, and tell the seconds of CPU that this took."""
    asyncio.run(_work(on, hand, begins, used))


async def _work(
    on: Deployment, hand: Sequence[tuple[int, int, Sequence[Signature]]], begins: Barrier, used: "Queue[float]"
) -> None:
    index = await on.open()
    matcher = Matcher(index.store(), preset(DEFAULT_LABEL, KEY), KEY, patience=patience)
    begins.wait()
    began = time.process_time()
    for partition, first, batch in hand:
        places = (Position(partition, first + at) for at in range(len(batch)))
        arrivals = [Arrival(each.document_key, each, place) for each, place in zip(batch, places, strict=True)]
        await matcher.match_all(arrivals)
        await index.cover([Position(partition, first + len(batch) - 1)])
    used.put(time.process_time() - began)
    await index.close()


def measured(signatures: Sequence[Signature], slots: int, servers: int, workers: int) -> Figures:
    """Match documents through an empty index, and return what each of them cost."""
    processes = multiprocessing.get_context("spawn")
    begins, used = processes.Barrier(workers + 1), processes.Queue()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as opened:
        nodes = opened.enter_context(redis_cluster(Path(folder), nodes=servers))
        clients = [opened.enter_context(Redis.from_url(f"redis://{node.address}")) for node in nodes]
        on = Deployment(f"redis://{nodes[0].address}/0", slots, workers, len(signatures))
        asyncio.run(_create(on))
        hands = dealt(signatures, workers)
        running = [processes.Process(target=work, args=(on, hand, begins, used)) for hand in hands]
        for each in running:
            each.start()
        begins.wait()
        before = list(map(_state, clients))
        worker_us = 1e6 * sum(used.get() for _ in running)
        after = list(map(_state, clients))
        for each in running:
            each.join()
        server = described(clients[0])
    n = len(signatures)
    server_us = [(now[0] - then[0]) / n for then, now in zip(before, after, strict=True)]
    return {
        "slots": slots,
        "servers": servers,
        "workers": workers,
        "server_us": round(sum(server_us), 1),
        "busiest_server_us": round(max(server_us), 1),
        "worker_us": round(worker_us / n, 1),
        "calls": round(sum(now[1] - then[1] for then, now in zip(before, after, strict=True)) / n, 2),
        "ceiling": round(1e6 / max(server_us)),
        "model": round(1e6 * slots / sum(server_us)),
        "server": server,
    }


async def _create(on: Deployment) -> None:
    index = await on.open(may_create=True)
    await index.close()


def _state(server: Redis) -> tuple[float, int]:
    """Return the microseconds of CPU that a server has used, and the functions that were called there."""
    cpu, calls = server.info("cpu"), server.info("commandstats")
    us = 1e6 * (float(cpu["used_cpu_user_main_thread"]) + float(cpu["used_cpu_sys_main_thread"]))
    return us, sum(calls.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in ("fcall", "fcall_ro"))


def run(options: argparse.Namespace) -> Figures:
    """Measure each count of slots, on as many servers and with as many workers as it can use."""
    documents = islice((one for batch in documents_of(options.stream) for one in batch), options.documents)
    signer = Signer(preset(DEFAULT_LABEL, KEY), KEY)
    signatures = [signer.sign(document) for document in documents]
    rows = [
        measured(signatures, slots, min(slots, options.servers), min(slots, options.workers)) for slots in options.slots
    ]
    server = {row.pop("server") for row in rows}.pop()
    return {"stream": options.stream, "documents": options.documents, "server": server, "rows": rows}


def chart(found: Figures, command: str) -> dict[str, Any]:
    """Return the chart of a run. Commit, date and machine are to be filled in."""
    first = found["rows"][0]["ceiling"]
    rows = [
        {
            "label": f"{row['slots']} slots, {row['servers']} servers",
            "values": [round(row["model"] / first, 2), round(row["ceiling"] / first, 2)],
        }
        for row in found["rows"]
    ]
    title = "Ceiling of one collection, as a multiple of that with one slot"
    named = {"title": title, "unit": "computed from CPU times; more is better", "command": command}
    series = ["model: a server for each slot", "the servers that ran"]
    return {**named, "commit": "", "date": "", "machine": "", "digits": 1, "series": series, "rows": rows}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--stream", choices=STREAMS, default="unique")
    parser.add_argument("--documents", type=positive, default=4_096, metavar="N", help="default 4096")
    parser.add_argument("--slots", type=positive, nargs="+", default=[1, 2, 4, 8, 16], metavar="N", help="at most 16")
    parser.add_argument("--servers", type=positive, default=4, metavar="N", help="at most, default 4")
    parser.add_argument("--workers", type=positive, default=4, metavar="N", help="at most, default 4")
    parser.add_argument("--chart", type=Path, metavar="FILE", help="write the JSON of a chart too")
    options = parser.parse_args(arguments)
    found = run(options)
    if options.chart:
        words = sys.argv[1:] if arguments is None else arguments
        packed = json.dumps(chart(found, " ".join(["python -m benchmarks.scale", *words])), indent=1)
        options.chart.write_text(packed + "\n", encoding="utf-8")
    print(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
