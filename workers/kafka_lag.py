"""How far behind the group is."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from schemas.topics import DOCUMENTS, SIGNATURES
from workers.kafka_offsets import committed_offsets
from workers.kafka_tools import KafkaError, KafkaUnreachableError, admin, consumer, describe, retriable
from workers.settings import Settings

ANSWER_SECONDS = 10.0
# Of each partition; a batch that is larger comes alone.
_FETCH_BYTES = 16 * 1024


@dataclass(frozen=True)
class PartitionLag:
    """What the group has not acknowledged of one partition.

    Attributes:
        topic: With the deployment's prefix.
        partition: Its number.
        committed: Offset that the group reads next; -1: it has never committed.
        begin: Offset of the oldest record that is still held.
        end: Offset after the newest record.
        seconds: Age of the oldest unacknowledged record by its own timestamp; None: no record waits.
    """

    topic: str
    partition: int
    committed: int
    begin: int
    end: int
    seconds: float | None

    @property
    def records(self) -> int:
        """Offsets between the group and the end; a compacted topic holds fewer records."""
        return 0 if self.seconds is None else self.end - max(self.committed, self.begin)

    def as_json(self) -> dict[str, object]:
        """A row as commands and the status port tell it; null: never committed, no record waits."""
        return {
            "topic": self.topic,
            "partition": self.partition,
            "committed": None if self.committed < 0 else self.committed,
            "end": self.end,
            "records": self.records,
            "seconds": None if self.seconds is None else round(self.seconds, 1),
        }


LagReader = Callable[[], Awaitable[list[PartitionLag]]]


@asynccontextmanager
async def lag_reader(settings: Settings, wait_seconds: float) -> AsyncIterator[LagReader]:
    """A function that asks the broker for the lag of `documents` and `signatures`, over connections that stay.

    It raises KafkaUnreachableError when there is no answer within `ANSWER_SECONDS`, and may then be called again.

    Raises:
        KafkaUnreachableError: No broker answered within `wait_seconds`.
    """
    async with (
        admin(settings, wait_seconds) as asking,
        consumer(settings, wait_seconds, fetch_bytes=_FETCH_BYTES) as reading,
    ):
        yield partial(_group_lag, settings, asking, reading)


async def _group_lag(settings: Settings, asking: AIOKafkaAdminClient, reading: AIOKafkaConsumer) -> list[PartitionLag]:
    """Rows in order of topic and partition."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            found = await describe(asking, [settings.topic_prefix + topic.name for topic in (DOCUMENTS, SIGNATURES)])
            places = [TopicPartition(topic, part) for topic, parts in sorted(found.items()) for part in parts]
            return await _lags(settings, asking, reading, places)
    except TimeoutError:
        raise KafkaUnreachableError(f"no Kafka at {settings.kafka} within {ANSWER_SECONDS:g} s") from None
    except KafkaError as error:
        if not retriable(error):
            raise
        raise KafkaUnreachableError(f"group {settings.group} cannot be asked for: {error}") from error


async def _lags(
    settings: Settings, asking: AIOKafkaAdminClient, reading: AIOKafkaConsumer, places: Sequence[TopicPartition]
) -> list[PartitionLag]:
    if not places:
        return []
    # In this order: what is committed meanwhile makes a lag too large, never negative.
    known = await committed_offsets(asking, settings.group, places)
    begins = await reading.beginning_offsets(places)
    ends = await reading.end_offsets(places)
    open_spans = {place: (max(known[place], begins[place]), ends[place]) for place in places}
    ages = await _ages(reading, {place: span for place, span in open_spans.items() if span[0] < span[1]})
    return [
        PartitionLag(place.topic, place.partition, known[place], begins[place], ends[place], ages.get(place))
        for place in places
    ]


async def _ages(
    reading: AIOKafkaConsumer, spans: Mapping[TopicPartition, tuple[int, int]]
) -> dict[TopicPartition, float]:
    """Seconds since the first record of each span was made; none where a span holds only markers or gaps."""
    ages: dict[TopicPartition, float] = {}
    waiting = set(spans)
    if not spans:
        return ages
    reading.assign(list(spans))
    for place, (start, _) in spans.items():
        reading.seek(place, start)
    try:
        while waiting:
            found = await reading.getmany(*waiting, timeout_ms=1000)
            for place, records in found.items():
                if records[0].offset < spans[place][1]:
                    ages[place] = max(time.time() - records[0].timestamp / 1000, 0.0)
            done = found.keys() | {place for place in waiting if await reading.position(place) >= spans[place][1]}
            reading.pause(*done)
            waiting -= done
    finally:
        reading.pause(*spans)  # it would go on asking for what comes next
    return ages
