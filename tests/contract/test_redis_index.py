"""Behaviour that only an index on a server has."""

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from redis.asyncio import Redis
from redis.exceptions import ResponseError

from nearstream.streams.matching.arriving import pack_keys
from nearstream.streams.matching.telling import Matched
from nearstream.streams.store.limits import IndexLimits, IndexLostError, IndexState, IndexUnavailableError
from nearstream.streams.store.messages import Cover, Entry, Query
from nearstream.streams.store.registration import Status
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.redis.index.index import RedisIndex
from nearstream.workers.redis.index.rebuild import IndexRebuild
from nearstream.workers.redis.server import functions
from nearstream.workers.redis.server.address import IndexAddress
from nearstream.workers.redis.server.layout import BUCKET_KINDS
from nearstream.workers.redis.store import calls
from tests.contract.conftest import PARTITIONS
from tests.devstack.redis import redis_server
from tests.devstack.server import LocalServer, running
from tests.support.made_up import KEY, STANDARD, TEXT, words
from tests.support.matched import arrivals, crawl, matcher

BATCH = crawl(PARTITIONS)

FUSE = """
local fuse = 0
local function fused(...)
  fuse = fuse - 1
  if fuse == 0 then error('fuse blown') end
  return redis.call(...)
end
local function set_fuse(_, args) fuse = tonumber(args[1]) return 'OK' end
"""


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """Start a server for these tests alone, which may freeze, fill or reconfigure it."""
    with running(redis_server(tmp_path_factory.mktemp("redis"))) as server:
        yield server


@pytest.fixture
def own_address(own_server: LocalServer, request: pytest.FixtureRequest) -> IndexAddress:
    name = re.sub("[^a-z0-9]", "-", request.node.name)[:32]
    limits = IndexLimits(documents=6_400)
    return IndexAddress(f"redis://{own_server.address}/0", name, STANDARD.name, limits)


async def made(place: IndexAddress) -> RedisIndex:
    return await RedisIndex.open(place, partitions=PARTITIONS, may_create=True)


async def test_fields_of_buckets_take_three_bytes(redis_index: RedisIndex, client: Redis) -> None:
    """The server stores a field that looks like a number below 2^23 in three bytes."""
    keys = b"".join(kind + bytes([at]) * 8 for kind in BUCKET_KINDS for at in range(30))
    await redis_index.store().enter([Entry(4, 0, keys)])
    tag = redis_index.address.tag(0)
    chunks = [tag + kind for kind in BUCKET_KINDS]
    names = [key async for key in client.scan_iter(count=1_000) if key[: len(tag) + 1] in chunks]
    fields = [field for name in names for field in await client.hkeys(name)]
    assert len(fields) == 120
    assert all(10**6 <= int(field) < 2**23 for field in fields)


async def test_an_emptied_server_is_lost_and_stays_so(address: IndexAddress, client: Redis) -> None:
    index = await made(address)
    lane = matcher(index.store())
    await lane.match_all(BATCH[:2])
    for key in await client.keys(f"{{{address.namespace}*"):
        await client.delete(key)
    for _ in range(2):
        with pytest.raises(IndexLostError, match=f"{address.namespace} holds no index: run `nearstream rebuild`"):
            await lane.match_all(BATCH[2:4])
        with pytest.raises(IndexLostError):
            await index.store().fetch([Query(4)])
    assert await index.state() is IndexState.LOST
    with pytest.raises(IndexLostError):
        await RedisIndex.open(address, partitions=PARTITIONS, may_create=False)
    refilled = await made(address)
    more = replace(address, limits=replace(address.limits, documents=10**6))
    assert (await made(more)).layout.chunks == refilled.layout.chunks  # which stay as the index was created
    assert await index.state() is IndexState.LOST
    assert await refilled.state() is IndexState.READY


async def test_one_emptied_slot_of_several_is_a_lost_index(address: IndexAddress, client: Redis) -> None:
    index = await made(replace(address, slots=PARTITIONS))
    lane = matcher(index.store())
    await lane.match_all(BATCH[:4])
    for key in await client.keys(f"{address.tag(2).decode()}*"):
        await client.delete(key)
    with pytest.raises(IndexLostError, match=r"a part of .* was emptied: run `nearstream rebuild`"):
        await lane.match_all(BATCH[4:])
    assert await index.state() is IndexState.LOST
    with pytest.raises(IndexLostError, match="slot 2"):
        await RedisIndex.open(index.address, partitions=PARTITIONS, may_create=False)


