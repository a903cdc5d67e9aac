"""Send and read records, also by a producer that is replaced when it fails."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka import ConsumerRecord as FetchedRecord
from aiokafka.errors import KafkaTimeoutError
from aiokafka.producer.message_accumulator import BatchBuilder
from aiokafka.structs import RecordMetadata

from nearstream.schemas.documents.record import ConsumerRecord, ProducerRecord
from nearstream.schemas.topics.codec import InvalidMessageError, decode_event
from nearstream.schemas.topics.table import EVENT_TOPICS, SIGNATURES
from nearstream.schemas.verdicts.events import Event, Retraction
from nearstream.workers.config.settings import Settings, SettingsError
from nearstream.workers.kafka.client import SEND_MAX_BYTES, STOP_SECONDS, connect, consumer, finish
from nearstream.workers.kafka.errors import KafkaError, KafkaUnreachableError, first_failure
from nearstream.workers.kafka.offsets import partitions as partitions_of
from nearstream.workers.kafka.partitioning import choose_partition

BATCH_BYTES = 16 * 1024 * 1024
IN_FLIGHT = 1000
SEND_SECONDS = 60.0
SILENCE_SECONDS = 5.0
NOTHING_SECONDS = 60.0
_POLL_SECONDS = 1.0
_SENT_BYTES = SIGNATURES.max_message_bytes // 2  # of one partition at a time, which each of our topics takes

Confirmation = asyncio.Future[RecordMetadata]
SendAll = Callable[[Iterable[ProducerRecord]], Awaitable[None]]

log = logging.getLogger(__name__)


@asynccontextmanager
async def sender(settings: Settings, wait_seconds: float) -> AsyncIterator[SendAll]:
    """Yield a function that sends records and waits until all are confirmed.

    The producer is idempotent, so its retries neither duplicate nor reorder records.
    """
    client = await connect(
        partial(
            AIOKafkaProducer,
            acks="all",
            enable_idempotence=True,
            max_request_size=SEND_MAX_BYTES,
            max_batch_size=_SENT_BYTES,
            request_timeout_ms=int(1000 * SEND_SECONDS),  # a record waits as long for room among those before it
        ),
        settings,
        wait_seconds,
    )
    sending = _Sending(client)
    try:
        yield partial(_send_all, sending)
    finally:
        # What was not confirmed in time has been given up already.
        await finish(client.stop(), STOP_SECONDS if sending.has_given_up else SEND_SECONDS)


async def read_range(
    settings: Settings, topic: str, partition: int, start: int, end: int
) -> AsyncGenerator[ConsumerRecord]:
    """Yield records of a partition from `start` to before `end`."""
    async with (
        consumer(settings, 10.0, fetch_wait_ms=1) as client,
        aclosing(between(client, TopicPartition(topic, partition), start, end)) as records,
    ):
        async for record in records:
            yield record


async def record_at(client: AIOKafkaConsumer, tp: TopicPartition, offset: int) -> ConsumerRecord | None:
    """Return the record at an offset, None if it is gone."""
    async with aclosing(between(client, tp, offset, offset + 1)) as records:
        return await anext(records, None)


async def between(client: AIOKafkaConsumer, tp: TopicPartition, start: int, end: int) -> AsyncGenerator[ConsumerRecord]:
    """Yield records of a partition from `start` to before `end`.

    Both are offsets. Records that the broker no longer has are left out.
    """
    begins, ends = await client.beginning_offsets([tp]), await client.end_offsets([tp])
    end = min(end, ends[tp])
    client.assign([tp])
    client.seek(tp, max(start, begins[tp]))
    silent = 0.0
    while (position := await client.position(tp)) < end:
        for record in (await client.getmany(tp, timeout_ms=int(1000 * _POLL_SECONDS))).get(tp, []):
            if record.offset < end:
                yield as_record(record)
        silent = silent + _POLL_SECONDS if await client.position(tp) == position else 0.0
        if silent >= NOTHING_SECONDS:
            raise KafkaUnreachableError(f"no records from {tp.topic} partition {tp.partition} for {silent:g} s")


async def follow(
    client: AIOKafkaConsumer, partitions: Sequence[TopicPartition], *, since_ms: int | None, until_end: bool
) -> AsyncGenerator[ConsumerRecord]:
    """Yield the records of these partitions as they arrive, with a consumer that has no group.

    The first record is that of the time `since_ms` or later, 0 for the oldest, None for the next one. With `until_end`
    the last one is that before the ends when reading began.
    """
    ends = await client.end_offsets(partitions)
    starts = ends if since_ms is None else await offsets_since(client, partitions, since_ms)
    async with aclosing(follow_from(client, starts, ends if until_end else None)) as records:
        async for record in records:
            yield record


async def follow_from(
    client: AIOKafkaConsumer, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int] | None = None
) -> AsyncGenerator[ConsumerRecord]:
    """Yield the records of these partitions as they arrive, from these offsets to before these ends, if any."""
    partitions = list(starts)
    client.assign(partitions)
    for tp in partitions:
        client.seek(tp, starts[tp])
    checked = asyncio.get_running_loop().time()
    while ends is None or any([await client.position(tp) < ends[tp] for tp in partitions]):
        for records in (await client.getmany(timeout_ms=200)).values():
            for record in records:
                yield as_record(record)
        if asyncio.get_running_loop().time() - checked > SILENCE_SECONDS:
            await _warn_if_unreachable(client, partitions)
            checked = asyncio.get_running_loop().time()


async def follow_events(
    settings: Settings, wait_seconds: float, *, since_ms: int | None, until_end: bool
) -> AsyncGenerator[tuple[ConsumerRecord, Event | None]]:
    """Yield the records of all event topics as they arrive, each with its verdict or event.

    They begin with those sent at a time or later, 0 for the oldest, None for the next, and may end with the last one
    that exists now.
    """
    topics = [settings.topic_prefix + topic.name for topic in EVENT_TOPICS]
    tps = await partitions_of(settings, topics, wait_seconds)
    async with (
        consumer(settings, wait_seconds, fetch_wait_ms=1 if until_end else 500) as client,
        aclosing(follow(client, tps, since_ms=since_ms, until_end=until_end)) as records,
    ):
        async for record in records:
            event = event_of(record)
            # A retraction is sent to every topic, but yielded once.
            if not isinstance(event, Retraction) or record.topic == topics[0]:
                yield record, event


def event_of(record: ConsumerRecord) -> Event | None:
    """Return the event of a record, or None if this release cannot read one."""
    try:
        return decode_event(record.value or b"")
    except InvalidMessageError:
        return None


async def offsets_since(
    client: AIOKafkaConsumer, partitions: Sequence[TopicPartition], since_ms: int
) -> dict[TopicPartition, int]:
    """Return the offset of each partition's first record of a time or later, without one that of its end."""
    ends: dict[TopicPartition, int] = await client.end_offsets(partitions)
    if not since_ms:
        begins: dict[TopicPartition, int] = await client.beginning_offsets(partitions)
        return begins
    found = await client.offsets_for_times(dict.fromkeys(partitions, since_ms))
    return {tp: ends[tp] if found[tp] is None else found[tp].offset for tp in partitions}


