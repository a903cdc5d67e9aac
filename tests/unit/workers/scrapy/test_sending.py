"""Pages are sent by another client after an error that one does not survive."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from aiokafka.errors import OutOfOrderSequenceNumber

from nearstream.schemas.documents.record import ProducerRecord
from nearstream.workers.config.settings import Settings
from nearstream.workers.kafka.errors import KafkaUnreachableError
from nearstream.workers.kafka.records import SendAll
from nearstream.workers.scrapy import sending
from nearstream.workers.scrapy.sending import PageSender

PAGE = ProducerRecord("documents", None, b"<p>one", [])


async def test_another_client_takes_the_place_of_one_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[list[ProducerRecord]] = []
    closed = 0

    @asynccontextmanager
    async def sender(*_: object) -> AsyncIterator[SendAll]:
        nonlocal closed
        opened.append([])
        if len(opened) == 2:
            raise KafkaUnreachableError("no broker answered")
        own, is_first = opened[-1], len(opened) == 1

        async def send(batch: Sequence[ProducerRecord]) -> None:
            if is_first:
                raise OutOfOrderSequenceNumber
            own.extend(batch)

        yield send  # type: ignore[misc]
        closed += 1

    monkeypatch.setattr(sending, "sender", sender)
    monkeypatch.setattr(sending, "RETRY_SECONDS", 0.01)
    pages = PageSender(Settings(), 1.0)
    await pages.open()
    failed = await asyncio.gather(*(pages.send([PAGE]) for _ in range(3)), return_exceptions=True)
    assert [type(error) for error in failed] == [KafkaUnreachableError] * 3
    async with asyncio.timeout(60):
        while len(opened) < 3:
            with pytest.raises(KafkaUnreachableError, match="no connection"):
                await pages.send([PAGE])
            await asyncio.sleep(0.001)
    await pages.send([PAGE])
    await pages.close()
    assert (opened, closed) == ([[], [], [PAGE]], 2)
