"""Behaviour that only an index on a server has."""

import asyncio
import multiprocessing
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from redis.asyncio import Redis
from redis.exceptions import ResponseError

from nearstream.streams.store.limits import (
    ANCHOR_HEADS,
    Admission,
    Admitted,
    IndexBehindError,
    IndexLimits,
    IndexLostError,
    IndexState,
    IndexUnavailableError,
)
from nearstream.streams.store.local import local_store
from nearstream.streams.store.registration import Status
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.redis_index import client as redis_client
from nearstream.workers.redis_index.address import IndexAddress
from nearstream.workers.redis_index.families import families
from nearstream.workers.redis_index.function_library import LUA_CONSTANTS
from nearstream.workers.redis_index.index import RedisIndex
from nearstream.workers.redis_index.layout import FEW, KeyKind
from nearstream.workers.redis_index.protocol import pack_admissions
from nearstream.workers.redis_index.stats import index_facts
from tests.devstack.redis import redis_server
from tests.devstack.server import LocalServer, running
from tests.support.index_documents import (
    SCHEME,
    START_MS,
    admission,
    admit_share,
    at_offset,
    ids,
    in_order,
    pairs,
    removal,
    settlement,
    traffic,
    with_repeats,
)
from tests.support.settlements import decide
from tests.support.stored_texts import StoredTexts

FUSE = """
local fuse = 0
local function fused(...)
  fuse = fuse - 1
  if fuse == 0 then error('fuse blown') end
  return redis.call(...)
end
local function set_fuse(_, args) fuse = tonumber(args[1]) return 'OK' end
"""


@pytest.fixture
async def client(address: IndexAddress) -> AsyncIterator[Redis]:
    connected = Redis.from_url(address.url)
    yield connected
    await connected.aclose()


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """Start a server for these tests alone, which may freeze, fill or reconfigure it."""
    with running(redis_server(tmp_path_factory.mktemp("redis"))) as server:
        yield server


@pytest.fixture
def own_address(own_server: LocalServer, request: pytest.FixtureRequest) -> IndexAddress:
    name = re.sub("[^a-z0-9]", "-", request.node.name)[:32]
    return IndexAddress(f"redis://{own_server.address}/0", name, SCHEME, "k", IndexLimits(documents=6_400))


async def test_an_index_of_another_format_is_refused(address: IndexAddress, client: Redis) -> None:
    index = await RedisIndex.open(address, may_create=True)
    await index.close()
    await client.hset(address.key, "format", "5")
    with pytest.raises(SettingsError, match="holds an index of format 5, this release keeps 7"):
        await RedisIndex.open(address, may_create=True)


async def test_fields_of_buckets_take_three_bytes(redis_index: RedisIndex, client: Redis) -> None:
    """The server stores a field that looks like a number below 2^23 in three bytes."""
    await redis_index.admit([admission("a", bands=range(60), anchors=range(60), lineage="l")])
    tag = redis_index.address.key[:-1]
    chunks = [key async for key in client.scan_iter() if key[:-5] == tag and key[-5:-4] in b"xlba"]
    fields = [field for chunk in chunks for field in await client.hkeys(chunk)]
    assert len(fields) == 122
    assert all(10**6 <= int(field) < 2**23 for field in fields)


