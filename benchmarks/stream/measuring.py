"""Run loops on preloaded documents and measure them from outside."""

import asyncio
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
from redis import Redis

from benchmarks.stream import latency
from benchmarks.stream.figures import OURS, Figures, Moment, TooFewDocumentsError, cost
from benchmarks.stream.reporting import Report
from benchmarks.stream.texts import Record
from benchmarks.workers.deployed import BenchmarkDeployment, cpu_seconds, deployment, described, log_progress
from nearstream.schemas.topics import DOCUMENTS, SIGNATURES, VERDICTS
from tests.devstack.kafka import kafka_server
from tests.devstack.redis import redis_server
from tests.devstack.server import LocalServer, running
from tests.devstack.stack import LocalStack

_LIMIT_SECONDS = 3_600.0
_FIRST_POLL_SECONDS = 0.005
_POLL_SECONDS = 0.1
_MAX_MEMORY = "8gb"


@dataclass(frozen=True)
class Process:
    """A process of `benchmarks.stream.loops`.

    Attributes:
        popen: The process.
        log: What it writes to stderr.
    """

    popen: subprocess.Popen[str]
    log: Path

    def report(self) -> Report:
        """Ask for a report.

        Raises:
            RuntimeError: The process has ended.
        """
        told = ""
        if self.popen.stdin is not None and self.popen.stdout is not None and self.popen.poll() is None:
            self.popen.stdin.write("\n")
            self.popen.stdin.flush()
            told = self.popen.stdout.readline()
        if not told:
            raise RuntimeError(f"the loop has ended: {self.log.read_text(errors='replace')[-2000:]}")
        return msgspec.json.decode(told, type=Report, strict=False)


@contextmanager
def process(deployed: BenchmarkDeployment, loop: str, log: Path) -> Iterator[Process]:
    """Run a loop, and stop it at the end of the block."""
    with log.open("w") as errors:
        started = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-m", "benchmarks.stream.loops", loop],
            env=deployed.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    try:
        yield Process(started, log)
    finally:
        started.terminate()
        started.communicate(timeout=60)


@dataclass(frozen=True)
class Servers:
    """Our own servers.

    Attributes:
        kafka: The broker.
        redis: The Redis.
        folder: For data and logs.
    """

    kafka: LocalServer
    redis: LocalServer
    folder: Path

    @property
    def stack(self) -> LocalStack:
        """The addresses."""
        return LocalStack(self.kafka.address, self.redis_url, self.kafka, self.redis)

    @property
    def redis_url(self) -> str:
        """The address of the Redis."""
        return f"redis://{self.redis.address}/0"

    @property
    def redis_version(self) -> str:
        """The version of the Redis, with its memory allocator."""
        with Redis.from_url(self.redis_url) as redis:
            return described(redis)

    def cpu(self) -> dict[str, float]:
        """Return the CPU seconds of each server."""
        servers = {"redis": self.redis.pid, "broker": self.kafka.pid}
        return {name: cpu_seconds(pid) for name, pid in servers.items() if pid is not None}


@contextmanager
def servers(folder: Path) -> Iterator[Servers]:
    """Start a Kafka and a Redis, and stop them at the end of the block."""
    with (
        running(redis_server(folder / "redis")) as redis,
        # The optimizing compiler of a broker that has just started takes more than a core for minutes.
        running(kafka_server(folder / "kafka")) as kafka,
    ):
        found = Servers(kafka, redis, folder)
        with Redis.from_url(found.redis_url) as client:
            client.config_set("maxmemory", _MAX_MEMORY)
        yield found


async def measured(servers: Servers, loop: str, records: Sequence[Record], workers: int, times: int) -> Figures:
    """Return what a loop costs on these documents, which it finds in its topic several times.

    Redis is empty at the start.
    """
    deployed, empty = await _preloaded(servers, records, times)
    with _processes(servers, deployed, loop, workers) as started:
        return await _measured(servers, started, loop, times * len(records), empty)


