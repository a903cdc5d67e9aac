"""Records as aiokafka takes and returns them."""

import asyncio
from dataclasses import dataclass, field

import pytest
from aiokafka import ConsumerRecord as FetchedRecord
from aiokafka import TopicPartition
from aiokafka.errors import KafkaTimeoutError

from nearstream.schemas.documents.record import ProducerRecord
from nearstream.workers.kafka import records
from nearstream.workers.kafka.errors import KafkaUnreachableError


@dataclass
class Producer:
    """A producer whose buffer has no room at first, and whose broker may not answer."""

    refusals: int = 0
    answers: bool = True
    taken: list[bytes | None] = field(default_factory=list)

    async def send(self, _: str, *, value: bytes | None, **__: object) -> asyncio.Future[None]:
        if self.refusals:
            self.refusals -= 1
            raise KafkaTimeoutError
        self.taken.append(value)
        confirmed = asyncio.get_running_loop().create_future()
        if self.answers:
            confirmed.set_result(None)
        return confirmed


async def test_a_record_that_finds_no_room_is_offered_again() -> None:
    full = Producer(3)
    values = [b"a", b"b", b"c"]
    await records._send_all(records._Sending(full), [ProducerRecord("t", None, value, []) for value in values])
    assert (full.taken, full.refusals) == (values, 0)


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
