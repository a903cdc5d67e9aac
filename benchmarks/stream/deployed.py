"""Deployments of their own on servers that a benchmark has started."""

import asyncio
import os
import subprocess
import sys
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from redis import Redis

from nearstream.schemas.documents.record import ProducerRecord
from nearstream.schemas.topics.table import DOCUMENTS
from nearstream.workers.config.settings import Settings, load
from nearstream.workers.kafka import offsets as kafka_offsets
from nearstream.workers.kafka import records as kafka_records
from nearstream.workers.kafka import topics as kafka_topics
from tests.devstack.stack import LocalStack

_TICKS = os.sysconf("SC_CLK_TCK")
_LIMIT_SECONDS = 300.0


@dataclass(frozen=True)
class BenchmarkDeployment:
    """A deployment with its own topics, consumer group and index namespace."""

    settings: Settings
    environment: dict[str, str]

    def topic(self, name: str) -> str:
        """Return the name of a topic with the prefix of this deployment."""
        return self.settings.topic_prefix + name

    @contextmanager
    def process(self, *command: str) -> Iterator[int]:
        """Run a Python process of this deployment, yield its pid, terminate it."""
        started = subprocess.Popen(  # noqa: S603 - our own modules
            [sys.executable, "-m", *command], env=self.environment, stderr=subprocess.DEVNULL
        )
        try:
            yield started.pid
        finally:
            started.terminate()
            started.wait(60)

    async def send(self, values: Sequence[bytes]) -> None:
        """Send values as records to the documents topic, each with its number as key."""
        await self.send_keyed((b"%d" % at, value) for at, value in enumerate(values))

    async def send_keyed(self, documents: Iterable[tuple[bytes, bytes]]) -> None:
        """Send keys and values as records to the documents topic."""
        async with kafka_records.sender(self.settings, 10.0) as send_all:
            await send_all(ProducerRecord(self.topic(DOCUMENTS.name), key, value, []) for key, value in documents)

    async def drained(self, topic: str) -> None:
        """Wait until the group has committed all of a topic.

        Also waits for the first record of the topic.
        """
        async with asyncio.timeout(_LIMIT_SECONDS):
            while True:
                ends = await kafka_offsets.end_offsets(self.settings, self.topic(topic), 10.0)
                known = await kafka_offsets.committed(self.settings, self.topic(topic), ends)
                if sum(ends.values()) and all(known[part] >= end for part, end in ends.items() if end):
                    return
                await asyncio.sleep(0.05)


async def deployment(stack: LocalStack) -> BenchmarkDeployment:
    """Create a new deployment with its topics."""
    name = uuid.uuid4().hex[:12]
    given = {"KAFKA": stack.kafka, "REDIS": stack.redis, "GROUP": name, "NAMESPACE": name, "TOPIC_PREFIX": f"{name}."}
    variables = {f"NEARSTREAM_{key}": value for key, value in given.items()} | {"NEARSTREAM_STATUS": "off"}
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("NEARSTREAM_")}
    settings = load(variables)
    await kafka_topics.create_missing(settings, 1, 10.0)
    return BenchmarkDeployment(settings, inherited | variables)


def cpu_seconds(pid: int) -> float:
    """Return user and system time of a process so far, on Linux."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def described(server: Redis) -> str:
    """Return the version of a server and its memory allocator, on which much of its speed depends."""
    facts = server.info()
    name = "Valkey" if "valkey_version" in facts else "Redis"
    return f"{name} {facts.get('valkey_version') or facts['redis_version']} with {facts['mem_allocator']}"


def log_progress(line: str) -> None:
    """Write a line of progress to stderr, because stdout is for JSON."""
    sys.stderr.write(f"{line}\n")
