"""A client of Kafka is closed without losing a cancellation of its user."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from nearstream.workers.config.settings import Settings
from nearstream.workers.kafka import client as kafka_client
from nearstream.workers.kafka.errors import KafkaUnreachableError


async def test_a_cancellation_while_an_admin_client_is_closed_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client cancels its own task there, and takes the cancellation of the caller for the end of that task."""
    closing, may_end = asyncio.Event(), asyncio.Event()

    async def synchronize() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            closing.set()
            await may_end.wait()

    async def connect(*_: Any) -> AIOKafkaAdminClient:  # noqa: ANN401 - its parameters do not matter
        client = AIOKafkaAdminClient()
        client._client._sync_task = asyncio.create_task(synchronize())
        await asyncio.sleep(0)
        return client

    async def ask() -> None:
        async with kafka_client.admin(Settings(), 1.0):
            pass

    monkeypatch.setattr(kafka_client, "connect", connect)
    asking = asyncio.create_task(ask())
    try:
        async with asyncio.timeout(60):
            await closing.wait()
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
    finally:
        may_end.set()


async def test_a_client_that_cannot_be_closed_is_left_in_time(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        raise KafkaError

    async def miss_one_cancellation() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.Event().wait()

    with caplog.at_level("DEBUG"):
        await kafka_client.finish(fail(), 5)
    assert "was not closed: KafkaError" in caplog.text
    async with asyncio.timeout(60):
        await kafka_client.finish(miss_one_cancellation(), 0.01)


async def test_an_admin_client_whose_cluster_names_no_broker_yet_is_connected_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    named: list[list[str]] = [[], ["a broker"]]

    async def start(client: AIOKafkaAdminClient) -> None:
        brokers = named.pop(0)
        client._client.cluster.brokers = lambda: brokers

    async def reachable(*_: object) -> str:
        return "a broker answers"

    monkeypatch.setattr(AIOKafkaAdminClient, "start", start)
    monkeypatch.setattr(kafka_client, "why_unconnected", reachable)
    async with kafka_client.admin(Settings(), 60.0) as client:
        assert client._client.cluster.brokers() == ["a broker"]
    named[:] = [[], []]
    with pytest.raises(KafkaUnreachableError, match="not ready yet"):
        async with kafka_client.admin(Settings(), 0.1):
            pass