async def measured_worker(
    servers: Servers, records: Sequence[Record], further: Sequence[Record], workers: int, load: float
) -> tuple[Figures, Figures]:
    """Return what a worker costs, and the times from produce to event of further documents.

    These arrive at a share of the rate that was measured before, `load`. Their CPU includes what the broker does for
    the producer and the consumer of this benchmark.
    """
    deployed, empty = await _preloaded(servers, records, 1)
    with _processes(servers, deployed, OURS, workers) as started:
        figures = await _measured(servers, started, OURS, len(records), empty)
        await deployed.drained(DOCUMENTS.name)
        await deployed.drained(SIGNATURES.name)
        rate = load * figures["documents_per_second"]
        topics = deployed.topic(DOCUMENTS.name), deployed.topic(VERDICTS.name)
        before = await _moment(servers, started)
        waits = await latency.waits(servers.kafka.address, topics, further, rate)
        spent = cost(before, await _moment(servers, started))
        cuts = statistics.quantiles(waits, n=100)
    return figures, {
        "documents": len(further),
        "load": load,
        "cpu_us": spent["cpu_us"],
        "documents_per_second": round(rate),
        "p50": round(cuts[49], 1),
        "p99": round(cuts[98], 1),
    }


async def _preloaded(servers: Servers, records: Sequence[Record], times: int) -> tuple[BenchmarkDeployment, int]:
    """Return a deployment with documents in its topic, and the bytes of the empty Redis."""
    with Redis.from_url(servers.redis_url) as redis:
        redis.execute_command("FLUSHALL", "SYNC")  # else memory is freed during the measurement
        empty = _bytes(redis)
    deployed = await deployment(servers.stack)
    for _ in range(times):
        await deployed.send_keyed((record.key.encode(), record.value) for record in records)
    return deployed, empty


async def _measured(servers: Servers, started: Sequence[Process], loop: str, documents: int, empty: int) -> Figures:
    """Measure from the first acknowledgement of each process to the last one of all.

    Raises:
        TooFewDocumentsError: All documents were done before each process had some of them.
        TimeoutError: The documents were not done in time.
    """
    longest = 0.0
    async with asyncio.timeout(_LIMIT_SECONDS):
        first = await _moment(servers, started)
        while not all(report.offsets for report in first.reports):
            if first.documents >= documents:
                raise TooFewDocumentsError(f"{loop}: one process did all: expected more documents")
            await asyncio.sleep(_FIRST_POLL_SECONDS)
            first = await _moment(servers, started)
        last = await _moment(servers, started)
        while last.documents < documents:
            await asyncio.sleep(_POLL_SECONDS)
            last = await _moment(servers, started)
            longest = max(longest, *(report.longest_step for report in last.reports))
    with Redis.from_url(servers.redis_url) as redis:
        stored = round((_bytes(redis) - empty) / documents)
    figures = {**cost(first, last), "longest_step_ms": round(1e3 * longest, 1) or None, "redis_bytes": stored}
    log_progress(f"{loop}: {figures['documents_per_second']:,} documents/s, us of CPU {json.dumps(figures['cpu_us'])}")
    return figures


@contextmanager
def _processes(servers: Servers, deployed: BenchmarkDeployment, loop: str, count: int) -> Iterator[list[Process]]:
    if count == 0:
        yield []
        return
    log = servers.folder / f"{loop}-{count}.log"
    with process(deployed, loop, log) as one, _processes(servers, deployed, loop, count - 1) as others:
        yield [one, *others]


async def _moment(servers: Servers, processes: Sequence[Process]) -> Moment:
    reports = [await asyncio.to_thread(each.report) for each in processes]
    return Moment(reports, servers.cpu())


def _bytes(redis: Redis) -> int:
    """Return the memory of a server without the buffers of its clients and of its append-only file."""
    memory = redis.info("memory")
    return int(memory["used_memory"] - memory["mem_clients_normal"] - memory["mem_aof_buffer"])


def machine() -> str:
    """Return the number of cores that this process may use."""
    return f"{len(os.sched_getaffinity(0))} cores"
