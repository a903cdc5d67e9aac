"""The deployment record of an index: the first start writes it, and of several at once one wins."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from nearstream.workers.config.settings import SettingsError
from nearstream.workers.redis.kept.deployments import (
    DeploymentRecord,
    add_deployment,
    deployments,
    forget_scheme,
    replace_deployment,
)
from nearstream.workers.redis.server.address import IndexAddress
from nearstream.workers.redis.server.client import Client, open_client

TOPIC = "nearstream.signatures.v1"
FIRST = DeploymentRecord("dense-1", "0d3e89c8", "one", 6)


@pytest.fixture
async def client(address: IndexAddress) -> AsyncIterator[Client]:
    async with open_client(address.connection) as opened:
        yield opened


async def test_the_first_record_of_a_topic_stays(client: Client, address: IndexAddress) -> None:
    assert await deployments(client, address) == {}
    assert await add_deployment(client, address, TOPIC, FIRST) == {TOPIC: FIRST}
    assert await add_deployment(client, address, TOPIC, replace(FIRST, scheme="compact-1")) == {TOPIC: FIRST}
    beside = replace(FIRST, scheme="compact-1", group="two")
    assert await add_deployment(client, address, f"b.{TOPIC}", beside) == {TOPIC: FIRST, f"b.{TOPIC}": beside}


async def test_of_several_first_starts_at_once_all_read_one_record(address: IndexAddress) -> None:
    async def start(number: int) -> DeploymentRecord:
        async with open_client(address.connection) as client:
            return (await add_deployment(client, address, TOPIC, replace(FIRST, scheme=f"s-{number}")))[TOPIC]

    assert len(set(await asyncio.gather(*map(start, range(20))))) == 1


async def test_a_group_takes_over_one_topic(client: Client, address: IndexAddress) -> None:
    for topic in (TOPIC, f"b.{TOPIC}"):
        await add_deployment(client, address, topic, FIRST)
    second = replace(FIRST, group="two")
    await replace_deployment(client, address, TOPIC, second)
    assert await deployments(client, address) == {TOPIC: second, f"b.{TOPIC}": FIRST}


async def test_a_scheme_is_forgotten_on_all_its_topics(client: Client, address: IndexAddress) -> None:
    await add_deployment(client, address, TOPIC, FIRST)
    await add_deployment(client, address, f"b.{TOPIC}", replace(FIRST, scheme="compact-1"))
    assert await forget_scheme(address, "noise-1") == []
    assert await forget_scheme(address, "dense-1") == [TOPIC]
    assert set(await deployments(client, address)) == {f"b.{TOPIC}"}


async def test_a_worker_that_signs_needs_few_rights(client: Client, address: IndexAddress) -> None:
    name = f"test-{address.namespace}"
    rights = ("on", ">pw", f"~{{{address.namespace}}}:deployments", "+hgetall", "+hsetnx", "+hset")
    await client.execute_command("ACL", "SETUSER", name, *rights)
    limited = replace(address, url=address.url.replace("//", f"//{name}:pw@"))
    try:
        async with open_client(limited.connection) as own:
            assert await add_deployment(own, limited, TOPIC, FIRST) == {TOPIC: FIRST}
            await replace_deployment(own, limited, TOPIC, FIRST)
            with pytest.raises(SettingsError, match="the server refuses us"):
                await deployments(own, replace(limited, namespace="other"))
    finally:
        await client.execute_command("ACL", "DELUSER", name)
