"""Fixtures for both kinds of index, each in its own namespace."""

import secrets
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import pytest
from redis import Redis

from nearstream.streams.index.contract import IndexLimits
from nearstream.streams.index.memory import MemoryIndex
from nearstream.workers.redis_index.address import IndexAddress
from nearstream.workers.redis_index.index import RedisIndex
from tests.support.index_documents import FINGERPRINT, SCHEME, AnyIndex, Make


@pytest.fixture(autouse=True)
def _patient(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let calls wait long for the shared server, because a busy machine may stop it for seconds.

    Tests of what happens at a deadline have a server of their own, which they stop.
    """
    if not {"own_server", "own_address", "nodes"} & set(request.fixturenames):
        monkeypatch.setattr("nearstream.workers.redis_index.shard._WRITE_SECONDS", 60.0)
        monkeypatch.setattr("nearstream.workers.redis_index.opening._DEADLINE_SECONDS", 60.0)


@pytest.fixture
def address(redis_url: str) -> Iterator[IndexAddress]:
    """Return the address of an unused namespace, which is deleted after the test."""
    namespace = f"test-{secrets.token_hex(6)}"
    limits = IndexLimits(bucket_cap=50, documents=6_400)
    yield IndexAddress(redis_url, namespace, SCHEME, FINGERPRINT, limits, look_up_seconds=60.0)
    with Redis.from_url(redis_url) as client:
        for key in list(client.scan_iter(match=f"{{{namespace}*", count=1_000)):
            client.delete(key)


@pytest.fixture
async def redis_index(address: IndexAddress) -> AsyncIterator[RedisIndex]:
    index = await RedisIndex.open(address, may_create=True)
    yield index
    await index.close()


@pytest.fixture(params=["memory", "redis"])
async def make(request: pytest.FixtureRequest) -> AsyncIterator[Make]:
    """Return a function that makes an empty index with the given limits.

    The test runs once with indexes in memory and once in Redis.
    """
    opened: list[RedisIndex] = []
    place: IndexAddress | None = request.getfixturevalue("address") if request.param == "redis" else None

    async def make_index(limits: IndexLimits) -> AnyIndex:
        if place is None:
            return MemoryIndex(limits)
        own = replace(place, limits=limits, shard=len(opened))
        opened.append(await RedisIndex.open(own, may_create=True))
        return opened[-1]

    yield make_index
    for index in opened:
        await index.close()


@pytest.fixture
async def index(make: Make) -> AnyIndex:
    return await make(IndexLimits(bucket_cap=50, documents=6_400))
