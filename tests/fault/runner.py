"""A fault run: a deployment under load, a fault, and the outcome of every document."""

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from aiokafka.errors import KafkaTimeoutError

from nearstream.schemas.documents.record import ProducerRecord
from nearstream.schemas.topics.table import DOCUMENTS
from nearstream.workers.kafka.errors import KafkaUnreachableError
from nearstream.workers.worker.topology import MATCH_BATCH, SIGN_BATCH
from tests.devstack.redis import redis_server
from tests.devstack.server import LocalServer, running
from tests.fault.corpus import Sent, traced
from tests.fault.observer import Observer, observed, recovery_seconds
from tests.fault.oracle import expected, in_order_of_time
from tests.fault.proxy import Proxy
from tests.fault.reading import read
from tests.fault.report import Report, keep
from tests.fault.verify import last_values
from tests.support.deployment import LocalDeployment, deployed, stop, until

DRAIN_SECONDS = 120.0
# `make faults`, which sets DOCUMENTS, measures both. A run beside all other tests waits for the processor.
RECOVERY_SECONDS = 15.0 if "DOCUMENTS" in os.environ else DRAIN_SECONDS
STANDING_SECONDS = 2.0 if "DOCUMENTS" in os.environ else 30.0
LOAD_SECONDS = 600.0 if "DOCUMENTS" in os.environ else 8.0  # in which the load is sent at the latest
NEVER = "600"  # as `stop_seconds`: a worker that does not stop by itself would not end before `stop` gives up
QUIET_SECONDS = 3.0 if "DOCUMENTS" in os.environ else 1.0
ENTRY = "tests.fault.entry"
COMMIT_SECONDS = 0.5
_FIRST_SHARE = 0.3
_REMOVED = 10
_PORTION_SECONDS = 0.5

Worker = subprocess.Popen[bytes]


