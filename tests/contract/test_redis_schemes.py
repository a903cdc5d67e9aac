"""Schemes that share a namespace: one is active, another one is built beside it, switched to, and dropped."""

import asyncio
from dataclasses import replace

import pytest
from redis.asyncio import Redis

from nearstream.streams.store.limits import IndexState
from nearstream.streams.store.registration import Status
from nearstream.workers.config.exit_codes import RefusalError
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.redis.index.index import RedisIndex
from nearstream.workers.redis.index.rebuild import IndexRebuild
from nearstream.workers.redis.index.schemes import Claim, drop_scheme, schemes, switch_scheme
from nearstream.workers.redis.server.address import IndexAddress
from tests.contract.conftest import PARTITIONS
from tests.support.made_up import STANDARD
from tests.support.matched import crawl, matcher

BATCH = crawl(PARTITIONS)
OURS = STANDARD.name


async def made(place: IndexAddress) -> RedisIndex:
    return await RedisIndex.open(place, partitions=PARTITIONS, may_create=True)


def states(claims: dict[str, Claim]) -> dict[str, str]:
    return {name: claim.state for name, claim in claims.items()}


async def test_schemes_are_switched_and_switched_back(address: IndexAddress) -> None:
    active = await made(address)
    other = replace(address, scheme="test-2")
    with pytest.raises(SettingsError, match=f"holds {OURS}, but the settings give test-2"):
        await made(other)
    beside = await made(replace(other, beside=True, slots=2))
    for index in (active, beside):
        (found,) = await matcher(index.store()).match_all(BATCH[:1])
        assert found.verdict is not None
        assert found.verdict.verdict == "unique"
    assert states(await schemes(address)) == {OURS: "active", "test-2": "building"}
    await RedisIndex.open(replace(other, slots=2), partitions=PARTITIONS, may_create=False)
    assert states(await switch_scheme(other)) == {OURS: "retired", "test-2": "active"}
    with pytest.raises(SettingsError, match="retired"):
        await made(address)
    assert states(await switch_scheme(address)) == {OURS: "active", "test-2": "retired"}
    assert states(await switch_scheme(address)) == {OURS: "active", "test-2": "retired"}
    with pytest.raises(SettingsError, match="not test-9"):
        await switch_scheme(replace(address, scheme="test-9"))


async def test_a_dropped_scheme_leaves_nothing(address: IndexAddress, client: Redis) -> None:
    active = await made(address)
    other = replace(address, scheme="test-2", beside=True, slots=3)
    beside = await made(other)
    await matcher(active.store()).match_all(BATCH[:2])
    await matcher(beside.store()).match_all(BATCH)
    keys = f"{other.prefix.decode()}*"
    assert {key[: key.index(b"}") + 1] for key in await client.keys(keys)} == {other.tag(slot) for slot in range(3)}
    assert len(await client.keys(keys)) == await drop_scheme(other)
    assert states(await schemes(address)) == {OURS: "active"}
    assert not await client.keys(keys)
    assert await active.state() is IndexState.READY
    assert await beside.state() is IndexState.LOST
    with pytest.raises(RefusalError, match="is active"):
        await drop_scheme(address)
    with pytest.raises(SettingsError, match="not test-2"):
        await drop_scheme(other)


async def test_nothing_is_built_on_what_is_left_of_a_scheme(address: IndexAddress, client: Redis) -> None:
    await made(address)
    other = replace(address, scheme="test-2", beside=True)
    beside = await made(other)
    await matcher(beside.store()).match_all(BATCH[:1])
    name = f"test-{address.namespace}"
    await client.execute_command("ACL", "SETUSER", name, "on", ">pw", "~*", "+@all", "-unlink")
    with pytest.raises(SettingsError, match="no permissions"):
        await drop_scheme(replace(other, url=address.url.replace("//", f"//{name}:pw@")))
    await client.execute_command("ACL", "DELUSER", name)
    assert states(await schemes(address)) == {OURS: "active", "test-2": "dropped"}
    with pytest.raises(SettingsError, match="run `nearstream index drop test-2` again"):
        await IndexRebuild.begin(other, partitions=PARTITIONS)
    with pytest.raises(SettingsError, match="is being dropped"):
        await made(other)
    await drop_scheme(other)
    rebuild = await IndexRebuild.begin(other, partitions=PARTITIONS)
    (found,) = await matcher(rebuild.store).match_all(BATCH[:1])
    assert found.registered.status is Status.NEW


async def test_of_two_that_switch_at_once_each_leaves_one_active(address: IndexAddress) -> None:
    both = [address, replace(address, scheme="test-2", beside=True)]
    for each in both:
        await made(each)
    for _ in range(10):
        await asyncio.gather(*(switch_scheme(each) for each in both), return_exceptions=True)
        assert sorted(states(await schemes(address)).values()) == ["active", "retired"]
