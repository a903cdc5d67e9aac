"""Fixtures for stores in memory and on Redis, each in its own namespace."""

import secrets
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from redis.asyncio import Redis as AsyncRedis

from nearstream.streams.store.limits import IndexLimits
from nearstream.streams.store.store import Shape, Store
from nearstream.workers.redis.index.index import RedisIndex
from nearstream.workers.redis.server.address import IndexAddress
from nearstream.workers.sqlite.file import IndexFile
from tests.devstack.stack import started_stack
from tests.support.made_up import STANDARD
from tests.support.stores import Committing, Make, parts_store, through

PARTITIONS = 4
LIMITS = IndexLimits(bucket_cap=50, documents=6_400)


@pytest.fixture(autouse=True)
def _patient(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let calls wait long for the shared server, because a busy machine may stop it for seconds.

    Tests of what happens at a deadline have a server of their own, which they stop.
    """
    if not {"own_server", "own_address", "nodes"} & set(request.fixturenames):
        monkeypatch.setattr("nearstream.workers.redis.index.index._DEADLINE_SECONDS", 60.0)


@pytest.fixture(autouse=True)
async def _closed(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Close each index that a test has opened, at its end."""
    opened: list[RedisIndex] = []
    initialize = RedisIndex.__init__

    def noted(index: RedisIndex, *arguments: Any) -> None:  # noqa: ANN401 - those of an index
        initialize(index, *arguments)
        opened.append(index)

    monkeypatch.setattr(RedisIndex, "__init__", noted)
    yield
    for index in opened:
        await index.close()


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """Return the URL of a Redis for these tests alone, which look through all keys often, and leave none."""
    with started_stack(kafka=False) as stack:
        yield stack.redis


@pytest.fixture
def address(redis_url: str) -> Iterator[IndexAddress]:
    """Return the address of an unused namespace, which is deleted after the test."""
    namespace = f"test-{secrets.token_hex(6)}"
    yield IndexAddress(redis_url, namespace, STANDARD.name, LIMITS, look_up_seconds=60.0)
    with Redis.from_url(redis_url) as client:
        if keys := list(client.scan_iter(match=f"{{{namespace}*", count=1_000)):
            client.unlink(*keys)


@pytest.fixture
async def client(address: IndexAddress) -> AsyncIterator[AsyncRedis]:
    async with AsyncRedis.from_url(address.url) as connected:
        yield connected


@pytest.fixture
async def redis_index(address: IndexAddress) -> RedisIndex:
    return await RedisIndex.open(address, partitions=PARTITIONS, may_create=True)


@pytest.fixture(params=["memory", "a file", "redis of four slots"])
async def make(request: pytest.FixtureRequest) -> Make:
    """Return a function that makes empty stores. The test runs once with each kind."""
    names = count()

    async def make_one(limits: IndexLimits = LIMITS) -> Store:
        if request.param == "memory":
            return parts_store(limits, Shape(1, PARTITIONS))
        if request.param == "a file":
            tmp_path: Path = request.getfixturevalue("tmp_path")
            index = IndexFile(tmp_path / f"{next(names)}.db", STANDARD.name, limits, Shape(1, PARTITIONS))
            request.addfinalizer(index.close)
            return through(index.store, lambda carrier: Committing(index, carrier))
        address: IndexAddress = request.getfixturevalue("address")
        own = replace(
            address,
            namespace=f"{address.namespace}-{next(names)}",
            limits=replace(limits, documents=LIMITS.documents),
            slots=PARTITIONS,
        )
        return (await RedisIndex.open(own, partitions=PARTITIONS, may_create=True)).store()

    return make_one


@pytest.fixture
async def store(make: Make) -> Store:
    """Return an empty store. The test runs once with each kind."""
    return await make()
