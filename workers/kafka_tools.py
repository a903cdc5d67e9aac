"""Plain reading, sending and asking of Kafka, for workers and commands."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    InvalidTopicError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)

from schemas.record import Outgoing, Record
from workers.settings import Settings

SEND_MAX_BYTES = 4_718_592
SendAll = Callable[[Iterable[Outgoing]], Awaitable[None]]
IN_FLIGHT = 1000
RETRY_SECONDS = 0.5
_REFUSALS = (
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    InvalidTopicError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)


class KafkaUnreachableError(Exception):
    """No broker answers; one line says which address and why."""


def retriable(error: BaseException) -> bool:
    """Whether waiting may cure this error of Kafka: no leader, too few replicas, timeout, connection."""
    if not isinstance(error, KafkaError) or refused(error):
        return False
    return bool(error.retriable) or isinstance(error, KafkaConnectionError | KafkaTimeoutError)


def refused(error: BaseException) -> bool:
    """Whether the broker will not do this for us: a missing topic or right, hence a matter of settings."""
    return isinstance(error, _REFUSALS)


@asynccontextmanager
async def admin(settings: Settings, wait_seconds: float) -> AsyncIterator[AIOKafkaAdminClient]:
    """An admin client that is connected.

    Raises:
        KafkaUnreachableError: No broker answered within `wait_seconds` seconds.
    """
    client = await _started(
        lambda: AIOKafkaAdminClient(bootstrap_servers=settings.kafka, request_timeout_ms=10_000), settings, wait_seconds
    )
    try:
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def sender(settings: Settings, wait_seconds: float) -> AsyncIterator[SendAll]:
    """A function that sends records, by an idempotent producer, and returns when the broker has confirmed all.

    Raises:
        KafkaUnreachableError: No broker answered within `wait_seconds`.
    """
    client = await _started(
        lambda: AIOKafkaProducer(
            bootstrap_servers=settings.kafka,
            acks="all",
            enable_idempotence=True,
            max_request_size=SEND_MAX_BYTES,
            compression_type=settings.kafka_compression or None,
        ),
        settings,
        wait_seconds,
    )
    try:
        yield partial(_send_all, client)
    finally:
        await client.stop()


@asynccontextmanager
async def consumer(settings: Settings, wait_seconds: float) -> AsyncIterator[AIOKafkaConsumer]:
    """A consumer without group that is connected.

    Raises:
        KafkaUnreachableError: No broker answered within `wait_seconds` seconds.
    """
    client = await _started(
        lambda: AIOKafkaConsumer(
            bootstrap_servers=settings.kafka, enable_auto_commit=False, auto_offset_reset="earliest"
        ),
        settings,
        wait_seconds,
    )
    try:
        yield client
    finally:
        await client.stop()


async def read_range(settings: Settings, topic: str, partition: int, start: int, end: int) -> AsyncIterator[Record]:
    """Records of one partition from offset `start` up to, but without, `end`; what is no longer held is left out."""
    place = TopicPartition(topic, partition)
    async with consumer(settings, 10.0) as client:
        client.assign([place])
        client.seek(place, start)
        first = (await client.beginning_offsets([place]))[place]
        if first > start:
            client.seek(place, first)
        end = min(end, (await client.end_offsets([place]))[place])
        while await client.position(place) < end:
            for record in (await client.getmany(place, timeout_ms=1000)).get(place, []):
                if record.offset < end:
                    yield as_record(record)


async def follow(
    client: AIOKafkaConsumer, places: Sequence[TopicPartition], *, from_start: bool, until_end: bool
) -> AsyncGenerator[Record]:
    """Records of these partitions as they arrive.

    Args:
        client: A connected consumer without group.
        places: What `partitions` gave.
        from_start: Begin at the oldest record, else at the end.
        until_end: Stop at what was the end when it began.
    """
    client.assign(places)
    ends = await client.end_offsets(places)
    starts = await client.beginning_offsets(places) if from_start else ends
    for place in places:
        client.seek(place, starts[place])
    while not (until_end and all([await client.position(place) >= ends[place] for place in places])):
        for records in (await client.getmany(timeout_ms=200)).values():
            for record in records:
                yield as_record(record)


def as_record(record: ConsumerRecord) -> Record:
    """A consumed record as plain values."""
    headers = list(record.headers)
    return Record(record.topic, record.partition, record.offset, record.timestamp, record.key, record.value, headers)


async def _send_all(client: AIOKafkaProducer, records: Iterable[Outgoing]) -> None:
    """At most `IN_FLIGHT` records are on their way at once."""
    waiting: list[asyncio.Future[object]] = []
    for record in records:
        waiting.append(
            await client.send(
                record.topic,
                key=record.key,
                value=record.value,
                headers=record.headers,
                timestamp_ms=record.timestamp_ms,
            )
        )
        if len(waiting) >= IN_FLIGHT:
            await asyncio.gather(*waiting)
            waiting.clear()
    await asyncio.gather(*waiting)


async def _started(make: Callable[[], Any], settings: Settings, wait_seconds: float) -> Any:  # noqa: ANN401 - aiokafka has no types
    """A client of `make`, connected; a new one for each try, until `wait_seconds` seconds are over."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + wait_seconds
    while True:
        client = make()
        try:
            async with asyncio.timeout_at(deadline):
                await client.start()
            return client
        except (KafkaError, TimeoutError) as error:
            await _stopped(client)
            if loop.time() + RETRY_SECONDS >= deadline:
                reason = "no answer" if isinstance(error, TimeoutError | KafkaConnectionError) else str(error)
                raise KafkaUnreachableError(
                    f"no Kafka at {settings.kafka} within {wait_seconds:g} s: {reason}"
                ) from None
            await asyncio.sleep(RETRY_SECONDS)


async def _stopped(client: Any) -> None:  # noqa: ANN401 - aiokafka has no types
    """Ends a client that never started; aiokafka's admin client calls it close."""
    await (client.close() if isinstance(client, AIOKafkaAdminClient) else client.stop())