@pytest.mark.parametrize("seed", range(6))
async def test_memory_and_redis_answer_alike(address: IndexAddress, client: Redis, seed: int) -> None:
    random = Random(seed)
    limits = IndexLimits(
        bucket_cap=random.choice([12, 14, 50]),
        candidates=random.choice([3, 20]),
        retention_seconds=random.choice([0, 3_600]),
        documents=640,
        events_per_family=random.choice([0, 1, 1, 2]),
    )
    memory = local_store(limits)
    redis = await RedisIndex.open(replace(address, limits=limits), may_create=True)
    batch = with_repeats(traffic(random, 400, 50), random)
    done, now_ms = 0, START_MS
    while done < len(batch):
        part = batch[done : done + random.randrange(1, 40)]
        done += len(part)
        part += [batch[random.randrange(done)] for _ in range(4)]
        now_ms += random.randrange(240_000)
        answers = await memory.admit(part, now_ms)
        assert await redis.admit(part, now_ms) == answers
        await decide(random, part, answers, (memory, redis), now_ms)
        assert await redis.look_up(part[0].keys, 9, now_ms) == await memory.look_up(part[0].keys, 9, now_ms)
    ours = {each.number: replace(each, representative=0) async for each in families(redis, now_ms)}
    theirs = {each.number: replace(each, representative=0) for each in await memory.families()}
    assert ours == theirs or limits.retention_seconds
    stored = await StoredTexts.of(client, redis.address.key[:-1])
    stored.check()
    assert stored.shared
    await redis.close()


async def test_members_of_a_family_get_a_key_of_their_own_when_they_are_many(
    redis_index: RedisIndex, client: Redis
) -> None:
    memory, tag = local_store(redis_index.address.limits), redis_index.address.key[:-1]
    arriving = [admission(f"d{number:02}", bands=[1], text="t", at=number) for number in range(FEW + 4)]
    for step, one in enumerate([*arriving[: FEW - 2], removal("d00"), removal("d03"), *arriving[FEW - 2 :]]):
        for index in (redis_index, memory):
            (answer,) = await index.admit([one], START_MS + step)
            if one.signature is not None:
                joins = answer.candidates[0] if answer.candidates else None
                await index.settle([settlement(one, answer, joins, is_exact=True)], START_MS + step)
        stored = await client.exists(tag + KeyKind.MEMBERS + bytes((0, 0, 0, 0, 1)))
        assert stored == (step >= FEW + 2)
        assert [each async for each in families(redis_index, START_MS + step)] == list(await memory.families())
    (facts,) = await memory.families()
    assert (facts.size, facts.joined) == (FEW + 2, (FEW + 3,) * 3)


async def test_a_call_stops_at_its_work_bound_and_goes_on(redis_index: RedisIndex, client: Redis) -> None:
    batch = [admission(str(one), anchors=[f"{one} {slot}" for slot in range(300)]) for one in range(12)]
    packed = pack_admissions(batch, redis_index.layout)
    head = (redis_index.layout.epoch, 50, 20, 0, 1, "")
    reply = await redis_client.call(client, "admit", redis_index.address.key, *head, *packed)
    assert len(reply[1]) == 4
    assert [answer.number for answer in await redis_index.admit(batch)] == list(range(1, 13))


async def test_the_first_document_of_a_step_prolongs_the_life_of_a_spill(address: IndexAddress, client: Redis) -> None:
    """A spill lives a step of the retention longer than its entries, so the next ones of this step need not."""
    limits = replace(address.limits, retention_seconds=256, events_per_family=0)
    index = await RedisIndex.open(replace(address, limits=limits), may_create=True)
    arriving = [admission(str(number), anchors=[1]) for number in range(ANCHOR_HEADS + 4)]
    await index.admit(arriving[:-3], START_MS)
    prefix = index.shards[0].tag + KeyKind.SPILL
    (spill,) = [key async for key in client.scan_iter(count=1_000) if key.startswith(prefix)]
    assert 256_000 < await client.pttl(spill) <= 257_000
    await client.pexpire(spill, 200_000)  # as if a minute had passed
    await index.admit(arriving[-3:-2], START_MS)
    assert await client.pttl(spill) <= 200_000
    await index.admit(arriving[-2:-1], START_MS + 1_000)
    assert 256_000 < await client.pttl(spill) <= 257_000
    (last,) = await index.admit(arriving[-1:], START_MS + 1_000)
    assert len(last.candidates) == ANCHOR_HEADS + 3
    await index.close()


