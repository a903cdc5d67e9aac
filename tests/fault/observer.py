"""Observe the broker and the workers from outside, five times a second."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from nearstream.schemas.topics.table import ALL, DOCUMENTS, SIGNATURES
from nearstream.workers.config.settings import Settings
from nearstream.workers.kafka import client as kafka_client
from nearstream.workers.kafka.errors import KafkaError, KafkaUnreachableError

INTERVAL_SECONDS = 0.2
_ANSWER_SECONDS = 5.0

Offsets = dict[tuple[str, int], int]
"""By topic, without its prefix, and partition."""


@dataclass(frozen=True)
class Sample:
    """One observation of the broker and the workers.

    Commits are read before end offsets, so every acknowledged record is below these end offsets.
    """

    at: float  # monotonic seconds
    committed: Offsets  # offsets of the group on both inputs
    ends: Offsets  # offsets after the last record of every topic
    memory: dict[int, int]  # resident bytes by process id
    files: dict[int, int]  # open files by process id

    @property
    def lag(self) -> dict[tuple[str, int], int]:
        """Return the unacknowledged records per partition that has any."""
        behind = {place: self.ends[place] - max(offset, 0) for place, offset in self.committed.items()}
        return {place: count for place, count in behind.items() if count}

    def covers(self, other: "Sample") -> bool:
        """Return whether this sample contains all partitions of the other."""
        return self.committed.keys() >= other.committed.keys() and self.ends.keys() >= other.ends.keys()


@dataclass
class Observer:
    """The samples of one run. `pids` returns the workers that run now."""

    settings: Settings
    pids: Callable[[], Iterable[int]]
    samples: list[Sample] = field(default_factory=list)

    async def drained(self, within_seconds: float, quiet_seconds: float = 0.0) -> None:
        """Wait until everything is acknowledged and no offset has moved for `quiet_seconds`.

        Raises:
            TimeoutError: This did not happen within `within_seconds`.
        """
        since = time.monotonic()
        async with asyncio.timeout(within_seconds):
            while not self._still(since, quiet_seconds):
                await asyncio.sleep(INTERVAL_SECONDS / 2)

    def _still(self, since: float, quiet_seconds: float) -> bool:
        last = next((sample for sample in reversed(self.samples) if sample.at > since), None)
        if last is None or last.lag or last.at - since < quiet_seconds:
            return False
        window = [sample for sample in self.samples if sample.at >= last.at - quiet_seconds]
        return all(sample.ends == last.ends and not sample.lag for sample in window)

    async def look(self) -> None:
        """Take samples until cancelled, except while the broker is away."""
        while True:
            try:
                await self._look_at_one_connection()
            except (KafkaError, KafkaUnreachableError, TimeoutError):
                await asyncio.sleep(INTERVAL_SECONDS)

    async def _look_at_one_connection(self) -> None:
        async with (
            kafka_client.admin(self.settings, _ANSWER_SECONDS) as admin,
            kafka_client.consumer(self.settings, _ANSWER_SECONDS) as consumer,
        ):
            while True:
                async with asyncio.timeout(_ANSWER_SECONDS):
                    parts = await kafka_client.describe(admin, [self.settings.topic_prefix + each.name for each in ALL])
                    if len(parts) == len(ALL):  # a restarted broker or a new topic may take a moment
                        sample = await self._sample(admin, consumer, parts)
                        if not self.samples or sample.covers(self.samples[-1]):
                            self.samples.append(sample)
                await asyncio.sleep(INTERVAL_SECONDS)

    async def _sample(
        self, admin: AIOKafkaAdminClient, consumer: AIOKafkaConsumer, parts: dict[str, list[int]]
    ) -> Sample:
        places = [TopicPartition(name, part) for name in parts for part in parts[name]]
        read = [place for place in places if place.topic.endswith((DOCUMENTS.name, SIGNATURES.name))]
        known = await admin.list_consumer_group_offsets(self.settings.group, partitions=read)
        prefix, pids = self.settings.topic_prefix, list(self.pids())
        return Sample(
            time.monotonic(),
            _named({place: offset.offset for place, offset in known.items()}, prefix),
            _named(await consumer.end_offsets(places), prefix),
            {pid: _resident_bytes(pid) for pid in pids},
            {pid: _open_files(pid) for pid in pids},
        )


@asynccontextmanager
async def observed(observer: Observer) -> AsyncIterator[None]:
    """Let the observer take samples until the end of the block."""
    looking = asyncio.create_task(observer.look())
    try:
        yield
    finally:
        looking.cancel()
        with suppress(asyncio.CancelledError):
            await looking


def recovery_seconds(samples: Iterable[Sample], ended: float) -> float | None:
    """Return the time from the end of a fault until each lagging partition has moved.

    Only partitions that lagged at the end of the fault count. The result is None if one of them never moved.
    """
    after = [sample for sample in samples if sample.at >= ended]
    if not after:
        return None
    waiting = {place: after[0].committed[place] for place in after[0].lag}
    for sample in after:
        waiting = {place: offset for place, offset in waiting.items() if sample.committed[place] <= offset}
        if not waiting:
            return sample.at - ended
    return None


def standing_seconds(samples: Iterable[Sample]) -> float:
    """Return the longest time that a partition with unread records did not move."""
    longest, since = 0.0, {}
    for sample in samples:
        standing = {(place, sample.committed[place]) for place in sample.lag}
        since = {each: since.get(each, sample.at) for each in standing}
        longest = max([longest, *(sample.at - at for at in since.values())])
    return longest


def _named(offsets: dict[TopicPartition, int], prefix: str) -> Offsets:
    return {(place.topic.removeprefix(prefix), place.partition): offset for place, offset in offsets.items()}


def _resident_bytes(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")), 0)


def _open_files(pid: int) -> int:
    try:
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))
    except OSError:
        return 0
