"""Run loops on preloaded documents and measure them from outside."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
from redis import Redis

from benchmarks.stream import latency
from benchmarks.stream.deployed import BenchmarkDeployment, cpu_seconds, deployment, described, log_progress
from benchmarks.stream.figures import OURS, Figures, Moment, TooFewDocumentsError, cost, times_of
from benchmarks.stream.reporting import Report
from benchmarks.stream.texts import Record
from nearstream.schemas.topics.table import DOCUMENTS, SIGNATURES, VERDICTS
from tests.devstack.kafka import kafka_server
from tests.devstack.redis import redis_server
from tests.devstack.server import LocalServer, running
from tests.devstack.stack import LocalStack

_LIMIT_SECONDS = 3_600.0
_FIRST_POLL_SECONDS = 0.005
_POLL_SECONDS = 0.1
_MAX_MEMORY = "8gb"
_FEWEST_TIMES = 200  # documents whose times have a 99th percentile


@dataclass(frozen=True)
class Process:
    """A process of `benchmarks.stream.loops`."""

    popen: subprocess.Popen[str]  # the process
    log: Path  # what it writes to stderr

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
    """Our own servers."""

    kafka: LocalServer  # the broker
    redis: LocalServer  # the Redis
    folder: Path  # for data and logs

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


@dataclass(frozen=True)
class Run:
    """How a loop runs."""

    workers: int  # number of its processes
    seconds: float  # after how long it ends, unless it has done all documents before


async def measured(servers: Servers, loop: str, records: Sequence[Record], run: Run, times: int = 1) -> Figures:
    """Return what a loop costs on these documents, which it finds in its topic several times.

    Redis is empty at the start.
    """
    deployed, empty = await _preloaded(servers, records, times)
    with _processes(servers, deployed, loop, run.workers) as started:
        return await _measured(servers, started, loop, (times * len(records), run.seconds), empty)


async def measured_worker(
    servers: Servers, records: Sequence[Record], further: Sequence[Record], run: Run, loads: Sequence[float]
) -> tuple[Figures, list[Figures]]:
    """Return what a worker costs, and the times from produce to event of further documents, for each load.

    These arrive at shares of the rate that was measured before, for as long as the run lasts. Their CPU includes what
    the broker does for the producer and the consumer of this benchmark.
    """
    deployed, empty = await _preloaded(servers, records, 1)
    with _processes(servers, deployed, OURS, run.workers) as started:
        figures = await _measured(servers, started, OURS, (len(records), _LIMIT_SECONDS), empty)
        await deployed.drained(DOCUMENTS.name)
        await deployed.drained(SIGNATURES.name)
        found, left = [], list(further)
        for at, load in enumerate(loads):
            rate = load * figures["documents_per_second"]
            wanted, share = max(_FEWEST_TIMES, round(rate * run.seconds)), len(left) // (len(loads) - at)
            some = left[: min(wanted, share)]
            left = left[len(some) :]
            found.append({"load": load, **await _latency(servers, deployed, started, some, rate)})
    return figures, found


async def _latency(
    servers: Servers, deployed: BenchmarkDeployment, started: Sequence[Process], records: Sequence[Record], rate: float
) -> Figures:
    topics = deployed.topic(DOCUMENTS.name), deployed.topic(VERDICTS.name)
    before = await _moment(servers, started)
    ways = await latency.ways(servers.kafka.address, topics, records, rate)
    await asyncio.sleep(_POLL_SECONDS)  # until the last verdicts, which have arrived, are confirmed too
    after = await _moment(servers, started)
    return {
        "documents": len(records),
        "documents_per_second": round(rate),
        "cpu_us": cost(before, after)["cpu_us"],
        **times_of(ways, [hop for report in after.reports for hop in report.hops]),
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


async def _measured(
    servers: Servers, started: Sequence[Process], loop: str, until: tuple[int, float], empty: int
) -> Figures:
    """Measure from the first acknowledgement of each process to the last one of all.

    Args:
        servers: The servers.
        started: The processes.
        loop: Their name.
        until: After how many documents and after how many seconds the measurement ends.
        empty: Bytes of the empty Redis.

    Raises:
        TooFewDocumentsError: All documents were done before each process had some of them.
        TimeoutError: The documents were not done in time.
    """
    documents, seconds = until
    longest = 0.0
    async with asyncio.timeout(_LIMIT_SECONDS):
        first = await _moment(servers, started)
        while not all(report.offsets for report in first.reports):
            if first.documents >= documents:
                raise TooFewDocumentsError(f"{loop}: one process did all: expected more documents")
            await asyncio.sleep(_FIRST_POLL_SECONDS)
            first = await _moment(servers, started)
        last, ends_at = await _moment(servers, started), time.monotonic() + seconds
        while last.documents < documents and (last.documents <= first.documents or time.monotonic() < ends_at):
            await asyncio.sleep(_POLL_SECONDS)
            last = await _moment(servers, started)
            longest = max(longest, *(report.longest_step for report in last.reports))
    with Redis.from_url(servers.redis_url) as redis:
        stored = round((_bytes(redis) - empty) / last.documents)
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
