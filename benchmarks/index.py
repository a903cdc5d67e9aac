"""What a document costs in the index on a server, beside datasketch's Redis storage in the same run.

    python -m benchmarks.index [--documents N] [--scheme S] [--json] [--peer N]

Starts servers of its own. Documents are slices of the examples, every second word drawn anew from their words, of 3-5
KB; 30 % are earlier ones with 3 % of the words changed, 5 % exact copies. Bytes are those of an index without expiry.
"""

import argparse
import asyncio
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import msgspec
from redis import Redis

from benchmarks.index_peer import Figures, Meter, bare, peer
from benchmarks.index_texts import admissions
from streams.hashing import HashKey
from streams.index import Admission, Admitted, IndexLimits, Report, Status
from streams.scheme import DEFAULT_LABEL, LABELS, Scheme, preset
from workers.local_redis import redis_server
from workers.local_server import running
from workers.redis_address import IndexAddress
from workers.redis_index import RedisIndex
from workers.redis_stats import index_facts

_BATCH = 32
_REPLAYS = 7_500  # documents that are admitted again at the end, at most one in 20
_TENTHS, _SPAN = 10, 1_000
_MAX_MEMORY = "8gb"

Stream = Callable[[int, int], Iterator[Admission]]  # documents of these numbers


async def fill(index: RedisIndex, batches: Sequence[Sequence[Admission]], meter: Meter) -> list[Admitted]:
    """Admits and reports; the meter sees both."""
    answers: list[Admitted] = []
    meter.start()
    for batch in batches:
        answers += await index.admit(batch)
    meter.stop()
    return answers


def _batches(documents: Sequence[Admission], size: int) -> list[Sequence[Admission]]:
    return [documents[start : start + size] for start in range(0, len(documents), size)]