def as_record(record: FetchedRecord) -> ConsumerRecord:
    """Return a record of aiokafka as one of ours."""
    headers = list(record.headers)
    return ConsumerRecord(
        record.topic, record.partition, record.offset, record.timestamp, record.key, record.value, headers
    )


@dataclass
class _Sending:
    client: AIOKafkaProducer  # the producer
    warns_at: float = 0.0  # before this time of the loop there is no other warning, so many senders give one
    has_given_up: bool = False  # whether some records were not confirmed in time

    def warn(self, count: int) -> None:
        """Say that records wait for the broker."""
        now = asyncio.get_running_loop().time()
        if now >= self.warns_at:
            self.warns_at = now + SEND_SECONDS
            log.warning("Kafka has not confirmed %d records for %g s", count, SILENCE_SECONDS)


async def _send_all(sending: _Sending, records: Iterable[ProducerRecord]) -> None:
    """Send records with at most `IN_FLIGHT` unconfirmed at a time."""
    for batch in batched(records, IN_FLIGHT):
        late = asyncio.get_running_loop().call_later(SILENCE_SECONDS, sending.warn, len(batch))
        try:
            async with asyncio.timeout(SEND_SECONDS):
                confirmations = await hand_over(sending.client, batch)
                sent = await asyncio.gather(*confirmations, return_exceptions=True)
        except (TimeoutError, KafkaTimeoutError):
            sending.has_given_up = True
            raise KafkaUnreachableError(f"Kafka has not confirmed {len(batch)} records in time") from None
        finally:
            late.cancel()
        error = first_failure(sent, [topic for topic, _ in confirmations.values()])
        if error is not None:
            raise error


async def hand_over(client: AIOKafkaProducer, records: Iterable[ProducerRecord]) -> dict[Confirmation, tuple[str, int]]:
    """Hand records to a producer, and return its confirmations."""
    by_topic = defaultdict[str, list[ProducerRecord]](list)
    for record in records:
        by_topic[record.topic].append(record)
    confirmations: dict[Confirmation, tuple[str, int]] = {}
    for topic, some in by_topic.items():
        try:
            confirmations |= {taken: (topic, count) for taken, count in await _hand_over(client, topic, some)}
        except KafkaError as error:
            raise first_failure([error], [topic]) or error from None
    return confirmations


