"""One run: a deployment under load, a fault, and what became of every document."""

import asyncio
import json
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from schemas.record import Outgoing
from schemas.topics import DOCUMENTS
from tests.fault import verify
from tests.fault.corpus import Sent
from tests.fault.observer import Observer, Offsets, observed, recovery_seconds
from tests.fault.oracle import Expected, expected, in_order_of_time
from tests.fault.reading import Read, read
from tests.integration.deployment import Deployment, deployed, stop
from workers.local_redis import redis_server
from workers.local_server import LocalServer, running

WORKERS = 3
KILLS = 3
DRAIN_SECONDS = 120.0
QUIET_SECONDS = 3.0
_FIRST_SHARE = 0.3
_REMOVED = 10
_PORTIONS = 20
ENTRY = "tests.fault.entry"


@dataclass
class Report:
    """What is said of one fault.

    Attributes:
        lost: Documents without outcome, and events missing (I1, I2).
        extra: Events too many (I2).
        restated: Signatures and events told again, over all that were told.
        recovery_seconds: From the end of the fault until each partition that lagged has moved.
        drain_seconds: From the end of the load until everything was acknowledged.
        peak_memory_mb: Of one worker.
        longest_stall_ms: The longest that an event loop was busy with one thing, if over 200.
        exits: Exit codes of the workers.
        wrong: Other counts that have to be 0, by name.
        skipped: Why it was not run.
    """

    fault: str
    documents: int = 0
    events: int = 0
    lost: int = 0
    extra: int = 0
    restated: float = 0.0
    restated_count: int = 0
    steady_per_second: float = 0.0
    recovery_seconds: float | None = None
    drain_seconds: float = 0.0
    peak_memory_mb: int = 0
    longest_stall_ms: int = 0
    exits: list[int] = field(default_factory=list)
    wrong: dict[str, int] = field(default_factory=dict)
    skipped: str = ""

    @property
    def clean(self) -> bool:
        """Nothing lost, nothing invented, every other count 0."""
        return not (self.lost or self.extra or any(self.wrong.values()))


