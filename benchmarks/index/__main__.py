"""Measure what a document costs in the index on a server.

    python -m benchmarks.index [--stream unique|crawl|mail|revisions ...] [--documents N] [--slots N] [--scheme S]
                               [--json]

Each stream of documents goes through a matcher to an empty index on a server of its own, in the largest
batches of a worker. A batch has documents of one partition, and is covered in all slots as a worker does it.
Microseconds are CPU times: of the server, and of this process, which asks it and compares. Signing is left out. Bytes
are those of the data set. Prints one JSON object.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from redis import Redis

from benchmarks.index.growth import Figures, Meter, documents_of
from benchmarks.speed.measure import positive
from benchmarks.stream.deployed import described
from benchmarks.stream.texts import STREAMS
from nearstream.schemas.documents.document import Document
from nearstream.schemas.documents.signature import Signature
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.matching.arriving import Arrival
from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.signing.scheme import DEFAULT_LABEL, LABELS, Scheme, preset
from nearstream.streams.signing.signer import Signer
from nearstream.streams.store.limits import IndexLimits
from nearstream.streams.store.store import Position
from nearstream.workers.redis.index.index import RedisIndex
from nearstream.workers.redis.server.address import IndexAddress
from nearstream.workers.worker.topology import MATCH_BATCH
from tests.devstack.redis import redis_server
from tests.devstack.server import running

KEY = HashKey.public()
_MAX_MEMORY = "8gb"


async def measured(
    server: Redis, url: str, scheme: Scheme, arriving: Sequence[Document], slots: int = 1, namespace: str = "bench"
) -> Figures:
    """Match documents through an empty index, and return what each of them cost."""
    signer = Signer(scheme, KEY)
    signatures = [signer.sign(document) for document in arriving]
    limits = IndexLimits(documents=max(len(signatures), 1_000))
    address = IndexAddress(url, namespace, scheme.name, limits, slots=slots)
    index = await RedisIndex.open(address, partitions=slots, may_create=True)
    matcher, meter, empty = Matcher(index.store(), scheme, KEY), Meter(server), _bytes(server)
    try:
        meter.start()
        for number, batch in enumerate(_batches(signatures)):
            partition, first = number % slots, number // slots * MATCH_BATCH
            await matcher.match_all(
                [
                    Arrival(signature.document_key, signature, Position(partition, first + at))
                    for at, signature in enumerate(batch)
                ]
            )
            await index.cover([Position(partition, first + len(batch) - 1)])
        meter.stop()
    finally:
        await index.close()
    n = max(len(signatures), 1)
    return {
        "documents": len(signatures),
        "server_us": round(meter.server_us / n, 1),
        "worker_us": round(meter.client_us / n, 1),
        "per_second": round(n / meter.seconds),
        "bytes": round((_bytes(server) - empty) / n),
        "comparisons": round(matcher.counts.candidates["looked_up"] / n, 2),
        "full_buckets": matcher.counts.full_buckets,
    }


def _batches(signatures: Sequence[Signature]) -> Iterator[Sequence[Signature]]:
    for start in range(0, len(signatures), MATCH_BATCH):
        yield signatures[start : start + MATCH_BATCH]


def _bytes(server: Redis) -> int:
    return int(server.info("memory")["used_memory_dataset"])


@contextmanager
def _server(folder: Path) -> Iterator[tuple[Redis, str]]:
    with running(redis_server(folder)) as server:
        url = f"redis://{server.address}/0"
        with Redis.from_url(url) as client:
            client.config_set("maxmemory", _MAX_MEMORY)
            yield client, url


def run(options: argparse.Namespace) -> Figures:
    """Return all figures that the command prints."""
    scheme = preset(options.scheme, KEY)
    figures: Figures = {"scheme": options.scheme, "slots": options.slots}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for stream in options.stream:
            batches = documents_of(stream)
            arriving = list(islice((document for batch in batches for document in batch), options.documents))
            with _server(folder / stream) as (server, url):
                figures["server"] = described(server)
                figures[stream] = asyncio.run(measured(server, url, scheme, arriving, options.slots))
    return figures


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--stream", choices=STREAMS, nargs="+", default=tuple(STREAMS), help="default: all of them")
    parser.add_argument(
        "--documents", type=positive, default=10_000, metavar="N", help="documents of a stream (default 10000)"
    )
    parser.add_argument("--slots", type=positive, default=1, metavar="N", help="slots of the index (default 1)")
    parser.add_argument("--scheme", choices=LABELS, default=DEFAULT_LABEL)
    parser.add_argument("--json", action="store_true", help="print the JSON object on one line")
    options = parser.parse_args(arguments)
    print(json.dumps(run(options), indent=None if options.json else 1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
