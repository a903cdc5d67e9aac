"""Reading from a broker that goes away ends in time with an error that says so."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka import TopicPartition
from aiokafka.admin import NewTopic

from nearstream.schemas.documents.record import ProducerRecord
from nearstream.workers.config.settings import Settings, load
from nearstream.workers.kafka import client as kafka_client
from nearstream.workers.kafka import records as kafka_records
from nearstream.workers.kafka.errors import KafkaUnreachableError
from tests.devstack.kafka import kafka_server
from tests.devstack.server import LocalServer, running

PLACE = TopicPartition("documents", 0)
RECORDS = 20_000


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[LocalServer]:
    """Start a broker for a single test, which may stop it."""
    with running(kafka_server(tmp_path / "kafka")) as server:
        yield server


async def test_a_read_from_a_broker_that_went_silent_ends_with_an_error(
    broker: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_records, "NOTHING_SECONDS", 3.0)
    settings = await _filled(broker)
    async with kafka_client.consumer(settings, 10.0) as client:
        records = kafka_records.between(client, PLACE, 0, RECORDS)
        assert (await anext(records)).offset == 0
        await asyncio.to_thread(broker.pause)
        try:
            with pytest.raises(KafkaUnreachableError, match="no records from documents partition 0 for 3 s"):
                async for _ in records:
                    pass
        finally:
            await asyncio.to_thread(broker.resume)


async def test_a_consumer_that_ends_while_the_broker_is_gone_hands_on_the_error_of_its_user(
    broker: LocalServer,
) -> None:
    settings = await _filled(broker)
    with pytest.raises(ZeroDivisionError):
        await _fail_in_a_fetch(settings, broker)


async def _fail_in_a_fetch(settings: Settings, broker: LocalServer) -> None:
    async with kafka_client.consumer(settings, 10.0) as client:
        client.assign([PLACE])
        await client.getmany(PLACE, timeout_ms=1000, max_records=1)
        await asyncio.to_thread(broker.kill)
        await client.getmany(PLACE, timeout_ms=1000)
        async with asyncio.timeout(60):
            while not client._fetcher._pending_tasks:
                await asyncio.sleep(0.01)
        raise ZeroDivisionError


async def _filled(broker: LocalServer) -> Settings:
    """Fill a partition beyond what a consumer fetches at once, and return the settings."""
    settings = load({"NEARSTREAM_KAFKA": broker.address})
    async with kafka_client.admin(settings, 10.0) as client:
        await client.create_topics([NewTopic(PLACE.topic, 1, 1)])
    async with kafka_records.sender(settings, 10.0) as send_all:
        await send_all(ProducerRecord(PLACE.topic, b"key", b"value" * 200, []) for _ in range(RECORDS))
    return settings
