"""Records are sent by another producer after an error that one does not survive."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from aiokafka.errors import OutOfOrderSequenceNumber

from nearstream.schemas.documents.record import ProducerRecord
from nearstream.workers.config.settings import Settings
from nearstream.workers.kafka import records
from nearstream.workers.kafka.errors import KafkaUnreachableError
from nearstream.workers.kafka.records import SendAll

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

        try:
            yield send  # type: ignore[misc]
        finally:
            closed += 1

    monkeypatch.setattr(records, "sender", sender)
    reported: list[Exception] = []
    async with records.kept_sender(Settings(), 1.0, 0.01, reported.append) as pages, asyncio.timeout(60):
        await pages.is_connected.wait()
        failed = await asyncio.gather(*(pages.send([PAGE]) for _ in range(3)), return_exceptions=True)
        assert [type(error) for error in failed] == [KafkaUnreachableError] * 3
        with pytest.raises(KafkaUnreachableError, match="no connection"):
            await pages.send([PAGE])
        while len(opened) < 3 or not pages.is_connected.is_set():
            await asyncio.sleep(0.001)
        await pages.send([PAGE])
    assert (opened, closed, list(map(str, reported))) == ([[], [], [PAGE]], 2, ["no broker answered"])
