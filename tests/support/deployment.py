"""A deployment of the main job on real services, with its own topics, group and keys."""

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
from dataclasses import dataclass, replace
from pathlib import Path

from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import GroupCoordinatorNotAvailableError

from nearstream.schemas.documents.record import ConsumerRecord, ProducerRecord
from nearstream.schemas.topics.codec import decode_event
from nearstream.schemas.topics.table import ALL, DEAD_LETTERS, DOCUMENTS, RELATION_TOPICS, SIGNATURES, VERDICTS, Topic
from nearstream.schemas.verdicts.events import PairEvent, Retraction
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.matching.family import FamilyFacts
from nearstream.workers.cli.scan import EXAMPLES
from nearstream.workers.config.settings import Settings, load
from nearstream.workers.kafka import client as kafka_client
from nearstream.workers.kafka import errors as kafka_errors
from nearstream.workers.kafka import offsets as kafka_offsets
from nearstream.workers.kafka import records as kafka_records
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis.index.index import RedisIndex
from nearstream.workers.redis.reading.stats import families
from tests.support.forking import finished, started

DOCUMENT_PARTITIONS = 4
PATIENT_SECONDS = 150.0  # in which even a busy machine does what is waited for
LINES = (EXAMPLES / "documents.jsonl").read_bytes().splitlines()
TEXTS = [json.loads(line)["text"] for line in LINES]


@dataclass(frozen=True)
class LocalDeployment:
    """Settings of one deployment, with the folder of its workers' logs."""

    settings: Settings
    environment: dict[str, str]
    logs: Path

    def changed(self, **settings: str) -> "LocalDeployment":
        """Return a deployment in which these settings differ."""
        environment = self.environment | {f"NEARSTREAM_{name.upper()}": text for name, text in settings.items()}
        ours = {name: text for name, text in environment.items() if name.startswith("NEARSTREAM_")}
        return replace(self, settings=load(ours), environment=environment)

    def topic(self, topic: Topic) -> str:
        """Return the name of a topic in this deployment."""
        return self.settings.topic_prefix + topic.name

    def document(self, name: str, text: str) -> ProducerRecord:
        """Return a record of a document whose id is also its record key."""
        return self.examples([json.dumps({"id": name, "text": text}).encode()])[0]

    def examples(self, lines: Sequence[bytes]) -> list[ProducerRecord]:
        """Return lines of JSON as records of documents with their ids as keys."""
        return [ProducerRecord(self.topic(DOCUMENTS), json.loads(line)["id"].encode(), line, []) for line in lines]

    @contextmanager
    def worker(
        self,
        role: str = "all",
        program: Sequence[str] = ("nearstream", "worker"),
        python: str = sys.executable,
        **changed: str,
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Run a worker process, with some environment variables changed.

        At the end of the block it is stopped with SIGTERM, or killed if it does not end.
        """
        with (self.logs / f"{role}-{time.monotonic_ns()}.log").open("wb") as log:
            process = started([python, "-m", *program, role], self.environment | changed, stdout=log, stderr=log)
        try:
            yield process
        finally:
            stop(process)

    def run(self, *arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Run a command of this deployment to its end."""
        return finished([sys.executable, "-m", "nearstream", *arguments], self.environment, given)

    async def send(self, records: Sequence[ProducerRecord]) -> None:
        """Send records to their topics and wait until they are confirmed."""
        async with kafka_records.sender(self.settings, PATIENT_SECONDS) as send_all:
            await send_all(records)

    async def read(self, *topics: str) -> list[ConsumerRecord]:
        """Return every record of these topics, read by one client."""
        names = [self.settings.topic_prefix + topic for topic in topics]
        places = await kafka_offsets.partitions(self.settings, names, PATIENT_SECONDS)
        # A fetch at the end of a partition waits no longer than this on the broker.
        async with kafka_client.consumer(self.settings, PATIENT_SECONDS, fetch_wait_ms=1) as client:
            return [record async for record in kafka_records.follow(client, places, since_ms=0, until_end=True)]

    async def events(self) -> list[PairEvent | Retraction]:
        """Return every event on every topic of relations, including repeats."""
        told = [decode_event(record.value or b"") for record in await self.read(*(t.name for t in RELATION_TOPICS))]
        return [event for event in told if not isinstance(event, DocumentVerdict)]

    async def verdicts(self) -> list[DocumentVerdict]:
        """Return every verdict, including repeats."""
        told = [decode_event(record.value or b"") for record in await self.read(VERDICTS.name)]
        return [event for event in told if isinstance(event, DocumentVerdict)]

    async def families(self) -> list[FamilyFacts]:
        """Return all families with a second member."""
        index = await RedisIndex.open_to_read(Deployment.of(self.settings).index_address())
        try:
            return [facts async for facts in families(index)]
        finally:
            await index.close()

    def given(self) -> dict[str, str]:
        """Return the settings by their names in lower case."""
        prefix = "NEARSTREAM_"
        ours = {name: text for name, text in self.environment.items() if name.startswith(prefix)}
        return {name.removeprefix(prefix).lower(): text for name, text in ours.items()}

    async def named(self) -> set[str]:
        """Return the document ids that relation events name."""
        told = [event for event in await self.events() if not isinstance(event, Retraction)]
        return {side.id for event in told for side in (event.newer, event.older)}

    async def letters(self) -> list[ConsumerRecord]:
        """Return every dead letter."""
        return await self.read(DEAD_LETTERS.name)

    async def drained(self, within_seconds: float = PATIENT_SECONDS) -> None:
        """Wait until every record of both input topics is acknowledged.

        Raises:
            TimeoutError: Some were not acknowledged within `within_seconds`. The message contains the logs.
        """
        places = await kafka_offsets.partitions(
            self.settings, list(map(self.topic, (DOCUMENTS, SIGNATURES))), PATIENT_SECONDS
        )
        async with (
            kafka_client.admin(self.settings, PATIENT_SECONDS) as asking,
            kafka_client.consumer(self.settings, PATIENT_SECONDS) as reading,
        ):

            async def all_acknowledged() -> bool:
                # Ask for commits first: once a document is acknowledged, its signature is included in the end offsets.
                try:
                    known = await kafka_offsets.committed_offsets(asking, self.settings.group, places)
                except GroupCoordinatorNotAvailableError:  # a busy broker has none for a moment
                    return False
                ends = await reading.end_offsets(places)
                return all(known[place] >= ends[place] for place in places if ends[place])

            try:
                await until(all_acknowledged, within_seconds)
            except TimeoutError:
                logs = "\n".join(log[-3000:] for log in self.log_texts())
                raise TimeoutError(f"not drained within {within_seconds:g} s\n{logs}") from None

    async def delete_topics(self, topics: Sequence[Topic]) -> None:
        """Delete topics, and wait until the broker shows that they are gone."""
        names = [self.topic(topic) for topic in topics]
        async with kafka_client.admin(self.settings, PATIENT_SECONDS) as client:
            await client.delete_topics(names)

            async def are_gone() -> bool:
                return not await kafka_client.describe(client, names)

            await until(are_gone)

    async def rewind(self) -> None:
        """Let the group, which has no worker now, begin again with the oldest document."""
        places = await kafka_offsets.partitions(self.settings, [self.topic(DOCUMENTS)], PATIENT_SECONDS)
        client = AIOKafkaConsumer(
            bootstrap_servers=self.settings.kafka, group_id=self.settings.group, enable_auto_commit=False
        )
        await client.start()
        try:
            client.assign(places)
            await client.commit(dict.fromkeys(places, 0))
        finally:
            await client.stop()

    async def logged(self, text: str) -> bool:
        """Return whether a worker has logged this text."""
        return any(text in log for log in await asyncio.to_thread(self.log_texts))

    def log_texts(self) -> list[str]:
        """Return the text of each worker's log."""
        return [path.read_text() for path in sorted(self.logs.glob("*.log"))]


@asynccontextmanager
async def deployed(kafka: str, redis_url: str, logs: Path, **settings: str) -> AsyncIterator[LocalDeployment]:
    """Create a new deployment, and delete its topics at the end of the block.

    The documents topic has 4 partitions.
    """
    name = uuid.uuid4().hex[:12]
    given = {
        "NEARSTREAM_KAFKA": kafka,
        "NEARSTREAM_REDIS": redis_url,
        "NEARSTREAM_GROUP": name,
        "NEARSTREAM_NAMESPACE": name,
        "NEARSTREAM_TOPIC_PREFIX": f"{name}.",
        "NEARSTREAM_STATUS": "off",  # only one of several workers on a machine could open the port
        **{f"NEARSTREAM_{key.upper()}": value for key, value in settings.items()},
    }
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("NEARSTREAM_")}
    loaded = load(given)
    async with kafka_client.admin(loaded, PATIENT_SECONDS) as client:
        await client.create_topics([_new_topic(loaded, topic) for topic in ALL])
        names = [loaded.topic_prefix + topic.name for topic in ALL]

        async def are_shown() -> bool:
            return len(await kafka_client.describe(client, names)) == len(names)

        await until(are_shown, every_seconds=0.02)
    try:
        yield LocalDeployment(loaded, {**inherited, **given}, logs)
    finally:
        await _forget(loaded)