async def ours(server: Redis, url: str, scheme: Scheme, stream: Stream, documents: int) -> Figures:
    """Bytes, CPU and replays of our index."""
    limits = IndexLimits(documents=documents, retention_seconds=2_592_000)
    address = IndexAddress(url, "bench", scheme.name, scheme.key_fingerprint, limits)
    index = await RedisIndex.open(address, may_create=True)
    keys, candidates, every = 0, 0, max(documents // _REPLAYS, 20)
    empty = int(server.info("memory")["used_memory_dataset"])
    meter, kept, spans_us = Meter(server), dict[int, tuple[Admission, Admitted]](), [0.0]
    for first in range(0, documents, _SPAN):
        part = list(stream(first, min(first + _SPAN, documents)))
        keys += sum(1 + (one.keys.lineage is not None) + len(one.keys.bands) + len(one.keys.anchors) for one in part)
        answers = await fill(index, _batches(part, _BATCH), meter)
        kept |= {first + at: (part[at], answers[at]) for at in range(-first % every, len(part), every)}
        candidates += sum(len(answer.candidates) for answer in answers)
        spans_us.append(meter.server_us)
    figures = await _costs(index, server, meter, (documents, keys, empty))
    if documents % (_TENTHS * _SPAN) == 0:
        tenths = spans_us[:: len(spans_us) // _TENTHS]
        figures["server_us_by_tenth"] = [round((b - a) * _TENTHS / documents, 1) for a, b in pairwise(tenths)]
    figures["candidates"] = round(candidates / documents, 1)
    figures |= await _replays(index, list(kept.values()))
    figures["report_server_us"], figures["report_client_us"] = await _reports(index, server, list(kept.values()))
    await index.close()
    return figures


async def _replays(index: RedisIndex, known: Sequence[tuple[Admission, Admitted]]) -> Figures:
    """How many are answered otherwise than at first when they are admitted again."""
    wrong = 0
    for one, then in known:
        (again,) = await index.admit([one])
        wrong += then.status is not Status.UNCHANGED and again != replace(then, status=Status.REPLAYED)
    return {"replays": len(known), "wrong_replays": wrong}


async def _costs(index: RedisIndex, server: Redis, meter: Meter, so_far: tuple[int, int, int]) -> Figures:
    done, keys, empty = so_far
    (facts,) = await index_facts(index)
    n = max(facts.documents, 1)
    figures: Figures = {
        "documents": done,
        "bytes": round((int(server.info("memory")["used_memory_dataset"]) - empty) / n),
        "bytes_by_part": {name: round(size / n, 1) for name, size in (facts.memory_bytes or {}).items()},
        "keys": round(keys / done, 1),
        "server_us": round(meter.server_us / done, 1),
        "server_us_per_key": round(meter.server_us / keys, 2),
        "client_us": round(meter.client_us / done, 1),
        "per_second": round(done / meter.seconds),
        "chunk_fields": {each.kind: each.mean for each in facts.chunks},
        "overflows": facts.overflows,
    }
    return figures


async def _reports(
    index: RedisIndex, server: Redis, known: Sequence[tuple[Admission, Admitted]]
) -> tuple[float | None, float | None]:
    pairs = [
        Report(then.number, other.number, "near_duplicate", random.Random(at).randbytes(16).hex())
        for at, (_, then) in enumerate(known)
        for other in then.candidates[:1]
    ]
    meter = Meter(server)
    meter.start()
    await index.report(pairs)
    meter.stop()
    n = len(pairs)
    return (round(meter.server_us / n, 1), round(meter.client_us / n, 1)) if n else (None, None)


async def by_batch(server: Redis, url: str, scheme: Scheme, documents: Sequence[Admission]) -> Figures:
    """Server CPU a document and time of a call, by the size of a batch, on indexes of their own."""
    found: Figures = {}
    for size in (1, 8, 32):
        address = IndexAddress(url, f"batch-{size}", scheme.name, scheme.key_fingerprint, IndexLimits(documents=10_000))
        index = await RedisIndex.open(address, may_create=True)
        meter, calls_ms = Meter(server), []
        meter.start()
        for batch in _batches(documents, size):
            began = time.perf_counter()
            await index.admit(batch)
            calls_ms.append((time.perf_counter() - began) * 1e3)
        meter.stop()
        spans = statistics.quantiles(calls_ms, n=100)
        found[str(size)] = {
            "server_us": round(meter.server_us / len(documents), 1),
            "p50_ms": round(spans[49], 2),
            "p99_ms": round(spans[98], 2),
        }
        await index.close()
    return found


def beside_peer(folder: Path, count: int) -> Figures:
    """Both with 25 bands of 5 rows, on the same texts, on a fresh server each; ours with records and without."""
    scheme = preset("bands-only", HashKey.public())
    runs = {"ours": partial(admissions, scheme), "ours without records": partial(_without_records, scheme)}
    with _server(folder / "peer") as (server, url):
        theirs = peer(server, url, scheme, count)
    found: Figures = {"datasketch": theirs}
    for name, stream in runs.items():
        with _server(folder / f"beside, {name}") as (server, url):
            found[name] = asyncio.run(ours(server, url, scheme, stream, count))
    whole, part = found["ours"], found["ours without records"]
    buckets = whole["bytes_by_part"]["bands"] + whole["bytes_by_part"]["digests"]
    found["ratios"] = {
        "bytes, index part": round(theirs["bytes"] / buckets, 1),
        "bytes, with records": round(theirs["bytes"] / whole["bytes"], 1),
        "server_us, index part": round(theirs["server_us"] / part["server_us"], 1),
        "server_us, with records": round(theirs["server_us"] / whole["server_us"], 1),
        "per_second, index part": round(part["per_second"] / theirs["per_second"], 1),
        "per_second, with records": round(whole["per_second"] / theirs["per_second"], 1),
    }
    return found


def _without_records(scheme: Scheme, first: int, last: int) -> Iterator[Admission]:
    """The documents with the keys that datasketch has too; of the rest only what an admission cannot do without."""
    for one in admissions(scheme, first, last):
        if one.signature is not None:
            bare_one = msgspec.structs.replace(one.signature, sketch=b"", lineage=None, url=None, origin=None)
            yield replace(one, signature=bare_one, keys=replace(one.keys, lineage=None))


@contextmanager
def _server(folder: Path) -> Iterator[tuple[Redis, str]]:
    with running(redis_server(folder)) as server:
        url = f"redis://{server.address}/0"
        with Redis.from_url(url) as client:
            client.config_set("maxmemory", _MAX_MEMORY)
            yield client, url


def run(options: argparse.Namespace) -> Figures:
    """All that the command prints."""
    scheme = preset(options.scheme, HashKey.public())
    figures: Figures = {"scheme": options.scheme}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with _server(folder / "ours") as (server, url):
            figures["server"] = server.info("server").get("valkey_version") or server.info("server")["redis_version"]
            figures["bare_hsetnx_us"] = round(bare(server, 200_000), 2)
            figures["by_batch"] = asyncio.run(by_batch(server, url, scheme, list(admissions(scheme, 0, 2_000))))
            figures |= asyncio.run(ours(server, url, scheme, partial(admissions, scheme), options.documents))
            figures["bare_hsetnx_us_after"] = round(bare(server, 200_000), 2)
        if options.peer:
            figures["beside_datasketch"] = beside_peer(folder, options.peer)
    return figures


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; always 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--documents", type=int, default=20_000, metavar="N", help="documents admitted (20000)")
    parser.add_argument("--scheme", choices=LABELS, default=DEFAULT_LABEL)
    parser.add_argument("--peer", type=int, default=2_000, metavar="N", help="documents beside datasketch, 0: none")
    parser.add_argument("--json", action="store_true", help="on one line")
    options = parser.parse_args(arguments)
    print(json.dumps(run(options), indent=None if options.json else 1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
