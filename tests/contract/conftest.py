"""Indexes of both forms, each in a namespace of its own."""

import secrets
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import pytest
from redis import Redis

from streams.index import IndexLimits
from streams.memory_index import MemoryIndex
from tests.contract.index_documents import FINGERPRINT, SCHEME, AnyIndex, Make
from workers.redis_address import IndexAddress
from workers.redis_index import RedisIndex


@pytest.fixture
def address(redis_url: str) -> Iterator[IndexAddress]:
    """Where nothing stands yet; whatever the test puts there is deleted after it."""
    namespace = f"test-{secrets.token_hex(6)}"
    yield IndexAddress(redis_url, namespace, SCHEME, FINGERPRINT, IndexLimits(bucket_cap=50, documents=6_400))
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
    """Makes an empty index of each form in turn, with these limits."""
    opened: list[RedisIndex] = []
    place: IndexAddress | None = request.getfixturevalue("address") if request.param == "redis" else None

    async def make_index(limits: IndexLimits) -> AnyIndex:
        if place is None:
            return MemoryIndex(limits)
        own = replace(place, limits=limits, part=len(opened))
        opened.append(await RedisIndex.open(own, may_create=True))
        return opened[-1]

    yield make_index
    for index in opened:
        await index.close()


@pytest.fixture
async def index(make: Make) -> AnyIndex:
    return await make(IndexLimits(bucket_cap=50, documents=6_400))
