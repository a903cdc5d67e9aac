"""A meter of CPU, and datasketch on Redis."""

import time
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from redis import Redis

from benchmarks.index.texts import NOW, text
from nearstream.schemas.documents.document import Document
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.signing.scheme import Scheme
from nearstream.streams.signing.signer import Signer

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


def peer(server: Redis, url: str, scheme: Scheme, count: int) -> Figures:
    """Measure the index of datasketch on Redis.

    It has as many bands and rows as the scheme. Each document is queried and inserted.
    """
    host, port = url.removeprefix("redis://").split("/")[0].split(":")
    store = {"type": "redis", "basename": b"peer", "redis": {"host": host, "port": int(port)}}
    rows = scheme.bands.rows
    kinds = import_module("datasketch")
    lsh = kinds.MinHashLSH(num_perm=scheme.sketch.slots, params=(scheme.bands.bands, rows), storage_config=store)
    signer = Signer(scheme, HashKey.public())
    sketches = (_slots(signer, number) for number in range(count))
    hashes = [kinds.MinHash(scheme.sketch.slots, hashvalues=each, scheme="legacy") for each in sketches]
    empty, meter = int(server.info("memory")["used_memory_dataset"]), Meter(server)
    meter.start()
    for number, each in enumerate(hashes):
        lsh.query(each)
        lsh.insert(f"page-{number:012}", each)
    meter.stop()
    return {
        "documents": count,
        "bytes": round((int(server.info("memory")["used_memory_dataset"]) - empty) / count),
        "server_us": round(meter.server_us / count, 1),
        "worker_us": round(meter.client_us / count, 1),
        "per_second": round(count / meter.seconds),
    }


def _slots(signer: Signer, number: int) -> NDArray[np.uint64]:
    sketch = signer.sign(Document(id="peer", text=text(number), observed_at=NOW)).sketch
    return np.frombuffer(sketch, dtype="<u4").astype(np.uint64)
