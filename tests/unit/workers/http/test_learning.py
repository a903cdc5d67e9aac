"""An outbox is bounded, and gives up what is not confirmed."""

import asyncio
from collections.abc import Iterable

import pytest

from nearstream.schemas.documents.record import ProducerRecord
from nearstream.workers.http import learning
from nearstream.workers.http.learning import Outbox, OutboxFullError
from nearstream.workers.kafka.errors import KafkaUnreachableError
from nearstream.workers.kafka.records import KeptSender


class Broker:
    """Confirms records once it may."""

    def __init__(self) -> None:
        self.may_confirm = asyncio.Event()
        self.sent: list[ProducerRecord] = []

    async def send_all(self, records: Iterable[ProducerRecord]) -> None:
        await self.may_confirm.wait()
        self.sent += records


@pytest.mark.parametrize(
    ("size", "most"),
    [(100, learning.UNCONFIRMED), (learning.UNCONFIRMED_BYTES - 50, 1)],
    ids=["so many records", "so many bytes"],
)
async def test_as_much_as_allowed_waits_and_no_more(size: int, most: int) -> None:
    broker = Broker()
    outbox = Outbox(KeptSender(_send_all=broker.send_all))
    record = ProducerRecord("documents", b"a", bytes(size), [])
    waiting = [asyncio.create_task(outbox.send(record, 60)) for _ in range(most)]
    await asyncio.sleep(0)
    with pytest.raises(OutboxFullError):
        await outbox.send(record, 60)
    broker.may_confirm.set()
    await asyncio.gather(*waiting)
    await outbox.send(record, 60)
    assert len(broker.sent) == most + 1


async def test_a_record_that_is_not_confirmed_in_time_is_given_up() -> None:
    outbox = Outbox(KeptSender(_send_all=Broker().send_all))
    for _ in range(learning.UNCONFIRMED + 1):
        with pytest.raises(KafkaUnreachableError, match="not confirmed"):
            await outbox.send(ProducerRecord("documents", b"a", b"x", []), 0)
