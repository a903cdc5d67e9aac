"""Runs each trap on a broker of its own, and tells what became of the records: `python -m tests.traps [NAME...]`."""

import asyncio
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from aiokafka.admin import NewTopic

from schemas.record import Outgoing
from workers import kafka_offsets, kafka_records, kafka_tools
from workers.local_server import LocalServer
from workers.local_stack import local_stack
from workers.settings import Settings, load

RECORDS = 26
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

    async def prepare(self, records: int, partitions: int = 1) -> None:
        """Makes both topics, fills the first; the second takes no record above 10 KB."""
        settings = self._settings()
        async with kafka_tools.admin(settings, 10.0) as client:
            await client.create_topics(
                [
                    NewTopic(self.name, partitions, 1),
                    NewTopic(f"{self.name}-out", 1, 1, topic_configs={"max.message.bytes": "10000"}),
                ]
            )
        await self.send([b"%d" % number for number in range(records)])

    async def send(self, values: Sequence[bytes]) -> None:
        """More records; the key decides on the partition."""
        async with kafka_records.sender(self._settings(), 10.0) as send_all:
            await send_all([Outgoing(self.name, value, value, []) for value in values])

    async def committed(self) -> int:
        """Sum of the group's offsets."""
        ends = await kafka_offsets.end_offsets(self._settings(), self.name, 10.0)
        return sum(max(at, 0) for at in (await kafka_offsets.committed(self._settings(), self.name, ends)).values())

    async def arrived(self) -> int:
        """Records on the second topic."""
        return sum((await kafka_offsets.end_offsets(self._settings(), f"{self.name}-out", 10.0)).values())

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

    def _settings(self) -> Settings:
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


async def loses(trial: Trial, kind: str, **variables: str) -> str:
    """What is below the committed offset though nobody did it."""
    await trial.prepare(RECORDS)
    with trial.worker(kind, **variables) as (process, told):
        await settled(trial, process, told)
        code = process.poll()
    committed = await trial.committed()
    lost = sorted(set(range(committed)) - set(done(told)))
    return f"committed {committed} of {RECORDS}, lost {len(lost)} {lost}, exit {code}"


async def unheard(trial: Trial) -> str:
    """T4: the committed offset against what arrived."""
    told = await loses(trial, "unawaited")
    return f"{told.split(',')[0]}, arrived {await trial.arrived()}"


async def deaf(trial: Trial) -> str:
    """T6: how long SIGTERM is not obeyed."""
    await trial.prepare(RECORDS)
    with trial.worker("never_acknowledged") as (process, told):
        await settled(trial, process, told)
        process.send_signal(signal.SIGTERM)
        return await _ended(process, 30.0)


async def joined(trial: Trial) -> str:
    """T7: what is done twice when a second worker joins."""
    count = 20_000
    await trial.prepare(count, partitions=2)
    with trial.worker("awaited") as (_, first):
        await _until(lambda: len(done(first)) > count // 20)
        with trial.worker("awaited") as (_, second):
            await _until(lambda: len({*done(first), *done(second)}) == count)
            both = done(first) + done(second)
    return f"{len(both) - len(set(both))} of {count} done twice, {count - len(set(both))} never"


async def left(trial: Trial) -> str:
    """T8: what is done after a pause beyond the poll interval."""
    await trial.prepare(200)
    with trial.worker("paused", TRAP_POLL_INTERVAL="15", TRAP_PAUSE="25") as (process, told):
        await _until(lambda: bool(done(told)))
        await asyncio.sleep(60)
        return f"60 s after the pause {len(set(done(told)))} of 200 done, exit {process.poll()}"


async def stopped_early(trial: Trial) -> str:
    """T10: how long a stop takes while the worker joins."""
    await trial.prepare(RECORDS)
    took = []
    for wait in (1.5, 2.0, 2.5, 3.0):
        with trial.worker("async_for") as (process, _):
            await asyncio.sleep(wait)
            process.send_signal(signal.SIGTERM)
            took.append(await _ended(process, 60.0))
    return "; ".join(took)


async def undecoded(trial: Trial) -> str:
    """T11: what becomes of a record that Faust cannot decode."""
    await trial.prepare(0)
    await trial.send([b"1", b"x", b"3"])
    with trial.worker("undecodable") as (process, told):
        await settled(trial, process, told)
    return f"committed {await trial.committed()} of 3, done {done(told)}"


async def away(trial: Trial) -> str:
    """T12: a broker away for longer than the request timeout, without idempotence."""
    await trial.prepare(3000)
    with trial.worker("awaited", TRAP_REQUEST_TIMEOUT="12", TRAP_CRASHING="1") as (process, told):
        await _until(lambda: len(done(told)) > 100)
        await asyncio.to_thread(trial.broker.pause)
        ended = await _ended(process, 40.0)
        await asyncio.to_thread(trial.broker.resume)
    await asyncio.to_thread(trial.broker.restart)
    committed = await trial.committed()
    lost = set(range(committed)) - set(done(told))
    return f"away 40 s at a timeout of 12 s: {ended}, lost {len(lost)}"


TRAPS: dict[str, Callable[[Trial], Awaitable[str]]] = {
    "T1": lambda trial: loses(trial, "async_for"),
    "T2": lambda trial: loses(trial, "take"),
    "T3": lambda trial: loses(trial, "take", TRAP_CRASHING="1"),
    "T4": unheard,
    "T5": lambda trial: loses(trial, "gap"),
    "T6": deaf,
    "T7": joined,
    "T8": left,
    "T10": stopped_early,
    "T11": undecoded,
    "T12": away,
    "T19": lambda trial: loses(trial, "noack_take", TRAP_CRASHING="1"),
}


async def main(names: Sequence[str]) -> None:
    """One line for each trap."""
    with TemporaryDirectory(prefix="traps-") as folder:
        async with local_stack(redis=False) as stack:
            if stack.kafka_server is None:
                raise SystemExit("unset NEARSTREAM_KAFKA: a trap hurts its broker")
            for name in names or TRAPS:
                trial = Trial(stack.kafka_server, f"{name.lower()}-{uuid.uuid4().hex[:8]}", Path(folder))
                print(f"{name:<4} {await TRAPS[name](trial)}", flush=True)  # noqa: T201


async def _ended(process: subprocess.Popen[bytes], seconds: float) -> str:
    began = time.monotonic()
    while process.poll() is None and time.monotonic() - began < seconds:
        await asyncio.sleep(0.1)
    took = time.monotonic() - began
    return (
        f"still there after {seconds:g} s" if process.poll() is None else f"ended after {took:.1f} s ({process.poll()})"
    )


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(2 * LIMIT_SECONDS):
        while not condition():
            await asyncio.sleep(0.1)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
