"""Send documents at a given rate, and take the times until their verdicts arrive.

The client is librdkafka, because aiokafka takes more than half a millisecond of CPU to send a document and to receive
its verdict when they come one at a time, on the cores that the worker needs.
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import closing
from threading import Event
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from benchmarks.stream.texts import Record

_TRACE = "00-{:032x}-0000000000000001-01"  # a W3C trace context, which a worker hands on to its verdicts
_LINGER_MS = 5  # of a producer, as by default in Kafka's own
_FETCH_WAIT_MS = 20
_POLL_SECONDS = 0.1
_REQUEST_SECONDS = 10.0
_SETTLING_SECONDS = 1.0  # until both clients are connected to the leaders of all partitions
_PATIENCE_SECONDS = 60.0  # for verdicts, after the last document was due


class Way(NamedTuple):
    """When a document was due, and when its verdict arrived, in nanoseconds since 1970."""

    due: int
    arrived: int


async def ways(broker: str, topics: tuple[str, str], records: Sequence[Record], rate: float) -> list[Way]:
    """Return when each document was due, and when its verdict arrived.

    Args:
        broker: The address of the broker.
        topics: The topics of documents and of verdicts.
        records: The documents.
        rate: Documents a second.

    Raises:
        KafkaException: The broker reports an error, or does not confirm a document.
        TimeoutError: Verdicts are missing.
        ValueError: There is a verdict about a document of another client.
    """
    documents, verdicts = topics
    producer = await asyncio.to_thread(_producer, broker, documents)
    consumer = await asyncio.to_thread(_consumer, broker, verdicts)
    begin, is_over = time.monotonic() + _SETTLING_SECONDS, Event()
    due = [begin + number / rate for number in range(len(records))]
    both = (
        asyncio.to_thread(_follow, consumer, len(due), due[-1] + _PATIENCE_SECONDS, is_over),
        asyncio.to_thread(_send, producer, documents, records, due, is_over),
    )
    try:
        arrived, _ = await asyncio.gather(*both)
    finally:
        is_over.set()
    since = time.time_ns() - time.monotonic_ns()  # of the clock that the times above have
    return [Way(since + int(1e9 * at), since + int(1e9 * arrived[number])) for number, at in enumerate(due)]


def _producer(broker: str, topic: str) -> Producer:
    """Return a producer that knows the partitions of the topic.

    Raises:
        KafkaException: The broker does not answer.
    """
    partitioner = "murmur2_random"  # that of Kafka's own
    producer = Producer({"bootstrap.servers": broker, "linger.ms": _LINGER_MS, "partitioner": partitioner})
    producer.list_topics(topic, _REQUEST_SECONDS)
    return producer


def _consumer(broker: str, topic: str) -> Consumer:
    """Return a consumer of what is written to the topic from now on.

    Raises:
        KafkaException: The broker does not answer, or there is no such topic.
    """
    group = "unused, because partitions are assigned"
    consumer = Consumer({"bootstrap.servers": broker, "group.id": group, "fetch.wait.max.ms": _FETCH_WAIT_MS})
    found = consumer.list_topics(topic, _REQUEST_SECONDS).topics[topic]
    if found.error is not None:
        raise KafkaException(found.error)
    partitions = [TopicPartition(topic, partition) for partition in found.partitions]
    for each in partitions:
        _, each.offset = consumer.get_watermark_offsets(each, _REQUEST_SECONDS)
    consumer.assign(partitions)
    return consumer


def _follow(consumer: Consumer, count: int, until: float, is_over: Event) -> dict[int, float]:
    """Return when the first verdict about each of this many documents arrived, by its number, and close the consumer.

    Args:
        consumer: The consumer of the verdicts.
        count: Number of documents, of which the first has number 0.
        until: When to give up. This and all times are those of `time.monotonic`.
        is_over: Set when the measurement has failed.

    Raises:
        KafkaException: The broker reports an error.
        TimeoutError: Verdicts are missing.
        ValueError: There is a verdict about a document of another client.
    """
    arrived: dict[int, float] = {}
    with closing(consumer):
        while len(arrived) < count and not is_over.is_set():
            message = consumer.poll(_POLL_SECONDS)
            now = time.monotonic()
            if now > until:
                raise TimeoutError(f"{count - len(arrived)} of {count} verdicts are missing")
            if message is not None:
                if message.error():
                    raise KafkaException(message.error())
                arrived.setdefault(_number(message), now)
    return arrived


def _send(producer: Producer, topic: str, records: Sequence[Record], due: Sequence[float], is_over: Event) -> None:
    """Send each document when it is due.

    Raises:
        KafkaException: The broker refused a document, or did not confirm it.
    """
    refused: list[KafkaError] = []

    def note(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            refused.append(error)

    for number, record in enumerate(records):
        if is_over.wait(max(due[number] - time.monotonic(), 0)):
            break
        trace = _TRACE.format(number + 1).encode()
        producer.produce(topic, record.value, record.key.encode(), headers={"traceparent": trace}, on_delivery=note)
        producer.poll(0)
    unsent = producer.flush(_REQUEST_SECONDS)
    if refused or unsent:
        raise KafkaException(f"{unsent} documents were not confirmed, and {len(refused)} refused: {refused[:1]}")


def number_of(trace: bytes) -> int:
    """Return the number of the document that was sent with this trace context. The first one is 0."""
    return int(trace.split(b"-")[1], 16) - 1


def _number(message: Message) -> int:
    trace = dict(message.headers() or []).get("traceparent")
    if isinstance(trace, bytes):
        return number_of(trace)
    raise ValueError("a verdict has no trace context: it is about a document of another client")
