"""Send documents at a given rate, and take the times until their verdicts arrive.

The client is librdkafka, because aiokafka takes more than half a millisecond of CPU to send a document and to receive
its verdict when they come one at a time, on the cores that the worker needs.
"""

import asyncio
import time
from collections.abc import Sequence

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from benchmarks.stream.texts import Record

_TRACE = "00-{:032x}-0000000000000001-01"  # a W3C trace context, which a worker hands on to its verdicts
_LINGER_MS = 5  # of a producer, as by default in Kafka's own
_FETCH_WAIT_MS = 20
_POLL_SECONDS = 0.1
_REQUEST_SECONDS = 10.0
_SILENCE_SECONDS = 60.0


class Follower:
    """A consumer of the verdicts that arrive from now on.

    Raises:
        KafkaException: The broker does not answer, or the topic does not exist.
    """

    def __init__(self, broker: str, topic: str) -> None:
        """Find the end of each partition, and read from there."""
        self._consumer = Consumer(
            {
                "bootstrap.servers": broker,
                "group.id": "unused, because partitions are assigned",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": _FETCH_WAIT_MS,
            }
        )
        partitions = self._consumer.list_topics(topic, _REQUEST_SECONDS).topics[topic].partitions
        found = [TopicPartition(topic, partition) for partition in partitions]
        for each in found:
            _, each.offset = self._consumer.get_watermark_offsets(each, _REQUEST_SECONDS)
        self._consumer.assign(found)

    def arrivals(self, count: int, until: float) -> dict[int, float]:
        """Return when the first verdict about each of this many documents arrived, by its number.

        Args:
            count: Number of documents, of which the first has number 0.
            until: When to give up. This and all times are those of `time.monotonic`.

        Raises:
            KafkaException: The broker reports an error.
            TimeoutError: Verdicts are missing.
            ValueError: There is a verdict about a document of another client.
        """
        arrived: dict[int, float] = {}
        while len(arrived) < count:
            message = self._consumer.poll(_POLL_SECONDS)
            now = time.monotonic()
            if message is not None:
                if message.error():
                    raise KafkaException(message.error())
                arrived.setdefault(_number(message), now)
            elif now > until:
                raise TimeoutError(f"{count - len(arrived)} of {count} verdicts are missing")
        return arrived

    def close(self) -> None:
        """Disconnect."""
        self._consumer.close()


async def waits(broker: str, topics: tuple[str, str], records: Sequence[Record], rate: float) -> list[float]:
    """Return the milliseconds from the time when each document was due to the arrival of its verdict.

    Args:
        broker: The address of the broker.
        topics: The topics of documents and of verdicts.
        records: The documents.
        rate: Documents a second.

    Raises:
        KafkaException: The broker reports an error.
        TimeoutError: Verdicts are missing.
        ValueError: There is a verdict about a document of another client.
    """
    documents, verdicts = topics
    follower = await asyncio.to_thread(Follower, broker, verdicts)
    try:
        begin = time.monotonic()
        due = [begin + number / rate for number in range(len(records))]
        arrived, _ = await asyncio.gather(
            asyncio.to_thread(follower.arrivals, len(records), due[-1] + _SILENCE_SECONDS),
            asyncio.to_thread(_send, broker, documents, records, due),
        )
    finally:
        await asyncio.to_thread(follower.close)
    return [1e3 * (arrived[number] - at) for number, at in enumerate(due)]


def _send(broker: str, topic: str, records: Sequence[Record], due: Sequence[float]) -> None:
    """Send each document when it is due.

    Raises:
        KafkaException: The broker refused a document, or did not confirm it.
    """
    refused: list[object] = []
    producer = Producer(
        {
            "bootstrap.servers": broker,
            "linger.ms": _LINGER_MS,
            "partitioner": "murmur2_random",  # as Kafka's own
            "on_delivery": lambda error, _: refused.append(error) if error is not None else None,
        }
    )
    for number, record in enumerate(records):
        time.sleep(max(due[number] - time.monotonic(), 0))
        trace = _TRACE.format(number + 1).encode()
        producer.produce(topic, record.value, record.key.encode(), headers=[("traceparent", trace)])
        producer.poll(0)
    unsent = producer.flush(_REQUEST_SECONDS)
    if refused or unsent:
        raise KafkaException(f"{unsent} documents were not confirmed, and {len(refused)} refused: {refused[:1]}")


def _number(message: Message) -> int:
    trace = dict(message.headers() or []).get("traceparent")
    if isinstance(trace, bytes):
        return int(trace.split(b"-")[1], 16) - 1
    raise ValueError("a verdict has no trace context: it is about a document of another client")
