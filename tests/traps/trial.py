"""A topic of numbered records on a broker, and the wrong workers that read it."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from aiokafka.admin import NewTopic

from nearstream.schemas.documents.record import ProducerRecord
from nearstream.workers.config.settings import Settings, load
from nearstream.workers.kafka import client as kafka_client
from nearstream.workers.kafka import offsets as kafka_offsets
from nearstream.workers.kafka import records as kafka_records
from tests.devstack.server import LocalServer

QUIET_SECONDS = 6.0
LIMIT_SECONDS = 60.0


@dataclass(frozen=True)
class Trial:
    """A topic of numbered records on a broker, with the group that reads it."""

    broker: LocalServer
    name: str
    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment variables of a worker."""
        named = {"KAFKA": self.broker.address, "GROUP": self.name, "SOURCE": self.name, "SINK": f"{self.name}-out"}
        return os.environ | {f"TRAP_{key}": value for key, value in named.items()}

    async def prepare(self, records: int, partitions: int = 1, out_bytes: int = 10_000) -> None:
        """Create both topics and fill the first.

        The second accepts batches of at most `out_bytes`.
        """
        async with kafka_client.admin(self.settings, 10.0) as client:
            await client.create_topics(
                [
                    NewTopic(self.name, partitions, 1),
                    NewTopic(f"{self.name}-out", 1, 1, topic_configs={"max.message.bytes": str(out_bytes)}),
                ]
            )
        await self.send([b"%d" % number for number in range(records)])

    async def send(self, values: Sequence[bytes]) -> None:
        """Send more records. The key decides on the partition."""
        async with kafka_records.sender(self.settings, 10.0) as send_all:
            await send_all([ProducerRecord(self.name, value, value, []) for value in values])

    async def committed(self) -> int:
        """Return the sum of the group's committed offsets."""
        ends = await kafka_offsets.end_offsets(self.settings, self.name, 10.0)
        return sum(max(at, 0) for at in (await kafka_offsets.committed(self.settings, self.name, ends)).values())

    async def arrived(self) -> int:
        """Return the number of records on the second topic."""
        return sum((await kafka_offsets.end_offsets(self.settings, f"{self.name}-out", 10.0)).values())

    @contextmanager
    def worker(self, kind: str, **variables: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
        """Run a wrong worker and kill it at the end of the block.

        Its second value is the file to which the worker writes the records that it has processed.
        """
        told = self.folder / f"{self.name}-{time.monotonic_ns()}"
        told.touch()
        with (self.folder / "log").open("ab") as log:
            command = [sys.executable, "-m", "tests.traps.wrong", kind]
            environment = self.environment | variables | {"TRAP_DONE": str(told)}
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            yield process, told
        finally:
            process.kill()
            process.wait()

    @property
    def settings(self) -> Settings:
        """Return the settings of our own clients."""
        return load({"NEARSTREAM_KAFKA": self.broker.address, "NEARSTREAM_GROUP": self.name})


def done(told: Path) -> list[int]:
    """Return the numbers of the records that a worker has processed."""
    return [int(line) for line in told.read_bytes().split()]


async def settled(trial: Trial, process: subprocess.Popen[bytes], told: Path) -> None:
    """Wait until nothing has changed for some seconds or the worker has ended."""
    before, since, deadline = (-1, -1), time.monotonic(), time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        now = (len(done(told)), await trial.committed())
        if now != before:
            before, since = now, time.monotonic()
        elif time.monotonic() - since > QUIET_SECONDS and now[0]:
            return
        await asyncio.sleep(0.5)


async def ended(process: subprocess.Popen[bytes], seconds: float) -> str:
    began = time.monotonic()
    while process.poll() is None and time.monotonic() - began < seconds:
        await asyncio.sleep(0.1)
    took = time.monotonic() - began
    return (
        f"still there after {seconds:g} s" if process.poll() is None else f"ended after {took:.1f} s ({process.poll()})"
    )


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(2 * LIMIT_SECONDS):
        while not condition():
            await asyncio.sleep(0.1)
