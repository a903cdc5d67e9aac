"""One deployment of the main job on real services, seen from outside: its own topics, group and keys."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from aiokafka.admin import NewTopic

from schemas.codec import decode_event
from schemas.events import Event, Retraction
from schemas.record import Outgoing, Record
from schemas.topics import ALL, DEAD_LETTERS, DOCUMENTS, EVENT_TOPICS, SIGNATURES, Topic
from workers import kafka_offsets, kafka_records, kafka_tools, kafka_topics
from workers.demo import EXAMPLES
from workers.embedded import embedded
from workers.settings import Settings, load
from workers.sources import Item

DOCUMENT_PARTITIONS = 4
LINES = (EXAMPLES / "documents.jsonl").read_bytes().splitlines()
TEXTS = [json.loads(line)["text"] for line in LINES]


@dataclass(frozen=True)
class Deployment:
    """Settings of one deployment, with the folder of its workers' logs."""

    settings: Settings
    environment: dict[str, str]
    logs: Path

    def topic(self, topic: Topic) -> str:
        """Its name in this deployment."""
        return self.settings.topic_prefix + topic.name

    def document(self, name: str, text: str) -> Outgoing:
        """A document of this id, which is its key too."""
        return self.examples([json.dumps({"id": name, "text": text}).encode()])[0]

    def examples(self, lines: Sequence[bytes]) -> list[Outgoing]:
        """Lines of JSON as documents with their ids as keys."""
        return [Outgoing(self.topic(DOCUMENTS), json.loads(line)["id"].encode(), line, []) for line in lines]

    @contextmanager
    def worker(
        self, role: str = "all", program: Sequence[str] = ("workers", "worker"), **changed: str
    ) -> Iterator[subprocess.Popen[bytes]]:
        """A worker process, some variables changed; ended in order, or killed if it does not end."""
        with (self.logs / f"{role}-{time.monotonic_ns()}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", *program, role], env=self.environment | changed, stderr=log, stdout=log
            )
        try:
            yield process
        finally:
            stop(process)

    def run(self, *arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """One command of this deployment, to its end."""
        return subprocess.run(
            [sys.executable, "-m", "workers", *arguments],
            env=self.environment,
            input=given,
            capture_output=True,
            timeout=60,
            check=False,
        )

    async def send(self, records: Sequence[Outgoing]) -> None:
        """Records on their topics, confirmed."""
        async with kafka_records.sender(self.settings, 10.0) as send_all:
            await send_all(records)

    async def read(self, topic: str) -> list[Record]:
        """Every record of a topic."""
        places = await kafka_offsets.partitions(self.settings, [self.settings.topic_prefix + topic], 10.0)
        async with kafka_tools.consumer(self.settings, 10.0) as client:
            return [record async for record in kafka_records.follow(client, places, from_start=True, until_end=True)]

    async def events(self) -> list[Event]:
        """Every event on every topic, repeats included."""
        return [decode_event(record.value or b"") for topic in EVENT_TOPICS for record in await self.read(topic.name)]

    async def named(self) -> set[str]:
        """Ids that relation events name."""
        told = [event for event in await self.events() if not isinstance(event, Retraction)]
        return {side.id for event in told for side in (event.newer, event.older)}

    async def letters(self) -> list[Record]:
        """Every dead letter."""
        return await self.read(DEAD_LETTERS.name)

    async def oracle(self) -> list[Event]:
        """The events of a single process fed the same records one at a time, in order of their time."""
        records = sorted(await self.read(DOCUMENTS.name), key=lambda record: (record.timestamp_ms, record.offset))
        job = embedded(self.settings)
        return [
            event async for outcome in job.outcomes(Item("", record) for record in records) for event in outcome.events
        ]

    async def drained(self, within_seconds: float = 60.0) -> None:
        """Returns when every record of both input topics is acknowledged.

        Raises:
            TimeoutError: It was not within `within_seconds`; the logs are told.
        """
        places = await kafka_offsets.partitions(self.settings, list(map(self.topic, (DOCUMENTS, SIGNATURES))), 10.0)
        async with (
            kafka_tools.admin(self.settings, 10.0) as asking,
            kafka_tools.consumer(self.settings, 10.0) as reading,
        ):

            async def all_acknowledged() -> bool:
                # In this order: what documents add to signatures is there once they are acknowledged.
                known = await kafka_offsets.committed_offsets(asking, self.settings.group, places)
                ends = await reading.end_offsets(places)
                return all(known[place] >= ends[place] for place in places if ends[place])

            try:
                await until(all_acknowledged, within_seconds)
            except TimeoutError:
                logs = "\n".join(log[-3000:] for log in self._logs())
                raise TimeoutError(f"not drained within {within_seconds:g} s\n{logs}") from None

    async def logged(self, text: str) -> bool:
        """Whether a worker has told this."""
        return any(text in log for log in await asyncio.to_thread(self._logs))

    def _logs(self) -> list[str]:
        return [path.read_text() for path in sorted(self.logs.glob("*.log"))]


@asynccontextmanager
async def deployed(kafka: str, redis_url: str, logs: Path, **settings: str) -> AsyncIterator[Deployment]:
    """A fresh deployment with its topics, which end with it; 4 partitions of documents."""
    name = uuid.uuid4().hex[:12]
    given = {
        "NEARSTREAM_KAFKA": kafka,
        "NEARSTREAM_REDIS": redis_url,
        "NEARSTREAM_GROUP": name,
        "NEARSTREAM_NAMESPACE": name,
        "NEARSTREAM_TOPIC_PREFIX": f"{name}.",
        "NEARSTREAM_STATUS": "off",  # of several workers on one machine only one could have the port
        **{f"NEARSTREAM_{key.upper()}": value for key, value in settings.items()},
    }
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("NEARSTREAM_")}
    loaded = load(given)
    async with kafka_tools.admin(loaded, 10.0) as client:
        config = DOCUMENTS.config(loaded.retention_seconds)
        name = loaded.topic_prefix + DOCUMENTS.name
        await client.create_topics([NewTopic(name, DOCUMENT_PARTITIONS, 1, topic_configs=config)])
    await kafka_topics.create_missing(loaded, 1, 10.0)
    try:
        yield Deployment(loaded, {**inherited, **given}, logs)
    finally:
        await _forget(loaded)


async def _forget(settings: Settings) -> None:
    """Deletes the topics, hence the group's offsets; a broker that is gone has taken them along."""
    with suppress(kafka_tools.KafkaUnreachableError):
        async with kafka_tools.admin(settings, 5.0) as client:
            await client.delete_topics([settings.topic_prefix + topic.name for topic in ALL])


def ids(events: Sequence[Event]) -> set[str]:
    """Of the events, repeats once."""
    return {event.event_id for event in events}


def stop(process: subprocess.Popen[bytes], within_seconds: float = 40.0) -> int:
    """Exit code after SIGTERM; after SIGKILL if that was not heard."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(within_seconds)
        except subprocess.TimeoutExpired:
            process.kill()
    return process.wait(10)


async def until(condition: Callable[[], Awaitable[bool]], within_seconds: float) -> None:
    """Returns when the condition holds.

    Raises:
        TimeoutError: It did not within `within_seconds`.
    """
    async with asyncio.timeout(within_seconds):
        while not await condition():
            await asyncio.sleep(0.1)
