"""Fixtures for stores in memory and on Redis, each in its own namespace."""

import secrets
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import pytest
from redis import Redis

from nearstream.streams.store.limits import IndexLimits
from nearstream.streams.store.local import local_store
from nearstream.streams.store.store import Store
from nearstream.workers.redis_index.address import IndexAddress
from nearstream.workers.redis_index.index import RedisIndex
from tests.support.made_up import KEY, STANDARD

PARTITIONS = 4


@pytest.fixture(autouse=True)
def _patient(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let calls wait long for the shared server, because a busy machine may stop it for seconds.

    Tests of what happens at a deadline have a server of their own, which they stop.
    """
    if not {"own_server", "own_address", "nodes"} & set(request.fixturenames):
        monkeypatch.setattr("nearstream.workers.redis_index.opening._DEADLINE_SECONDS", 60.0)


@pytest.fixture
def address(redis_url: str) -> Iterator[IndexAddress]:
    """Return the address of an unused namespace, which is deleted after the test."""
    namespace = f"test-{secrets.token_hex(6)}"
    limits = IndexLimits(bucket_cap=50, documents=6_400)
    yield IndexAddress(redis_url, namespace, STANDARD.name, KEY.fingerprint, limits, look_up_seconds=60.0)
    with Redis.from_url(redis_url) as client:
        for key in list(client.scan_iter(match=f"{{{namespace}*", count=1_000)):
            client.delete(key)


@pytest.fixture
async def redis_index(address: IndexAddress) -> AsyncIterator[RedisIndex]:
    index = await RedisIndex.open(address, partitions=PARTITIONS, may_create=True)
    yield index
    await index.close()


@pytest.fixture(params=["memory", "redis of one slot", "redis of four slots"])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    """Return an empty store. The test runs once with each kind."""
    if request.param == "memory":
        yield local_store(IndexLimits(bucket_cap=50))
        return
    own = replace(request.getfixturevalue("address"), slots=1 if "one" in request.param else PARTITIONS)
    index = await RedisIndex.open(own, partitions=PARTITIONS, may_create=True)
    yield index.store()
    await index.close()