@dataclass
class Run:
    """A deployment with its workers; `load` feeds it, `finish` says what became of it.

    Attributes:
        deployment: Its topics, its group.
        redis: Its own server.
        observer: Looks at the broker all the time.
        documents: What is to be sent.
        report: What is known so far.
        injected: How a traceback begins that the fault is meant to cause.
    """

    deployment: Deployment
    redis: LocalServer
    observer: Observer
    documents: list[Outgoing]
    kills: int
    report: Report
    workers: list["subprocess.Popen[bytes]"]
    resources: AsyncExitStack
    injected: str = ""
    marks: list[tuple[float, str]] = field(default_factory=list)

    def start(self, *parts: str, role: str = "all", entry: str = ENTRY, **changed: str) -> "subprocess.Popen[bytes]":
        """One more worker, with parts replaced by `entry` or variables changed."""
        worker = self.resources.enter_context(self.deployment.worker(role, (entry, *parts), **changed))
        self.workers.append(worker)
        return worker

    def mark(self, what: str) -> None:
        """Notes the moment of an injection."""
        self.marks.append((time.monotonic(), what))

    async def warm_up(self) -> None:
        """The first 30 %, to the end; tells the steady rate."""
        first = int(len(self.documents) * _FIRST_SHARE)
        await self.deployment.send(self.documents[:first])
        await self.observer.drained(DRAIN_SECONDS)
        moving = [sample.at for sample in self.observer.samples if any(at > 0 for at in sample.committed.values())]
        self.report.steady_per_second = first / max(0.5, time.monotonic() - min(moving))

    @asynccontextmanager
    async def load(self) -> AsyncIterator[None]:
        """The rest, at half the steady rate, while the body does its worst."""
        rest = self.documents[int(len(self.documents) * _FIRST_SHARE) :]
        sending = asyncio.create_task(self._send_evenly(rest))
        try:
            yield
            self.mark("end of the fault")
            await sending
        finally:
            sending.cancel()

    async def _send_evenly(self, rest: list[Outgoing]) -> None:
        size = max(1, len(rest) // _PORTIONS)
        pause = 2 * size / self.report.steady_per_second
        for start in range(0, len(rest), size):
            due = time.monotonic() + pause
            await self.deployment.send(rest[start : start + size])
            await asyncio.sleep(max(0.0, due - time.monotonic()))

    async def finish(self) -> Report:
        """Drains, removes some documents, sends copies of them, stops the workers, compares.

        Raises:
            AssertionError: A count is not 0.
        """
        ended, loaded = max((at for at, _ in self.marks), default=0.0), time.monotonic()
        await self._drained()
        self.report.drain_seconds = round(time.monotonic() - loaded, 1)
        await self._remove_some()
        await self._drained(QUIET_SECONDS)
        self.report.exits = [await asyncio.to_thread(stop, worker) for worker in self.workers]
        if ended:
            seconds = recovery_seconds(self.observer.samples, ended)
            self.report.recovery_seconds = None if seconds is None else round(seconds, 1)
        return await self.compare()

    async def compare(self) -> Report:
        """The report on what stands on the topics now."""
        found = await read(self.deployment)
        told = await expected(self.deployment.settings, in_order_of_time(found.documents))
        self._count(found, told)
        if not self.report.clean:
            self._keep(found)
        return self.report

    def rebalances(self) -> int:
        """How often a worker has been given partitions so far."""
        return sum(log.count(" assigned: ") for log in self.logs())

    def logs(self) -> list[str]:
        """What the workers have written so far."""
        return [path.read_text() for path in sorted(self.deployment.logs.glob("*.log"))]

    def _count(self, found: Read, told: Expected) -> None:
        report, samples, logs = self.report, self.observer.samples, self.logs()
        report.documents, report.events = len(found.documents), len(told.events)
        unanswered, missing = verify.unanswered(found, told), verify.missing(found, told)
        report.lost, report.extra = unanswered + missing, verify.surplus(found, told)
        report.restated_count = verify.restated(found)
        report.restated = report.restated_count / max(1, len(found.signed) + len(found.told) - report.restated_count)
        report.peak_memory_mb = max((size for each in samples for size in each.memory.values()), default=0) >> 20
        report.longest_stall_ms = verify.longest_stall_ms(logs)
        report.wrong = {
            "unanswered": unanswered,
            "missing": missing,
            "surplus": report.extra,
            "differing values": verify.differing(found, told),
            "wrong letters": verify.wrong_letters(found, told),
            "fallen commits": verify.fallen_commits(samples),
            "hasty commits": verify.hasty_commits(samples, found, told),
            "named after removal": verify.named_after_removal(found),
            "unbounded": verify.unbounded(samples),
            "unclean lines": verify.unclean_lines(logs, self.injected),
            "full buckets": told.overflows,
        }

    async def _remove_some(self) -> None:
        """Removes documents, waits, sends what resembles them: nobody may name them any more."""
        named = [json.loads(sent.value) for sent in self.documents if sent.value and b'"id"' in sent.value][:_REMOVED]
        topic = self.deployment.settings.topic_prefix + DOCUMENTS.name
        removals = [
            Outgoing(topic, each["id"].encode(), None, [("nearstream-collection", each["collection"].encode())])
            for each in named
        ]
        copies = [
            {"id": f"late-{each['id']}", "text": each["text"], "collection": each["collection"]} for each in named
        ]
        await self.deployment.send(removals)
        await self._drained()
        await self.deployment.send([Outgoing(topic, None, json.dumps(each).encode(), []) for each in copies])

    async def _drained(self, quiet_seconds: float = 0.0) -> None:
        try:
            await self.observer.drained(DRAIN_SECONDS, quiet_seconds)
        except TimeoutError:
            for worker in self.workers:
                if worker.poll() is None:
                    worker.send_signal(signal.SIGUSR1)
            await asyncio.sleep(1)
            logs = "\n".join(log[-5000:] for log in self.logs())
            lag = self.observer.samples[-1].lag if self.observer.samples else "unknown"
            raise TimeoutError(f"not drained within {DRAIN_SECONDS:g} s, lag {lag}\n{logs}") from None

    def _keep(self, found: Read) -> None:
        """What a search for the cause begins with: offsets around each injection, all that was told."""
        folder = self.deployment.logs
        offsets = [
            {"at": each.at, "committed": _plain(each.committed), "ends": _plain(each.ends)}
            for each in self.observer.samples
        ]
        (folder / "offsets.json").write_text(json.dumps({"marks": self.marks, "samples": offsets}))
        told = [(key, record.topic, record.partition, record.offset, record.timestamp_ms) for key, record in found.told]
        signed = [(place, record.partition, record.offset) for place, record in found.signed]
        (folder / "topics.json").write_text(json.dumps({"told": told, "signed": signed}))


def _plain(offsets: Offsets) -> dict[str, int]:
    return {f"{topic} {partition}": offset for (topic, partition), offset in offsets.items()}


@asynccontextmanager
async def run(fault: str, kafka: str, folder: Path, sent: Iterable[Sent], **settings: str) -> AsyncIterator[Run]:
    """A deployment of its own with its own Redis, no worker yet; all of it ends with the block."""
    async with AsyncExitStack() as resources:
        redis = await asyncio.to_thread(resources.enter_context, running(redis_server(folder / "redis")))
        given = {"redis_url": f"redis://{redis.address}/0", **settings}
        deployment = await resources.enter_async_context(deployed(kafka, logs=folder, **given))
        workers: list[subprocess.Popen[bytes]] = []
        pids: Callable[[], list[int]] = lambda: [worker.pid for worker in workers if worker.poll() is None]  # noqa: E731
        observer = await resources.enter_async_context(observed(deployment.settings, pids))
        topic = deployment.settings.topic_prefix + DOCUMENTS.name
        documents = [Outgoing(topic, each.key, each.value, []) for each in sent]
        yield Run(deployment, redis, observer, documents, KILLS, Report(fault), workers, resources)