async def test_hot_buckets_stop_a_call_too(address: IndexAddress, client: Redis) -> None:
    index = await RedisIndex.open(
        replace(address, limits=replace(address.limits, bucket_cap=300, candidates=60, events_per_family=0)),
        may_create=True,
    )
    # No two buckets have the same entries, because those that have are read as one.
    batch = [admission(str(one), anchors=[slot for slot in range(20) if (one + slot) % 21]) for one in range(400)]
    await index.admit(batch[:300])
    head = (index.layout.epoch, 300, 60, 0, 0, "")
    reply = await redis_client.call(client, "admit", address.key, *head, *pack_admissions(batch[300:332], index.layout))
    assert 1 <= len(reply[1]) < 5
    answers = await index.admit(batch[300:])
    assert [len(answer.candidates) for answer in answers if answer.status == "new"] == [60] * (100 - len(reply[1]))
    await index.close()


async def test_an_emptied_server_is_lost_and_stays_so(address: IndexAddress, client: Redis) -> None:
    index = await RedisIndex.open(address, may_create=True)
    await index.admit(in_order([admission("a")]))
    for key in await client.keys(f"{{{address.namespace}*"):
        await client.delete(key)
    with pytest.raises(IndexLostError):
        await index.admit([at_offset(admission("b"), 1)])
    with pytest.raises(IndexLostError):
        await index.settle([settlement(admission("a"), Admitted(Status.NEW, 1))])
    with pytest.raises(IndexLostError):
        await index.look_up(admission("a").keys, 5)
    assert await index.state() is IndexState.LOST
    with pytest.raises(IndexLostError):
        await RedisIndex.open(address, may_create=False)
    refilled = await RedisIndex.open(address, may_create=True)
    assert await index.state() is IndexState.LOST
    assert await refilled.state() is IndexState.READY
    await index.close()
    await refilled.close()