async def _hand_over(
    client: AIOKafkaProducer, topic: str, records: Sequence[ProducerRecord]
) -> list[tuple[Confirmation, int]]:
    """Hand records of one topic to a producer, and return its confirmations.

    Each has the number of its records.

    The records of a partition go in one batch, which takes a third of the time that they take one by one. A record that
    is alone joins a batch that waits for its partition, so that many senders of one record each share batches.
    """
    partitions = sorted(await client.partitions_for(topic))
    available = sorted(client.client.cluster.available_partitions_for_topic(topic) or ())
    by_partition = defaultdict[int, list[ProducerRecord]](list)
    for record in records:
        by_partition[choose_partition(record.key, partitions, available)].append(record)
    confirmations = []
    for partition, some in by_partition.items():
        if len(some) == 1:
            (one,) = some
            taken = await client.send(topic, partition=partition, timestamp_ms=one.timestamp_ms, **_fields(one))
            confirmations.append((taken, 1))
            continue
        for batch in _batches(client, some):
            taken = await client.send_batch(batch, topic, partition=partition)
            confirmations.append((taken, batch.record_count()))
    return confirmations


def _fields(record: ProducerRecord) -> dict[str, Any]:
    return {"key": record.key, "value": record.value, "headers": record.headers}


def _batches(client: AIOKafkaProducer, records: Sequence[ProducerRecord]) -> Iterator[BatchBuilder]:
    """Yield batches with these records, in order.

    A record that is larger than a batch gets a batch of its own.
    """
    batch = client.create_batch()
    for record in records:
        if batch.append(timestamp=record.timestamp_ms, **_fields(record)) is None:
            yield batch
            batch = client.create_batch()
            batch.append(timestamp=record.timestamp_ms, **_fields(record))
    yield batch


def batched(records: Iterable[ProducerRecord], size: int) -> Iterator[list[ProducerRecord]]:
    """Split records into lists of at most `size`, whose values have few more than `BATCH_BYTES` together."""
    batch: list[ProducerRecord] = []
    held_bytes = 0
    for record in records:
        batch.append(record)
        held_bytes += len(record.value or b"")
        if len(batch) == size or held_bytes > BATCH_BYTES:
            yield batch
            batch, held_bytes = [], 0
    if batch:
        yield batch


async def _warn_if_unreachable(client: AIOKafkaConsumer, partitions: Sequence[TopicPartition]) -> None:
    """Log a warning if the broker does not answer.

    The consumer alone cannot distinguish a broker without new records from an unreachable one.
    """
    try:
        async with asyncio.timeout(SILENCE_SECONDS):
            await client.end_offsets(partitions)
    except (KafkaError, TimeoutError):
        log.warning("Kafka does not answer, waiting for it")


_STOP_SECONDS = 5.0


@dataclass
class KeptSender:
    """Sends records while there is a connection."""

    is_connected: asyncio.Event = field(default_factory=asyncio.Event)  # set while there is one
    _send_all: SendAll | None = None
    _failed: asyncio.Event = field(default_factory=asyncio.Event)

    async def send(self, records: Sequence[ProducerRecord]) -> None:
        """Send records and wait until they are confirmed."""
        if self._send_all is None:
            raise KafkaUnreachableError("there is no connection to Kafka")
        try:
            await self._send_all(records)
        except KafkaError as error:
            self._send_all = None  # after some errors a producer cannot send any more
            self._failed.set()
            raise KafkaUnreachableError(f"Kafka has not taken the record: {error}") from error

    async def stay_connected(
        self, settings: Settings, wait_seconds: float, retry_seconds: float, report: Callable[[Exception], None]
    ) -> None:
        """Keep a producer until this is cancelled, and report why there is none."""
        while True:
            self._failed.clear()
            try:
                async with sender(settings, wait_seconds) as self._send_all:
                    log.info("connected to Kafka")
                    self.is_connected.set()
                    await self._failed.wait()
            except (KafkaUnreachableError, SettingsError, KafkaError) as error:
                report(error)
            finally:
                self._send_all = None
                self.is_connected.clear()
            await asyncio.sleep(retry_seconds)


@asynccontextmanager
async def kept_sender(
    settings: Settings, wait_seconds: float, retry_seconds: float, report: Callable[[Exception], None]
) -> AsyncIterator[KeptSender]:
    """Yield a sender that connects while the block runs, however long that takes, as `stay_connected` does."""
    kept = KeptSender()
    task = asyncio.create_task(kept.stay_connected(settings, wait_seconds, retry_seconds, report))
    try:
        yield kept
    finally:
        for _ in range(2):  # the second time it waits no longer for records that Kafka does not confirm
            task.cancel()
            await asyncio.wait({task}, timeout=_STOP_SECONDS)
