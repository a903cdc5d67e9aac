"""Records as aiokafka takes and returns them."""

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from aiokafka import ConsumerRecord as FetchedRecord
from aiokafka import TopicPartition
from aiokafka.errors import MessageSizeTooLargeError, TopicAuthorizationFailedError
from aiokafka.producer.message_accumulator import BatchBuilder
from aiokafka.record.default_records import DefaultRecordBatch

from nearstream.schemas.documents.record import ProducerRecord
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.kafka import records
from nearstream.workers.kafka.errors import KafkaUnreachableError
from nearstream.workers.kafka.partitioning import partition_of


@dataclass
class Producer:
    """A producer for topics of two partitions. Its broker may not answer, or refuse topics."""

    answers: bool = True
    refuses: Exception | None = None
    taken: list[tuple[str, int, list[bytes | None]]] = field(default_factory=list)  # in the order of the calls

    @property
    def client(self) -> SimpleNamespace:
        """What knows the cluster."""
        return SimpleNamespace(cluster=SimpleNamespace(available_partitions_for_topic=lambda _: {0, 1}))

    async def partitions_for(self, _: str) -> set[int]:
        if self.refuses is not None:
            raise self.refuses
        return {1, 0}

    def create_batch(self) -> BatchBuilder:
        return BatchBuilder(1_000, 0)

    async def send(self, topic: str, *, partition: int, value: bytes | None, **__: object) -> asyncio.Future[None]:
        return self._take(topic, partition, [value])

    async def send_batch(self, batch: BatchBuilder, topic: str, *, partition: int) -> asyncio.Future[None]:
        sent = DefaultRecordBatch(bytes(batch._build()))
        return self._take(topic, partition, [record.value for record in sent])

    def _take(self, topic: str, partition: int, values: list[bytes | None]) -> asyncio.Future[None]:
        self.taken.append((topic, partition, values))
        confirmed = asyncio.get_running_loop().create_future()
        if self.answers:
            confirmed.set_result(None)
        return confirmed


def _to(topic: str, key: bytes, value: bytes) -> ProducerRecord:
    return ProducerRecord(topic, key, value, [("name", b"x")])


async def test_the_records_of_a_partition_go_in_one_batch_in_their_order() -> None:
    producer, long = Producer(), b"x" * 2_000
    keys = [next(key for key in map(b"%d".__mod__, range(99)) if partition_of(key, 2) == part) for part in (0, 1)]
    sent = [_to("t", keys[0], b"a"), _to("t", keys[1], b"b"), _to("u", keys[0], b"c"), _to("t", keys[0], b"d")]
    sent += [_to("t", keys[0], value) for value in (long, long, b"e", b"f")]
    found = await records.hand_over(producer, sent)
    assert producer.taken == [
        ("t", 0, [b"a", b"d"]),
        ("t", 0, [long]),
        ("t", 0, [long]),
        ("t", 0, [b"e", b"f"]),
        ("t", 1, [b"b"]),
        ("u", 0, [b"c"]),
    ]
    assert list(found.values()) == [(topic, len(values)) for topic, _, values in producer.taken]


async def test_a_producer_that_takes_no_record_names_the_topic() -> None:
    for refused, expected, told in (
        (TopicAuthorizationFailedError("out"), SettingsError, "topic out: permission WRITE is missing"),
        (MessageSizeTooLargeError(), MessageSizeTooLargeError, "MessageSizeTooLarge"),
    ):
        with pytest.raises(expected, match=told):
            await records.hand_over(Producer(refuses=refused), [_to("out", b"k", b"v")])


async def test_one_line_says_that_many_senders_wait_for_a_broker(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(records, "SILENCE_SECONDS", 0.01)
    monkeypatch.setattr(records, "SEND_SECONDS", 0.5)
    sending = records._Sending(Producer(answers=False))
    waiting = [records._send_all(sending, [ProducerRecord("t", None, b"v", [])]) for _ in range(20)]
    failed = await asyncio.gather(*waiting, return_exceptions=True)
    assert {type(each) for each in failed} == {KafkaUnreachableError}
    assert len(caplog.records) == 1
    assert sending.has_given_up


class Frozen:
    """A consumer whose broker went silent."""

    def __init__(self) -> None:
        """Know the offsets that the broker has told before."""
        self.asked = 0

    async def beginning_offsets(self, places: list[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(places, 0)

    async def end_offsets(self, places: list[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(places, 9)

    def assign(self, _: list[TopicPartition]) -> None: ...

    def seek(self, _: TopicPartition, __: int) -> None: ...

    async def position(self, _: TopicPartition) -> int:
        return 3

    async def getmany(self, *_: TopicPartition, **__: int) -> dict[TopicPartition, list[FetchedRecord]]:
        self.asked += 1
        return {}


async def test_a_read_from_a_broker_that_went_silent_ends_with_an_error() -> None:
    frozen = Frozen()
    with pytest.raises(KafkaUnreachableError, match="no records from in partition 1 for 60 s"):
        await anext(records.between(frozen, TopicPartition("in", 1), 0, 9))
    assert frozen.asked == records.NOTHING_SECONDS