async def test_chunks_stay_tightly_packed(redis_index: RedisIndex, client: Redis, address: IndexAddress) -> None:
    batch = arrivals([(f"d{seed}", words(seed, 120)) for seed in range(60)], PARTITIONS)
    lane = matcher(redis_index.store())
    for at in range(0, len(batch), 30):
        await lane.match_all(batch[at : at + 30])
    hashes = [key for key in await client.keys(f"{{{address.namespace}:*") if await client.type(key) == b"hash"]
    assert len(hashes) > 50
    assert {await client.object("encoding", key) for key in hashes} == {b"listpack"}


@pytest.mark.parametrize("seed", [4])
async def test_f39_a_failure_at_any_command_changes_no_verdict(
    address: IndexAddress, client: Redis, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """A function that fails halfway is called again, and all that it had done counts once."""
    suffix, source = functions.function_library()
    first, _, rest = source.replace("redis.call(", "fused(").replace(suffix, f"{suffix}f").partition("\n")
    suffix = f"{suffix}f"
    source = f"{first}\n{FUSE}{rest}\nredis.register_function('set_fuse_{suffix}', set_fuse)\n"
    for module in (functions, calls):
        monkeypatch.setattr(module, "function_name", lambda name: f"nearstream_store_{name}_{suffix}")
    await client.execute_command("FUNCTION LOAD", "REPLACE", source)
    whole = await made(replace(address, scheme=f"{address.scheme}x", beside=True, slots=PARTITIONS))
    index = await made(replace(address, slots=PARTITIONS, beside=True))
    expected, got, random = matcher(whole.store()), matcher(index.store()), Random(seed)
    failures, taken = 0, (set[tuple[str, int]](), set[tuple[str, int]]())
    for at in range(0, len(BATCH), 4):
        part = BATCH[at : at + 4]
        wanted = await expected.match_all(part)
        for _ in range(16):
            await client.execute_command("FCALL", f"set_fuse_{suffix}", 0, random.randrange(1, 400))
            try:
                await got.match_all(part, is_again=True)
            except ResponseError as error:
                failures += "fuse blown" in str(error)
        await client.execute_command("FCALL", f"set_fuse_{suffix}", 0, 0)
        told = await got.match_all(part, is_again=True)
        assert decided(told) == decided(wanted)
        for some, each in zip(taken, (told, wanted), strict=True):
            some.update(places(each))
    assert taken[0] == taken[1]
    assert failures > 20
    await client.execute_command("FUNCTION DELETE", f"nearstream_store_{suffix}")


def decided(found: Sequence[Matched]) -> list[tuple[str, str, str]]:
    """Return kind and family of each document. Which of two equal texts it is compared with, may differ."""
    return [(each.verdict.id, each.verdict.verdict, each.verdict.family.id) for each in found if each.verdict]


def places(found: Sequence[Matched]) -> set[tuple[str, int]]:
    """Return the places that were taken in families. Who of a batch joins first, may differ where it was cut."""
    return {(each.verdict.family.id, each.verdict.family.ordinal) for each in found if each.verdict}


async def test_two_releases_run_side_by_side(
    redis_index: RedisIndex, address: IndexAddress, client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    suffix, source = functions.function_library()
    one, two, three = arrivals([("a", TEXT), ("b", TEXT), ("c", TEXT)], PARTITIONS)
    older = matcher(redis_index.store())
    await older.match_all([one])
    monkeypatch.setattr(calls, "function_name", lambda name: f"nearstream_store_{name}_newer000")
    await client.execute_command("FUNCTION LOAD", source.replace(suffix, "newer000"))
    newer = await made(address)
    (found,) = await matcher(newer.store()).match_all([two])
    assert found.verdict is not None
    assert found.verdict.family.ordinal == 2
    monkeypatch.undo()
    (found,) = await older.match_all([three])
    assert found.verdict is not None
    assert found.verdict.family.ordinal == 3
    await client.execute_command("FUNCTION DELETE", "nearstream_store_newer000")


async def test_f09_an_evicting_server_is_refused(own_address: IndexAddress) -> None:
    server = Redis.from_url(own_address.url)
    await server.config_set("maxmemory-policy", "allkeys-lru")
    try:
        with pytest.raises(SettingsError, match="noeviction"):
            await made(own_address)
    finally:
        await server.config_set("maxmemory-policy", "noeviction")
        await server.aclose()


async def test_a_full_server_refuses_writes_but_answers(own_address: IndexAddress) -> None:
    index = await made(own_address)
    one, other = arrivals([("a", TEXT), ("b", TEXT)], PARTITIONS)
    lane = matcher(index.store())
    (first,) = await lane.match_all([one])
    assert one.position is not None
    await index.cover([one.position])
    server = Redis.from_url(own_address.url)
    await server.config_set("maxmemory", "1")
    try:
        with pytest.raises(IndexUnavailableError, match="refuses writes"):
            await lane.match_all([other])
        with pytest.raises(IndexUnavailableError, match="refuses writes"):
            await RedisIndex.open(own_address, partitions=PARTITIONS, may_create=False)
        reader = await RedisIndex.open_to_read(own_address)
        assert await reader.checkpoints() == {one.position.partition: one.position.offset}
        for each in (index, reader):
            assert await each.state() is IndexState.READY
            (view,) = await each.store().fetch([Query(first.registered.number, record=True)])
            assert view is not None
            assert view.record is not None
            assert one.signature is not None
            keys = b"".join(pack_keys(STANDARD.keys(one.signature, KEY)))
            assert await each.store().peek([Entry(0, 0, keys)]) != [[]]
        with pytest.raises(IndexLostError, match="holds no index"):
            await RedisIndex.open_to_read(replace(own_address, namespace="nobody"))
    finally:
        await server.config_set("maxmemory", "0")
        await server.aclose()
    (found,) = await lane.match_all([other])
    assert found.registered.status in (Status.NEW, Status.KNOWN)


async def test_a_cancelled_call_leaves_no_stale_reply(own_server: LocalServer, own_address: IndexAddress) -> None:
    index = await made(own_address)
    store = index.store()
    await store.cover([Cover(partition, 10 + partition) for partition in range(PARTITIONS)])
    own_server.pause()
    try:
        for _ in range(5):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(matcher(store).match_all(BATCH[:4]), 0.05)
        with pytest.raises(IndexUnavailableError):
            await store.fetch([Query(4)])
    finally:
        own_server.resume()
    lane, fresh = matcher(store), await made(replace(own_address, scheme="other-1", beside=True))
    found = await lane.match_all(BATCH, is_again=True)
    assert [each.verdict for each in found] == [each.verdict for each in await matcher(fresh.store()).match_all(BATCH)]
    assert await index.checkpoints() == {partition: 10 + partition for partition in range(PARTITIONS)}


async def test_an_unreachable_server_is_an_outage() -> None:
    with pytest.raises(IndexUnavailableError):
        await made(IndexAddress("redis://127.0.0.1:1", "n", STANDARD.name))


def _documented_rights() -> list[str]:
    """Return the rights of a worker, as the page for operators has them."""
    page = (Path(__file__).parent.parent.parent / "docs/operations.md").read_text().replace("\\\n", " ")
    (line,) = re.findall(r"^user nearstream on >PASSWORD (.*)$", page, re.MULTILINE)
    return str(line).split()


async def test_the_documented_rights_suffice(own_address: IndexAddress) -> None:
    server = Redis.from_url(own_address.url)
    rights = [right.replace("nearstream", own_address.namespace) for right in _documented_rights()]
    await server.execute_command("ACL", "SETUSER", "worker", "reset", "on", ">pass", *rights)
    address = replace(own_address, url=own_address.url.replace("//", "//worker:pass@"), slots=PARTITIONS)
    index = await made(address)
    lane = matcher(index.store())
    await lane.match_all(BATCH)
    await lane.match_all(BATCH, is_again=True)
    await index.cover([each.position for each in BATCH if each.position])
    assert await index.trusted_checkpoints()
    await server.delete(address.key)
    with pytest.raises(SettingsError, match="permission"):
        await IndexRebuild.begin(address, partitions=PARTITIONS)
    await server.execute_command("ACL", "SETUSER", "worker", "+scan", "+unlink")
    rebuild = await IndexRebuild.begin(address, partitions=PARTITIONS)
    await matcher(rebuild.store).match_all(BATCH)
    await rebuild.lease.finish()
    await server.execute_command("ACL", "SETUSER", "worker", "-hmget", "-zcount")
    with pytest.raises(SettingsError, match="our user may not run hmget, zcount: grant these commands"):
        await RedisIndex.open(address, partitions=PARTITIONS, may_create=False)
    with pytest.raises(SettingsError):
        await made(replace(address, url=address.url.replace("pass", "wrong")))
    with pytest.raises(SettingsError):
        await made(replace(address, namespace="foreign"))
    await server.aclose()


def _lua() -> str:
    folder = Path(functions.__file__).parent / "lua"
    return "".join(path.read_text() for path in sorted(folder.glob("*.lua")))


def test_every_command_of_the_functions_is_tried_at_the_start_and_documented() -> None:
    used = set(re.findall(r"\bcall\('([A-Z]+)'", _lua()))
    (probe,) = re.findall(r"nearstream_store_probe_@@.*?\nend\)", _lua(), re.DOTALL)
    tried = set(re.findall(r"(?:try\(|[{,] ?)'([A-Z]+)'", probe)) - {"ENCODING", "PX"}
    assert tried == used | {"OBJECT"}
    documented = {right[1:].partition("|")[0].upper() for right in _documented_rights() if right[0] == "+"}
    assert tried <= documented