@dataclass
class Run:
    """A deployment with its workers."""

    deployment: LocalDeployment  # its topics and its group
    redis: LocalServer  # its own server
    documents: list[ProducerRecord]  # the documents to send
    report: Report  # the results so far
    resources: AsyncExitStack
    workers: list[Worker] = field(default_factory=list)  # all workers that were ever started
    _marks: list[tuple[float, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Create the observer, which takes samples of the broker during the whole run."""
        self.observer = Observer(self.deployment.settings, lambda: [worker.pid for worker in self.alive])

    @property
    def alive(self) -> list[Worker]:
        """Return the workers that run."""
        return [worker for worker in self.workers if worker.poll() is None]

    @property
    def topic(self) -> str:
        """Return the name of the documents topic."""
        return self.deployment.settings.topic_prefix + DOCUMENTS.name

    @property
    def first(self) -> int:
        """Return the number of documents that are sent before any fault."""
        return int(len(self.documents) * _FIRST_SHARE)

    def start(self, *parts: str, role: str = "all", entry: str = ENTRY, **changed: str) -> Worker:
        """Start another worker, with parts replaced by `entry` or variables changed."""
        worker = self.resources.enter_context(self.deployment.worker(role, (entry, *parts), **changed))
        self.workers.append(worker)
        return worker

    async def kill(self, times: int, draw: Random) -> None:
        """Kill a worker this often, at random moments, and start another each time."""
        for _ in range(times):
            await asyncio.sleep(draw.uniform(0.2, 2.0))
            victim = draw.choice(self.alive)
            self.mark("kill")
            victim.kill()
            self.start()

    def mark(self, what: str) -> None:
        """Record the time of an injection."""
        self._marks.append((time.monotonic(), what))

    def rebalances(self) -> int:
        """Return how often a worker has got partitions so far."""
        return sum(log.count(" assigned: ") for log in self.logs())

    async def all_joined(self) -> bool:
        """Return whether each worker has got partitions at least once."""
        logs = await asyncio.to_thread(self.logs)
        return sum(" assigned: " in log for log in logs) == len(self.workers)

    def logs(self) -> list[str]:
        """Return the logs of the workers so far."""
        return [path.read_text() for path in sorted(self.deployment.logs.glob("*.log"))]

    def acknowledged(self) -> int:
        """Return the number of documents that the group had acknowledged at the last sample."""
        known = self.observer.samples[-1].committed.items()
        return sum(max(offset, 0) for (topic, _), offset in known if topic == DOCUMENTS.name)

    def waiting(self) -> int:
        """Return the number of unacknowledged records at the last sample."""
        return sum(self.observer.samples[-1].lag.values())

    async def warm_up(self) -> None:
        """Process the first documents and measure the steady rate.

        They are sent once all workers have joined.
        """
        await until(self.all_joined, DRAIN_SECONDS)
        await self.deployment.send(self.documents[: self.first])
        await self.drained()
        moving = [sample.at for sample in self.observer.samples if any(at > 0 for at in sample.committed.values())]
        self.report.steady_per_second = self.first / max(0.5, time.monotonic() - min(moving))

    async def start_behind(self, proxy: Proxy) -> None:
        """Start three workers that reach Redis through a proxy, and process the first documents."""
        for _ in range(3):
            self.start(NEARSTREAM_REDIS=f"redis://127.0.0.1:{proxy.port}/0")
        await self.warm_up()

    @asynccontextmanager
    async def load(self) -> AsyncIterator[None]:
        """Send the other documents at half the steady rate, or faster, while the block injects faults."""
        sending = asyncio.create_task(self._send_evenly(self.documents[self.first :]))
        try:
            yield
            self.mark("end of the fault")
            await sending
        finally:
            sending.cancel()

    async def drained(self, quiet_seconds: float = 0.0) -> None:
        """Wait until everything is acknowledged and no offset has moved for `quiet_seconds`.

        Raises:
            TimeoutError: This did not happen within two minutes. The message contains the lag, the logs and all stacks.
        """
        try:
            await self.observer.drained(DRAIN_SECONDS, quiet_seconds)
        except TimeoutError:
            for worker in self.alive:
                worker.send_signal(signal.SIGUSR1)
            await asyncio.sleep(1)
            lag = self.observer.samples[-1].lag if self.observer.samples else "unknown"
            logs = "\n".join(log[-5000:] for log in self.logs())
            raise TimeoutError(f"not drained within {DRAIN_SECONDS:g} s, lag {lag}\n{logs}") from None

    async def stop(self) -> list[int]:
        """Stop all running workers at once and return the exit codes of all workers."""
        return await asyncio.gather(*(asyncio.to_thread(stop, worker) for worker in self.workers))

    async def finish(self) -> Report:
        """Finish the run and compare its outcome with the expected one.

        It drains, removes documents and sends copies of them, and stops the workers.
        """
        began = time.monotonic()
        await self.drained()
        self.report.drain_seconds = round(time.monotonic() - began, 1)
        if self._marks:
            self.report.recovery_seconds = recovery_seconds(self.observer.samples, self._marks[-1][0])
        await self._remove_some()
        await self.drained(QUIET_SECONDS)
        self.report.exits = await self.stop()
        return await self.compare()

    async def ends_well(self, *codes: int, allowed: Collection[str] = ()) -> Report:
        """Finish the run. Nothing may be wrong but what is allowed, and workers exit with 0 or one of these codes."""
        report = await self.finish()
        assert {name for name, count in report.wrong.items() if count} <= set(allowed), report.verdict
        assert set(report.exits) <= {0, *codes}
        return report

    async def compare(self) -> Report:
        """Return the report on the current records of the topics."""
        found = await read(self.deployment)
        told = await expected(
            self.deployment.settings, in_order_of_time(found.documents), last_values(found.events).items()
        )
        self.report.count(found, told, self.observer.samples, self.logs())
        keep(self.deployment.logs, found, self.observer.samples, self._marks)
        return self.report

    async def _send_evenly(self, documents: Sequence[ProducerRecord]) -> None:
        rate = max(self.report.steady_per_second / 2, len(documents) / LOAD_SECONDS)
        size = max(1, round(rate * _PORTION_SECONDS))
        for start in range(0, len(documents), size):
            due = time.monotonic() + _PORTION_SECONDS
            await self._send(documents[start : start + size])
            await asyncio.sleep(max(0.0, due - time.monotonic()))

    async def _send(self, documents: Sequence[ProducerRecord]) -> None:
        """Send documents, again and again until the broker confirms them.

        After an outage some may be on the topic twice, and then the oracle reads them twice too.
        """
        while True:
            try:
                return await self.deployment.send(documents)
            except (KafkaUnreachableError, KafkaTimeoutError):
                continue

    async def _remove_some(self) -> None:
        """Remove documents, wait, then send copies of them.

        No event may name a removed document after that.
        """
        named = [json.loads(sent.value) for sent in self.documents if sent.value and b'"id": "doc' in sent.value]
        for make in (_removal, _copy):
            await self.deployment.send([make(self.topic, fields) for fields in named[:_REMOVED]])
            await self.drained()


def in_flight(fault_run: Run) -> float:
    """Return the most records that all workers can have read but not acknowledged.

    A commit may be half a second late.
    """
    return len(fault_run.workers) * (SIGN_BATCH + MATCH_BATCH) + fault_run.report.steady_per_second * COMMIT_SECONDS


async def stop_in_turn(fault_run: Run) -> None:
    """Stop each worker and start another one, one after the other."""
    await until(fault_run.all_joined, DRAIN_SECONDS)
    for worker in fault_run.alive:
        assert await asyncio.to_thread(stop, worker) == 0
        fault_run.start()


async def joined(fault_run: Run, assignments: int) -> bool:
    """Return whether workers have got partitions at least this often."""
    return await asyncio.to_thread(fault_run.rebalances) >= assignments


async def logged(fault_run: Run, text: str) -> bool:
    """Return whether a worker has logged this text."""
    return any(text in log for log in await asyncio.to_thread(fault_run.logs))


def _removal(topic: str, fields: dict[str, str]) -> ProducerRecord:
    return ProducerRecord(
        topic, fields["id"].encode(), None, [("nearstream-collection", fields["collection"].encode())]
    )


def _copy(topic: str, fields: dict[str, str]) -> ProducerRecord:
    copy = {"id": f"late-{fields['id']}", "text": fields["text"], "collection": fields["collection"]}
    (record,) = traced(topic, [Sent(None, json.dumps(copy).encode())])
    return record


@asynccontextmanager
async def run(fault: str, kafka: str, folder: Path, sent: Sequence[Sent], **settings: str) -> AsyncIterator[Run]:
    """Start a run with its own deployment and Redis, but without workers.

    Everything is stopped at the end of the block.
    """
    async with AsyncExitStack() as resources:
        redis = await asyncio.to_thread(resources.enter_context, running(redis_server(folder / "redis")))
        given = {"redis_url": f"redis://{redis.address}/0", **settings}
        deployment = await resources.enter_async_context(deployed(kafka, logs=folder, **given))
        fault_run = Run(deployment, redis, [], Report(fault), resources)
        fault_run.documents = traced(fault_run.topic, sent)
        await resources.enter_async_context(observed(fault_run.observer))
        yield fault_run
