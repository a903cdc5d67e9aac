"""Servers that belong to a single fault test."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.devstack.kafka import KafkaPorts, kafka_server
from tests.devstack.server import LocalServer


@asynccontextmanager
async def own_broker(folder: Path, ports: KafkaPorts | None = None) -> AsyncIterator[LocalServer]:
    """Start a broker that only this test uses, so that it may be killed or filled."""
    server = await asyncio.to_thread(kafka_server, folder / "kafka", ports)
    try:
        await asyncio.to_thread(server.start)
        yield server
    finally:
        await asyncio.to_thread(server.stop)


def port_of(server: LocalServer) -> int:
    """Return the port that a server listens on."""
    return int(server.address.rpartition(":")[2])
