"""Reading from a broker that goes away ends in time with an error that says so."""

import asyncio
import uuid

import pytest
from aiokafka import TopicPartition
from aiokafka.admin import NewTopic

from nearstream.schemas.documents.record import ProducerRecord
from nearstream.workers.config.settings import Settings, load
from nearstream.workers.kafka import client as kafka_client
from nearstream.workers.kafka import records as kafka_records
from nearstream.workers.kafka.errors import KafkaUnreachableError
from tests.devstack.server import LocalServer

RECORDS = 20_000


async def test_a_read_from_a_broker_that_went_silent_ends_with_an_error(
    broker: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_records, "NOTHING_SECONDS", 3.0)
    settings, place = await _filled(broker)
    async with kafka_client.consumer(settings, 10.0) as client:
        records = kafka_records.between(client, place, 0, RECORDS)
        assert (await anext(records)).offset == 0
        await asyncio.to_thread(broker.pause)
        try:
            with pytest.raises(KafkaUnreachableError, match=f"no records from {place.topic} partition 0 for 3 s"):
                async for _ in records:
                    pass
        finally:
            await asyncio.to_thread(broker.resume)


async def test_a_consumer_that_ends_while_the_broker_is_gone_hands_on_the_error_of_its_user(
    broker: LocalServer,
) -> None:
    settings, place = await _filled(broker)
    with pytest.raises(ZeroDivisionError):
        await _fail_in_a_fetch(settings, place, broker)


async def _fail_in_a_fetch(settings: Settings, place: TopicPartition, broker: LocalServer) -> None:
    async with kafka_client.consumer(settings, 10.0) as client:
        client.assign([place])
        await client.getmany(place, timeout_ms=1000, max_records=1)
        await asyncio.to_thread(broker.kill)
        await client.getmany(place, timeout_ms=1000)
        async with asyncio.timeout(60):
            while not client._fetcher._pending_tasks:
                await asyncio.sleep(0.01)
        raise ZeroDivisionError


async def _filled(broker: LocalServer) -> tuple[Settings, TopicPartition]:
    """Fill a partition beyond what a consumer fetches at once, and return it with the settings."""
    place = TopicPartition(f"documents-{uuid.uuid4().hex}", 0)
    settings = load({"NEARSTREAM_KAFKA": broker.address})
    async with kafka_client.admin(settings, 10.0) as client:
        await client.create_topics([NewTopic(place.topic, 1, 1)])
    async with kafka_records.sender(settings, 10.0) as send_all:
        await send_all(ProducerRecord(place.topic, b"key", b"value" * 200, []) for _ in range(RECORDS))
    return settings, place
