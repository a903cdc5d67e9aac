"""Records as aiokafka takes and returns them."""

import asyncio
from dataclasses import dataclass, field

from aiokafka import ConsumerRecord as FetchedRecord
from aiokafka.errors import KafkaTimeoutError

from nearstream.schemas.record import ConsumerRecord, ProducerRecord
from nearstream.workers.kafka import records
from nearstream.workers.kafka.records import as_record


def test_a_record_is_read_as_it_was_sent() -> None:
    headers = (("a", b"1"), ("b", None), ("a", b"\xff"))
    fetched = FetchedRecord("in", 1, 3, 1_772_439_300_001, 0, b"k", b"v", None, 1, 1, headers)
    assert as_record(fetched) == ConsumerRecord("in", 1, 3, 1_772_439_300_001, b"k", b"v", list(headers))


@dataclass
class Full:
    """A producer whose buffer has no room at first."""

    refusals: int
    taken: list[bytes | None] = field(default_factory=list)

    async def send(self, _: str, *, value: bytes | None, **__: object) -> asyncio.Future[None]:
        if self.refusals:
            self.refusals -= 1
            raise KafkaTimeoutError
        self.taken.append(value)
        confirmed = asyncio.get_running_loop().create_future()
        confirmed.set_result(None)
        return confirmed


async def test_a_record_that_finds_no_room_is_offered_again() -> None:
    full = Full(3)
    values = [b"a", b"b", b"c"]
    await records._send_all(full, [ProducerRecord("t", None, value, []) for value in values])  # type: ignore[arg-type]
    assert full.taken == values
    assert full.refusals == 0
