"""Records onto topics, records off them."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial
from itertools import islice

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition

from schemas.record import Outgoing, Record
from workers.kafka_tools import SEND_MAX_BYTES, KafkaError, KafkaUnreachableError, connected, consumer, first_failure
from workers.settings import Settings

IN_FLIGHT = 1000
SEND_SECONDS = 60.0
SILENCE_SECONDS = 5.0
NOTHING_SECONDS = 60.0
_POLL_SECONDS = 1.0

SendAll = Callable[[Iterable[Outgoing]], Awaitable[None]]

log = logging.getLogger("nearstream.kafka")


@asynccontextmanager
async def sender(settings: Settings, wait_seconds: float) -> AsyncIterator[SendAll]:
    """A function that sends records, by an idempotent producer, and returns when the broker has confirmed all.

    Raises:
        KafkaUnreachableError: No broker answered within `wait_seconds`.
    """
    client = await connected(
        partial(
            AIOKafkaProducer,
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


async def read_range(settings: Settings, topic: str, partition: int, start: int, end: int) -> AsyncGenerator[Record]:
    """Records of one partition from offset `start` up to, but without, `end`; what is not held is left out."""
    async with (
        consumer(settings, 10.0) as client,
        aclosing(between(client, TopicPartition(topic, partition), start, end)) as records,
    ):
        async for record in records:
            yield record


async def record_at(client: AIOKafkaConsumer, place: TopicPartition, offset: int) -> Record | None:
    """The record of this offset; None if it is not held."""
    async with aclosing(between(client, place, offset, offset + 1)) as records:
        return await anext(records, None)


async def between(client: AIOKafkaConsumer, place: TopicPartition, start: int, end: int) -> AsyncGenerator[Record]:
    """Records of a partition from `start` up to, but without, `end`; what is not held is left out.

    Raises:
        KafkaUnreachableError: The broker gave nothing for `NOTHING_SECONDS`.
    """
    begins, ends = await client.beginning_offsets([place]), await client.end_offsets([place])
    end = min(end, ends[place])
    client.assign([place])
    client.seek(place, max(start, begins[place]))
    silent = 0.0
    while (at := await client.position(place)) < end:
        for record in (await client.getmany(place, timeout_ms=int(1000 * _POLL_SECONDS))).get(place, []):
            if record.offset < end:
                yield as_record(record)
        silent = silent + _POLL_SECONDS if await client.position(place) == at else 0.0
        if silent >= NOTHING_SECONDS:
            raise KafkaUnreachableError(f"Kafka gave nothing of {place.topic} {place.partition} for {silent:g} s")


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
    heard = asyncio.get_running_loop().time()
    while not (until_end and all([await client.position(place) >= ends[place] for place in places])):
        for records in (await client.getmany(timeout_ms=200)).values():
            for record in records:
                yield as_record(record)
        if asyncio.get_running_loop().time() - heard > SILENCE_SECONDS:
            await _say_if_away(client, places)
            heard = asyncio.get_running_loop().time()


def as_record(record: ConsumerRecord) -> Record:
    """A consumed record as plain values."""
    headers = list(record.headers)
    return Record(record.topic, record.partition, record.offset, record.timestamp, record.key, record.value, headers)


async def _send_all(client: AIOKafkaProducer, records: Iterable[Outgoing]) -> None:
    """At most `IN_FLIGHT` records are on their way at once.

    Raises:
        KafkaUnreachableError: The broker did not confirm a share of them within `SEND_SECONDS`.
        SettingsError: It does not let us write to a topic; the topic is named.
    """
    for share in shares(records, IN_FLIGHT):
        late = asyncio.get_running_loop().call_later(
            SILENCE_SECONDS, log.warning, "Kafka has not confirmed %d records for %g s", len(share), SILENCE_SECONDS
        )
        try:
            async with asyncio.timeout(SEND_SECONDS):
                waiting = [
                    await client.send(
                        record.topic,
                        key=record.key,
                        value=record.value,
                        headers=record.headers,
                        timestamp_ms=record.timestamp_ms,
                    )
                    for record in share
                ]
                sent = await asyncio.gather(*waiting, return_exceptions=True)
        except TimeoutError:
            raise KafkaUnreachableError(
                f"Kafka has not confirmed {len(share)} records for {SEND_SECONDS:g} s"
            ) from None
        finally:
            late.cancel()
        error = first_failure(sent, [record.topic for record in share])
        if error is not None:
            raise error


def shares(records: Iterable[Outgoing], size: int) -> Iterator[list[Outgoing]]:
    """So many records at a time."""
    remaining = iter(records)
    while share := list(islice(remaining, size)):
        yield share


async def _say_if_away(client: AIOKafkaConsumer, places: Sequence[TopicPartition]) -> None:
    """A line when the broker does not answer: no record and no broker look alike."""
    try:
        async with asyncio.timeout(SILENCE_SECONDS):
            await client.end_offsets(places)
    except (KafkaError, TimeoutError):
        log.warning("Kafka does not answer; waiting for it")