async def test_a_lost_tail_is_told_and_filled(redis_index: RedisIndex, client: Redis, address: IndexAddress) -> None:
    batch = in_order([admission(str(one), bands=[one // 2]) for one in range(60)])
    await redis_index.admit(batch[:40])
    saved = {key: await client.dump(key) for key in await client.keys(f"{{{address.namespace}:*")}
    await redis_index.admit(batch[40:50])
    for key in await client.keys(f"{{{address.namespace}:*"):
        await client.delete(key)
    for key, value in saved.items():
        await client.restore(key, 0, value)
    with pytest.raises(IndexBehindError) as caught:
        await redis_index.admit(batch[50:])
    assert caught.value.checkpoint == 39
    assert await redis_index.state() is IndexState.BEHIND
    answers = await redis_index.admit(batch[40:])
    assert [ids(answer.candidates) for answer in answers[1::2]] == [[str(one)] for one in range(40, 60, 2)]
    assert await redis_index.state() is IndexState.READY


async def test_a_dump_holds_no_word_and_no_readable_id_in_a_key(
    redis_index: RedisIndex, client: Redis, address: IndexAddress
) -> None:
    await redis_index.admit(in_order([admission("secret-name", bands=[1], text="some private words"), removal("b")]))
    for key in await client.keys(f"{{{address.namespace}*"):
        assert b"secret-name" not in key
        assert b"private" not in await client.dump(key)


async def test_checkpoints_are_told(redis_index: RedisIndex) -> None:
    await redis_index.admit([*in_order([admission("a"), removal("b")]), at_offset(admission("c"), 0, partition=7)])
    assert await redis_index.checkpoints() == {0: 1, 7: 0}


async def test_another_key_or_scheme_is_refused(address: IndexAddress) -> None:
    index = await RedisIndex.open(address, may_create=True)
    await index.close()
    with pytest.raises(SettingsError, match=r"0badcafe.*feedface"):
        await RedisIndex.open(replace(address, key_fingerprint="feedface"), may_create=False)
    with pytest.raises(SettingsError, match=r"test-1.*other-2"):
        await RedisIndex.open(replace(address, scheme="other-2"), may_create=True)


async def test_a_layout_is_fixed_when_an_index_is_created(address: IndexAddress) -> None:
    first = await RedisIndex.open(address, may_create=True)
    await first.admit([admission("a", bands=[1])])
    planned = replace(address, limits=replace(address.limits, documents=9_999_999))
    second = await RedisIndex.open(planned, may_create=False)
    (answer,) = await second.admit([admission("b", bands=[1])])
    assert ids(answer.candidates) == ["a"]
    await first.close()
    await second.close()


async def test_chunks_stay_tightly_packed(redis_index: RedisIndex, client: Redis, address: IndexAddress) -> None:
    documents = [
        admission(str(one), bands=range(20), anchors=[one % 9, one], lineage="l", text=one) for one in range(300)
    ]
    await redis_index.admit(documents)
    hashes = [key for key in await client.keys(f"{{{address.namespace}:*") if await client.type(key) == b"hash"]
    assert {await client.object("encoding", key) for key in hashes} == {b"listpack"}


async def test_memory_follows_the_retention(address: IndexAddress, client: Redis) -> None:
    limits = IndexLimits(retention_seconds=100, documents=20)
    index = await RedisIndex.open(replace(address, limits=limits), may_create=True)
    for step in range(800):
        one = [admission(f"{step} {each}", bands=[f"{step} {each}"]) for each in range(5)]
        await index.admit(one, START_MS + 1_000 * step)
    for letter in "bxi":
        fields = [await client.hlen(key) for key in await client.keys(f"{{{address.namespace}:*}}{letter}*")]
        assert 500 <= sum(fields) < 1.4 * 500
    assert await client.llen(address.key[:-1] + b"g") <= 258
    await index.close()


@pytest.mark.parametrize("seed", [4, 5])
async def test_f39_a_failure_at_any_command_loses_no_pair(
    address: IndexAddress, client: Redis, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    suffix, source = redis_client.function_library()
    suffix = f"{suffix}f"
    first, _, rest = (
        source.replace("redis.call(", "fused(").replace(redis_client.function_library()[0], suffix).partition("\n")
    )
    source = f"{first}\n{FUSE}{rest}\nredis.register_function('set_fuse_{suffix}', set_fuse)\n"
    monkeypatch.setattr(redis_client, "function_library", lambda: (suffix, source))
    index, memory = await RedisIndex.open(address, may_create=True), local_store(address.limits)
    random = Random(seed)
    batch = [replace_bands(one, random) for one in traffic(random, 500, 120)]
    expected: set[frozenset[str]] = set()
    got: set[frozenset[str]] = set()
    failures = 0
    for start in range(0, len(batch), 10):
        part = batch[start : start + 10]
        expected = living(expected, part, await memory.admit(part, START_MS))
        for _ in range(3):
            await client.execute_command("FCALL", f"set_fuse_{suffix}", 0, random.randrange(1, 220))
            try:
                got = living(got, part, await index.admit(part, START_MS))
            except ResponseError as error:
                failures += "fuse blown" in str(error)
        await client.execute_command("FCALL", f"set_fuse_{suffix}", 0, 0)
        got = living(got, part, await index.admit(part, START_MS))
    assert failures > 60
    assert len(expected) > 150
    assert got == expected
    assert ids(await index.look_up(batch[-1].keys, 50, START_MS)) == ids(
        await memory.look_up(batch[-1].keys, 50, START_MS)
    )
    (await StoredTexts.of(client, index.address.key[:-1])).check(counts_are_exact=False)
    await index.close()
    await client.execute_command("FUNCTION DELETE", f"nearstream_{suffix}")


def living(known: set[frozenset[str]], batch: Sequence[Admission], answers: Sequence[Admitted]) -> set[frozenset[str]]:
    """Return the pairs found so far that name no removed document.

    Pairs have no direction, because a document that an interrupted call had removed gets a later number when it is
    admitted again.
    """
    for one, answer in zip(batch, answers, strict=True):
        if one.signature is None:
            gone = one.document_key.removeprefix("default/")
            known = {pair for pair in known if gone not in {name.split()[0] for name in pair}}
        else:
            known = known | {frozenset(pair) for pair in pairs([one], [answer])}
    return known


def replace_bands(one: Admission, random: Random) -> Admission:
    """Return the admission with random bands, so that no bucket becomes full.

    Entries whose numbers were given out by an interrupted call stay in their buckets.
    """
    if one.signature is None:
        return one
    bands = [random.randrange(900) for _ in range(3)]
    made = admission(one.signature.id, bands=bands, at=one.signature.observed_at_ms - START_MS)
    return replace(made, position=one.position)


async def test_two_releases_run_side_by_side(
    redis_index: RedisIndex, address: IndexAddress, client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    suffix, source = redis_client.function_library()
    await redis_index.admit([admission("a", bands=[1])])
    monkeypatch.setattr(redis_client, "function_library", lambda: ("newer000", source.replace(suffix, "newer000")))
    newer = await RedisIndex.open(address, may_create=False)
    await newer.admit([admission("b", bands=[1])])
    monkeypatch.undo()
    (answer,) = await redis_index.admit([admission("c", bands=[1])])
    assert ids(answer.candidates) == ["a", "b"]
    await newer.close()
    await client.execute_command("FUNCTION DELETE", "nearstream_newer000")


async def test_unloaded_functions_are_loaded_again(redis_index: RedisIndex, client: Redis) -> None:
    await client.execute_command("FUNCTION DELETE", f"nearstream_{redis_client.function_library()[0]}")
    assert await redis_index.state() is IndexState.READY


def test_of_halves_admitted_by_racing_processes_exactly_one_sees_the_other(address: IndexAddress) -> None:
    shares, count = 3, 300
    with ProcessPoolExecutor(shares, mp_context=multiprocessing.get_context("spawn")) as processes:
        runs = [processes.submit(admit_share, address, share, count) for share in range(shares)]
        met = {name: seen for run in runs for name, seen in run.result(timeout=60).items()}
    for pair in range(count):
        trio = {f"{share}-{pair}" for share in range(shares)}
        order = sorted(trio, key=lambda name: len(met[name]))
        assert [set(met[name]) for name in order] == [set(), {order[0]}, set(order[:2])]


async def test_an_evicting_server_is_refused(own_server: LocalServer, own_address: IndexAddress) -> None:
    server = Redis.from_url(own_address.url)
    await server.config_set("maxmemory-policy", "allkeys-lru")
    try:
        with pytest.raises(SettingsError, match="noeviction"):
            await RedisIndex.open(own_address, may_create=True)
    finally:
        await server.config_set("maxmemory-policy", "noeviction")
        await server.aclose()


async def test_a_full_server_refuses_writes_but_answers(own_server: LocalServer, own_address: IndexAddress) -> None:
    index = await RedisIndex.open(own_address, may_create=True)
    await index.admit(in_order([admission("a", bands=[1])]))
    server = Redis.from_url(own_address.url)
    await server.config_set("maxmemory", "1")
    try:
        with pytest.raises(IndexUnavailableError):
            await index.admit([at_offset(admission("b", bands=[1]), 1)])
        assert await index.state() is IndexState.READ_ONLY
        assert ids(await index.look_up(admission("x", bands=[1]).keys, 5)) == ["a"]
        with pytest.raises(IndexUnavailableError, match="refuses writes"):
            await RedisIndex.open(own_address, may_create=False)
        reader = await RedisIndex.open_to_read(own_address)
        (facts,) = await index_facts(reader)
        assert (facts.documents, facts.checkpoints) == (1, {0: 0})
        assert ids(await reader.look_up(admission("x", bands=[1]).keys, 5)) == ["a"]
        await reader.close()
        with pytest.raises(IndexLostError, match="holds no index"):
            await RedisIndex.open_to_read(replace(own_address, namespace="nobody"))
    finally:
        await server.config_set("maxmemory", "0")
        await server.aclose()
    await index.admit([at_offset(admission("b", bands=[1]), 1)])
    assert await index.state() is IndexState.READY
    await index.close()


async def test_a_cancelled_call_leaves_no_stale_reply(own_server: LocalServer, own_address: IndexAddress) -> None:
    index = await RedisIndex.open(own_address, may_create=True)
    batch = in_order([admission(str(one), bands=[one // 2]) for one in range(40)])
    own_server.pause()
    try:
        for _ in range(5):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(index.admit(batch[:20]), 0.05)
        with pytest.raises(IndexUnavailableError):
            await index.look_up(batch[0].keys, 5)
    finally:
        own_server.resume()
    for start in range(0, 40, 10):
        answers = await index.admit(batch[start : start + 10])
        assert [ids(answer.candidates) for answer in answers[1::2]] == [
            [str(one)] for one in range(start, start + 10, 2)
        ]
    await index.close()


async def test_a_silent_server_is_an_outage_within_the_deadline(
    own_server: LocalServer, own_address: IndexAddress
) -> None:
    index = await RedisIndex.open(own_address, may_create=True)
    own_server.pause()
    try:
        with pytest.raises(IndexUnavailableError):
            await index.look_up(admission("a").keys, 5)  # which ends while the server is silent
    finally:
        own_server.resume()
    await index.close()


async def test_an_unreachable_server_is_an_outage() -> None:
    with pytest.raises(IndexUnavailableError):
        await RedisIndex.open(IndexAddress("redis://127.0.0.1:1", "n", SCHEME, "k"), may_create=True)


async def test_the_documented_rights_suffice(own_server: LocalServer, own_address: IndexAddress) -> None:
    server = Redis.from_url(own_address.url)
    rights = RIGHTS.replace("nearstream", own_address.namespace).split()
    await server.execute_command("ACL", "SETUSER", "worker", "reset", "on", ">pass", *rights)
    address = replace(own_address, url=own_address.url.replace("//", "//worker:pass@"))
    index = await RedisIndex.open(address, may_create=True)
    batch = traffic(Random(6), 300, 40)
    assert await index.admit(batch) == await local_store(address.limits).admit(batch, START_MS)
    await index.settle([settlement(batch[0], Admitted(Status.NEW, 1))])
    await index.look_up(batch[0].keys, 5)
    await index.close()
    await server.execute_command("ACL", "SETUSER", "worker", "-hmget", "-append")
    with pytest.raises(SettingsError, match="hmget, append"):
        await RedisIndex.open(address, may_create=False)
    with pytest.raises(SettingsError):
        await RedisIndex.open(replace(address, url=address.url.replace("pass", "wrong")), may_create=False)
    with pytest.raises(SettingsError):
        await RedisIndex.open(replace(address, namespace="foreign"), may_create=True)
    await server.aclose()


RIGHTS = """~{nearstream:* ~{nearstream}* +fcall +fcall_ro +ping +info +hello +client|setname +time
+hget +hset +hsetnx +hmget +hdel +hgetall +hexists +hlen +set +getrange +setrange +append +pexpire +rpush +lindex
+lpop +del +zadd +zscore +zcard +zcount +zunionstore +zremrangebyscore +zremrangebyrank +object|encoding
+function|load"""


def test_every_constant_of_the_server_is_declared_once_and_used() -> None:
    folder = Path(redis_client.__file__).parent / "lua"
    names = ("states.lua", "families.lua", "labels.lua", "addresses.lua", "functions.lua")
    source = "".join((folder / name).read_text() for name in names)
    code = re.sub(r"--[^\n]*|'[^'\n]*'", "", source)
    constant = r"\b[A-Z][A-Z0-9_]+\b"
    own = [
        name
        for line in re.findall(r"^local ([A-Z][^=\n]*)=", code, re.MULTILINE)
        for name in re.findall(constant, line)
    ]
    used = re.findall(constant, re.sub(r"^local [A-Z][^=\n]*=", "", code, flags=re.MULTILINE))
    declared = [*own, *LUA_CONSTANTS]
    assert sorted(declared) == sorted(set(declared))
    assert set(used) == set(declared)
