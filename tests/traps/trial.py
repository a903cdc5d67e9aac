"""A topic of numbered records on a broker, with a wrong worker that reads it."""

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

from schemas.record import Outgoing
from workers import kafka_offsets, kafka_records, kafka_tools
from workers.local_server import LocalServer
from workers.settings import Settings, load

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
        """What the worker is told."""
        named = {"KAFKA": self.broker.address, "GROUP": self.name, "SOURCE": self.name, "SINK": f"{self.name}-out"}
        return os.environ | {f"TRAP_{key}": value for key, value in named.items()}

    async def prepare(self, records: int, partitions: int = 1, out_bytes: int = 10_000) -> None:
        """Makes both topics, fills the first; the second takes batches of `out_bytes` at most."""
        async with kafka_tools.admin(self.settings, 10.0) as client:
            await client.create_topics(
                [
                    NewTopic(self.name, partitions, 1),
                    NewTopic(f"{self.name}-out", 1, 1, topic_configs={"max.message.bytes": str(out_bytes)}),
                ]
            )
        await self.send([b"%d" % number for number in range(records)])

    async def send(self, values: Sequence[bytes]) -> None:
        """More records; the key decides on the partition."""
        async with kafka_records.sender(self.settings, 10.0) as send_all:
            await send_all([Outgoing(self.name, value, value, []) for value in values])

    async def committed(self) -> int:
        """Sum of the group's offsets."""
        ends = await kafka_offsets.end_offsets(self.settings, self.name, 10.0)
        return sum(max(at, 0) for at in (await kafka_offsets.committed(self.settings, self.name, ends)).values())

    async def arrived(self) -> int:
        """Records on the second topic."""
        return sum((await kafka_offsets.end_offsets(self.settings, f"{self.name}-out", 10.0)).values())

    @contextmanager
    def worker(self, kind: str, **variables: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
        """A wrong worker with the file of what it did; killed at the end."""
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
        """How our own clients reach the broker."""
        return load({"NEARSTREAM_KAFKA": self.broker.address, "NEARSTREAM_GROUP": self.name})


def done(told: Path) -> list[int]:
    """Numbers of the records that a worker has done."""
    return [int(line) for line in told.read_bytes().split()]


async def settled(trial: Trial, process: subprocess.Popen[bytes], told: Path) -> None:
    """Returns when nothing has changed for some seconds, or the worker has ended."""
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
