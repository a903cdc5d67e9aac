"""Measure how the cost of a document grows with the index.

    python -m benchmarks.index.growth [--documents N] [--stream unique|crawl|mail|revisions]

Starts two Redis servers. One gets the first 10,000 documents of a stream, the other one the first N. The same further
documents then go to both, batch by batch in turn, so that whatever slows the machine slows both alike. Costs are the
CPU times of the server and of this process, which signs and matches. Kafka costs the same whatever the index holds, and
is left out. Every 10,000 documents have sites, campaigns and files of their own. Prints one JSON object. The exit code
is 1 if the gate is missed.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from redis import Redis

from benchmarks.speed.gates import at_most, failed
from benchmarks.stream.deployed import described, log_progress
from benchmarks.stream.prose import Prose, sources
from benchmarks.stream.texts import STREAMS
from nearstream.schemas.documents.document import Document
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.matching.arriving import Arrival
from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.signing.scheme import DEFAULT_LABEL, preset
from nearstream.streams.signing.signer import Signer
from nearstream.streams.store.limits import IndexLimits
from nearstream.workers.redis.index.index import RedisIndex
from nearstream.workers.redis.server.address import IndexAddress
from tests.devstack.redis import redis_server
from tests.devstack.server import running

FEWER = 10_000
MOST_GROWTH = 1.2
_BATCH = 32
_TURNS = 100  # further batches, which are measured
_MAX_MEMORY = "8gb"
_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)

Figures = dict[str, Any]  # Any: a tree of numbers as in JSON


@dataclass
class Meter:
    """CPU time of a server and this process between `start` and `stop`.

    The times of several such spans are added.
    """

    server: Redis
    server_us: float = 0
    client_us: float = 0
    seconds: float = 0
    _began: tuple[float, float, float] = (0, 0, 0)

    def start(self) -> None:
        """Begin a span."""
        self._began = self._server_us(), time.process_time(), time.perf_counter()

    def stop(self) -> None:
        """End a span and add its times."""
        server, client, clock = self._began
        self.seconds += time.perf_counter() - clock
        self.client_us += (time.process_time() - client) * 1e6
        self.server_us += self._server_us() - server

    def _server_us(self) -> float:
        cpu = self.server.info("cpu")
        return 1e6 * (float(cpu["used_cpu_user_main_thread"]) + float(cpu["used_cpu_sys_main_thread"]))


@dataclass
class Measured:
    """An index, and what the documents cost that are measured."""

    index: RedisIndex  # the index
    signer: Signer  # signs the documents
    matcher: Matcher  # matches them through the index
    meter: Meter  # CPU times of the server and of this process
    documents: int = 0  # number of documents before those that are measured
    compared: int = 0  # how many earlier documents were compared with them
    # Microseconds that the server counts for each command. FCALL includes the commands that it calls.
    command_us: Counter[str] = field(default_factory=Counter)

    @classmethod
    async def open(cls, server: Redis, url: str, namespace: str) -> "Measured":
        """Open an empty index."""
        key = HashKey.public()
        scheme = preset(DEFAULT_LABEL, key)
        address = IndexAddress(url, namespace, scheme.name, IndexLimits())
        index = await RedisIndex.open(address, partitions=1, may_create=True)
        return cls(index, Signer(scheme, key), Matcher(index.store(), scheme, key), Meter(server))

    async def match(self, documents: Sequence[Document]) -> None:
        """Match documents."""
        signatures = [self.signer.sign(document) for document in documents]
        await self.matcher.match_all([Arrival(signature.document_key, signature) for signature in signatures])
        self.documents += len(documents)

    async def measure(self, documents: Sequence[Document]) -> None:
        """Match documents and add up what they cost."""
        compared, before = self.matcher.counts.candidates["looked_up"], _command_us(self.meter.server)
        self.meter.start()
        await self.match(documents)
        self.meter.stop()
        self.command_us.update(_command_us(self.meter.server) - before)
        self.compared += self.matcher.counts.candidates["looked_up"] - compared

    def figures(self) -> Figures:
        """Return what a measured document cost."""
        count = _TURNS * _BATCH
        server, client = self.meter.server_us / count, self.meter.client_us / count
        return {
            "documents": self.documents - count,
            "us": {
                "server": round(server, 1),
                "signing and matching": round(client, 1),
                "all": round(server + client, 1),
            },
            "command_us": {name: round(us / count, 1) for name, us in self.command_us.most_common(6)},
            "comparisons": round(self.compared / count, 2),
        }


def documents_of(stream: str) -> Iterator[list[Document]]:
    """Yield the documents of a stream in batches, without end."""
    prose, part, at = Prose(sources(None), 1), 0, _BEGIN
    batch: list[Document] = []
    while True:
        part += 1
        for record in STREAMS[stream](prose, FEWER, part):
            at += timedelta(seconds=1)
            url = record.fields.get("url")
            batch.append(Document(id=f"{part}/{record.key}", text=record.text, url=url, observed_at=at))
            if len(batch) == _BATCH:
                yield batch
                batch = []


async def growth(small: Measured, large: Measured, stream: str, documents: int) -> Figures:
    """Return what a document costs in a small index and in a large one, which are empty at first."""
    batches = documents_of(stream)
    while large.documents < documents:
        batch = next(batches)
        await large.match(batch)
        if small.documents < FEWER:
            await small.match(batch)
        if large.documents // FEWER > (large.documents - len(batch)) // FEWER:
            log_progress(f"{large.documents:,} documents in the large index")
    for turn in range(_TURNS):
        batch = next(batches)
        for each in (small, large) if turn % 2 else (large, small):
            await each.measure(batch)
    found = {"small": small.figures(), "large": large.figures()}
    ratio = found["large"]["us"]["all"] / found["small"]["us"]["all"]
    server = described(large.meter.server)
    return {"stream": stream, "server": server, **found, "gates": {"us, large / small": at_most([ratio], MOST_GROWTH)}}


async def run(servers: Sequence[tuple[Redis, str]], stream: str, documents: int) -> Figures:
    """Open an index on each of two servers, and measure both."""
    small, large = [await Measured.open(server, url, "growth") for server, url in servers]
    try:
        return await growth(small, large, stream, documents)
    finally:
        await small.index.close()
        await large.index.close()


def main() -> int:
    """Print one JSON object and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--documents", type=_more, default=500_000, metavar="N", help="documents of the large index, default 500000"
    )
    parser.add_argument("--stream", choices=STREAMS, default="unique")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as opened:
        servers = []
        for name in ("small", "large"):
            url = f"redis://{opened.enter_context(running(redis_server(Path(folder) / name))).address}/0"
            server = opened.enter_context(Redis.from_url(url))
            server.config_set("maxmemory", _MAX_MEMORY)
            servers.append((server, url))
        found = asyncio.run(run(servers, chosen.stream, chosen.documents))
    sys.stdout.write(json.dumps(found, indent=2) + "\n")
    return int(failed(found["gates"]))


def _command_us(server: Redis) -> Counter[str]:
    stats = server.info("commandstats").items()
    return Counter({name.removeprefix("cmdstat_"): each["usec"] for name, each in stats if name != "cmdstat_info"})


def _more(text: str) -> int:
    """Parse a number of documents.

    Raises:
        ArgumentTypeError: The large index would not be larger than the small one.
        ValueError: It is no number.
    """
    number = int(text)
    if number <= FEWER:
        raise argparse.ArgumentTypeError(f"expected more than {FEWER}")
    return number


if __name__ == "__main__":
    sys.exit(main())
