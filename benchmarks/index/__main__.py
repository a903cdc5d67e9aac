"""Measure what a document costs in the index on a server.

    python -m benchmarks.index [--documents N] [--scheme S] [--json] [--peer N]

Starts its own servers, and measures the Redis storage of datasketch in one run with ours. Documents have 3-5
KB and are slices of the examples in which every second word is replaced by a random one of their words. 30 % are
earlier documents with 3 % of the words changed, 5 % are exact copies. Nothing is compared: each document joins the
family that the index presumes, and its best candidate counts as its near-duplicate. Bytes are those of an index without
expiry.
"""

import argparse
import asyncio
import json
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

from benchmarks.index.datasketch_peer import Figures, Meter, bare, peer
from benchmarks.index.settlements import settlement
from benchmarks.index.texts import admissions
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.index.family import Family
from nearstream.streams.signing.scheme import DEFAULT_LABEL, LABELS, Scheme, preset
from nearstream.streams.store.limits import Admission, Admitted, IndexLimits
from nearstream.streams.store.registration import Status
from nearstream.workers.redis_index.address import IndexAddress
from nearstream.workers.redis_index.index import RedisIndex
from nearstream.workers.redis_index.stats import index_facts
from tests.devstack.redis import redis_server
from tests.devstack.server import running

_BATCH = 32
_REPLAYS = 7_500  # documents admitted again at the end, but at most one in 20
_TENTHS, _SPAN = 10, 1_000
_MAX_MEMORY = "8gb"

Stream = Callable[[int, int], Iterator[Admission]]  # from the first and the last number to the documents


Known = tuple[
    Admission, Admitted, Family | None
]  # a document, the first answer to it, and its family if it was settled


async def fill(index: RedisIndex, batches: Sequence[Sequence[Admission]], meters: tuple[Meter, Meter]) -> list[Known]:
    """Admit and settle the batches, and add the cost of each to its meter."""
    known: list[Known] = []
    admitting, settling = meters
    for batch in batches:
        admitting.start()
        answers = await index.admit(batch)
        admitting.stop()
        settling.start()
        families = await settle(index, batch, answers)
        settling.stop()
        known += zip(batch, answers, families, strict=True)
    return known


async def settle(index: RedisIndex, batch: Sequence[Admission], answers: Sequence[Admitted]) -> list[Family | None]:
    """Settle a batch, and return the family of each document that has something to be settled."""
    found = [settlement(one, answer) for one, answer in zip(batch, answers, strict=True)]
    waiting = {each.number: each for each in found if each is not None}
    families: dict[int, Family | None] = {}
    while waiting:
        ready = [each for each in waiting.values() if each.joins not in waiting]
        for each, answer in zip(ready, await index.settle(ready), strict=True):
            del waiting[each.number]
            if answer.follow is not None:
                waiting[each.number] = replace(each, joins=answer.follow.number, is_exact=False)
            families[each.number] = answer.family
    return [families.get(answer.number) for answer in answers]


def _batches(documents: Sequence[Admission], size: int) -> list[Sequence[Admission]]:
    return [documents[start : start + size] for start in range(0, len(documents), size)]


async def ours(server: Redis, url: str, scheme: Scheme, stream: Stream, documents: int) -> Figures:
    """Measure bytes, CPU and replays of our index."""
    limits = IndexLimits(documents=documents, retention_seconds=2_592_000)
    address = IndexAddress(url, "bench", scheme.name, scheme.key_fingerprint, limits)
    index = await RedisIndex.open(address, may_create=True)
    keys, candidates, settled, every = 0, 0, 0, max(documents // _REPLAYS, 20)
    empty = int(server.info("memory")["used_memory_dataset"])
    meter, settling, kept, spans_us = Meter(server), Meter(server), dict[int, Known](), [0.0]
    for first in range(0, documents, _SPAN):
        part = list(stream(first, min(first + _SPAN, documents)))
        keys += sum(1 + (one.keys.lineage is not None) + len(one.keys.bands) + len(one.keys.anchors) for one in part)
        known = await fill(index, _batches(part, _BATCH), (meter, settling))
        kept |= {first + at: known[at] for at in range(-first % every, len(part), every)}
        candidates += sum(len(answer.candidates) for _, answer, _ in known)
        settled += sum(family is not None for _, _, family in known)
        spans_us.append(meter.server_us)
    figures = await _costs(index, server, meter, (documents, keys, empty))
    if documents % (_TENTHS * _SPAN) == 0:
        tenths = spans_us[:: len(spans_us) // _TENTHS]
        figures["server_us_by_tenth"] = [round((b - a) * _TENTHS / documents, 1) for a, b in pairwise(tenths)]
    figures["candidates"] = round(candidates / documents, 1)
    figures |= await _replays(index, list(kept.values()))
    figures["settled"] = round(settled / documents, 3)
    figures["settle_server_us"] = round(settling.server_us / max(settled, 1), 1)
    figures["settle_client_us"] = round(settling.client_us / max(settled, 1), 1)
    await index.close()
    return figures


async def _replays(index: RedisIndex, known: Sequence[Known]) -> Figures:
    """Admit documents again and count those whose decision differs, or whose answer if nothing was decided."""
    wrong = 0
    for one, then, family in known:
        (again,) = await index.admit([one])
        if then.status is Status.UNCHANGED:
            continue
        if family is None:
            wrong += again != replace(then, status=Status.REPLAYED)
        else:
            wrong += again.decision is None or again.decision.family != family
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


async def by_batch(server: Redis, url: str, scheme: Scheme, documents: Sequence[Admission]) -> Figures:
    """Measure server CPU and call times for several batch sizes.

    Each size has its own index. CPU is for one document, times are for one call.
    """
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
    """Compare our index with datasketch on identical texts.

    Both have 25 bands of 5 rows, and each runs on a fresh server. Ours runs with records and without.
    """
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
    """Yield the documents with only the keys that datasketch has, too.

    Of all other fields they keep only what an admission requires.
    """
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
    """Return all figures that the command prints."""
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
    """Run the command and return 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--documents", type=int, default=20_000, metavar="N", help="documents to admit (default 20000)")
    parser.add_argument("--scheme", choices=LABELS, default=DEFAULT_LABEL)
    parser.add_argument(
        "--peer",
        type=int,
        default=2_000,
        metavar="N",
        help="documents for the comparison with datasketch, 0 to skip it",
    )
    parser.add_argument("--json", action="store_true", help="print the JSON object on one line")
    options = parser.parse_args(arguments)
    print(json.dumps(run(options), indent=None if options.json else 1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
