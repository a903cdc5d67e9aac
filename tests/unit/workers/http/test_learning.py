"""An outbox is bounded, and tells why a record was not confirmed."""

import asyncio
from collections.abc import Iterable

import pytest

from nearstream.schemas.documents.record import ProducerRecord
from nearstream.workers.http import learning
from nearstream.workers.http.learning import Outbox, OutboxFullError
from nearstream.workers.kafka.errors import KafkaError, KafkaUnreachableError
from nearstream.workers.kafka.kept_sender import KeptSender

RECORD = ProducerRecord("documents", b"a", b"x" * 100, [])


class Broker:
    """Confirms records once it may, or fails."""

    def __init__(self) -> None:
        self.may_confirm = asyncio.Event()
        self.error: Exception | None = None
        self.sent: list[ProducerRecord] = []

    async def send_all(self, records: Iterable[ProducerRecord]) -> None:
        await self.may_confirm.wait()
        if self.error is not None:
            raise self.error
        self.sent += records


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
def connected(broker: Broker) -> Outbox:
    return Outbox(KeptSender(_send_all=broker.send_all))


async def test_as_many_records_as_allowed_wait_and_no_more(connected: Outbox, broker: Broker) -> None:
    waiting = [asyncio.create_task(connected.send(RECORD, 60)) for _ in range(learning.UNCONFIRMED)]
    await asyncio.sleep(0)
    with pytest.raises(OutboxFullError):
        await connected.send(RECORD, 60)
    broker.may_confirm.set()
    await asyncio.gather(*waiting)
    await connected.send(RECORD, 60)
    assert len(broker.sent) == learning.UNCONFIRMED + 1


async def test_bytes_are_bounded_too(connected: Outbox, broker: Broker) -> None:
    large = RECORD._replace(value=bytes(learning.UNCONFIRMED_BYTES - 50))
    waiting = asyncio.create_task(connected.send(large, 60))
    await asyncio.sleep(0)
    with pytest.raises(OutboxFullError):
        await connected.send(RECORD, 60)
    broker.may_confirm.set()
    await waiting
    await connected.send(RECORD, 60)


async def test_a_record_that_is_not_confirmed_in_time_is_given_up(connected: Outbox) -> None:
    for _ in range(learning.UNCONFIRMED + 1):
        with pytest.raises(KafkaUnreachableError, match="not confirmed"):
            await connected.send(RECORD, 0)


async def test_a_producer_that_failed_is_replaced(connected: Outbox, broker: Broker) -> None:
    broker.error = KafkaError("fenced")
    broker.may_confirm.set()
    with pytest.raises(KafkaUnreachableError, match="fenced"):
        await connected.send(RECORD, 60)
    assert connected._sending._failed.is_set()