def _new_topic(settings: Settings, topic: Topic) -> NewTopic:
    """Return a topic as `nearstream topics create` makes it, but for the partitions of documents."""
    partitions = DOCUMENT_PARTITIONS if topic is DOCUMENTS else topic.partitions
    config = topic.config(settings.retention_seconds)
    return NewTopic(settings.topic_prefix + topic.name, partitions, 1, topic_configs=config)


async def _forget(settings: Settings) -> None:
    """Delete the topics and thereby the group's offsets.

    If the broker has already ended, its topics are gone too. While it starts, it does not know its controller yet.
    """
    with suppress(kafka_errors.KafkaUnreachableError):
        async with kafka_client.admin(settings, 5.0) as client:
            await until(lambda: _knows_controller(client))
            await client.delete_topics([settings.topic_prefix + topic.name for topic in ALL])


async def _knows_controller(client: AIOKafkaAdminClient) -> bool:
    await client._client.force_metadata_update()
    return client._client.cluster.controller is not None


def ids(events: Sequence[PairEvent | Retraction | DocumentVerdict]) -> set[str]:
    """Return the ids of the events, each once."""
    return {event.event_id for event in events}


def stop(process: subprocess.Popen[bytes], within_seconds: float = 40.0) -> int:
    """Stop a process and return its exit code.

    It gets SIGTERM, then SIGKILL if it does not end in time.
    """
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(within_seconds)
        except subprocess.TimeoutExpired:
            process.kill()
    return process.wait(10)


async def until(
    condition: Callable[[], Awaitable[bool]], within_seconds: float = PATIENT_SECONDS, every_seconds: float = 0.1
) -> None:
    """Wait until the condition holds, and look so often.

    Raises:
        TimeoutError: The condition did not hold within `within_seconds`.
    """
    async with asyncio.timeout(within_seconds):
        while not await condition():
            await asyncio.sleep(every_seconds)
