"""Measure how the cost of a document grows with the index.

    python -m benchmarks.index.growth [--documents N] [--stream unique|crawl|mail|revisions]

Starts its own Redis. Two indexes on it hold the first 10,000 and the first N documents of a stream. The same further
documents then go to both, batch by batch in turn, so that whatever slows the machine slows both alike. Costs are the
CPU times of the server and of a matcher in this process. Signing, Kafka and delivery cost the same whatever the index
holds, and are left out. Every 10,000 documents have sites, campaigns and files of their own. Prints one JSON object.
The exit code is 1 if the gate is missed.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from redis import Redis

from benchmarks.index.datasketch_peer import Figures, Meter
from benchmarks.speed.gates import at_most, failed
from benchmarks.speed.measure import positive
from benchmarks.stream.prose import Prose, sources
from benchmarks.stream.texts import STREAMS
from benchmarks.workers.deployed import log_progress
from nearstream.schemas.document import Document
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.index.contract import IndexLimits
from nearstream.streams.matcher import Arrival, Matcher
from nearstream.streams.signing.scheme import DEFAULT_LABEL, preset
from nearstream.streams.signing.signer import Signer
from nearstream.workers.redis_index.address import IndexAddress
from nearstream.workers.redis_index.index import RedisIndex
from tests.devstack.redis import redis_server
from tests.devstack.server import running

FEWER = 10_000
MOST_GROWTH = 1.2
_BATCH = 16
_TURNS = 200  # further batches, which are measured
_MAX_MEMORY = "16gb"
_NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Measured:
    """An index and what documents cost in it.

    Attributes:
        matcher: Matches documents through this index.
        meter: CPU times of the server and of the matcher.
        commands: Microseconds that the server counts for each command.
    """

    matcher: Matcher
    meter: Meter
    commands: Counter[str] = field(default_factory=Counter)

    async def match(self, arrivals: Sequence[Arrival]) -> None:
        """Match documents and add up what they cost."""
        before = _commands_us(self.meter.server)
        self.meter.start()
        await self.matcher.match_all(arrivals)
        self.meter.stop()
        self.commands.update(_commands_us(self.meter.server) - before)

    def figures(self) -> Figures:
        """Return what a measured document cost."""
        documents = _TURNS * _BATCH
        server, client = self.meter.server_us / documents, self.meter.client_us / documents
        compared = self.matcher.counts.candidates["looked_up"] / self.matcher.counts.statuses.total()
        return {
            "documents": self.matcher.counts.statuses.total() - documents,
            "us": {"server": round(server, 1), "matcher": round(client, 1), "both": round(server + client, 1)},
            "command_us": {name: round(us / documents, 1) for name, us in self.commands.most_common(6)},
            "comparisons": round(compared, 2),
        }


def arrivals(stream: str, signer: Signer) -> Iterator[list[Arrival]]:
    """Yield the documents of a stream in batches, without end."""
    prose, seed = Prose(sources(None), 1), 0
    while True:
        seed += 1
        records = STREAMS[stream](prose, FEWER, seed)
        for first in range(0, FEWER, _BATCH):
            signed = [
                signer.sign(Document(id=f"{seed}/{record.key}", text=record.text, observed_at=_NOW))
                for record in records[first : first + _BATCH]
            ]
            yield [Arrival(signature.document_key, signature) for signature in signed]


async def growth(server: Redis, url: str, stream: str, documents: int) -> Figures:
    """Return what a document costs in a small index and in a large one."""
    key = HashKey.public()
    scheme = preset(DEFAULT_LABEL, key)

    async def opened(name: str) -> Measured:
        address = IndexAddress(url, name, scheme.name, scheme.key_fingerprint, IndexLimits())
        index = await RedisIndex.open(address, may_create=True)
        return Measured(Matcher(index, scheme, key), Meter(server))

    small, large = await opened("small"), await opened("large")
    batches = arrivals(stream, Signer(scheme, key))
    await _fill(small, large, batches, documents)
    for turn in range(_TURNS):
        batch = next(batches)
        for each in (small, large) if turn % 2 else (large, small):
            await each.match(batch)
    found = {"small": small.figures(), "large": large.figures()}
    ratio = found["large"]["us"]["both"] / found["small"]["us"]["both"]
    return {"stream": stream, **found, "gates": {"us, large / small": at_most([ratio], MOST_GROWTH)}}


async def _fill(small: Measured, large: Measured, batches: Iterator[Sequence[Arrival]], documents: int) -> None:
    """Fill one index with the first documents and the other one with all."""
    for done in range(0, documents, _BATCH):
        batch = next(batches)
        await large.matcher.match_all(batch)
        if done < FEWER:
            await small.matcher.match_all(batch)
        if done % FEWER == 0:
            log_progress(f"{done:,} documents in the large index")


def main() -> int:
    """Print one JSON object and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=positive, default=500_000, metavar="N", help="documents of the large index")
    parser.add_argument("--stream", choices=STREAMS, default="unique")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, running(redis_server(Path(folder))) as started:
        url = f"redis://{started.address}/0"
        with Redis.from_url(url) as server:
            server.config_set("maxmemory", _MAX_MEMORY)
            found = asyncio.run(growth(server, url, chosen.stream, chosen.documents))
    sys.stdout.write(json.dumps(found, indent=2) + "\n")
    return int(failed(found["gates"]))


def _commands_us(server: Redis) -> Counter[str]:
    return Counter({name.removeprefix("cmdstat_"): each["usec"] for name, each in server.info("commandstats").items()})


if __name__ == "__main__":
    sys.exit(main())
