"""Operations on an index in Redis: rebuild, switch schemes, spread over shards."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from random import Random

import pytest
from redis.asyncio import Redis

from nearstream.streams.store.limits import IndexBehindError, IndexLimits, IndexLostError, IndexState
from nearstream.streams.store.local import local_store
from nearstream.streams.store.registration import Status
from nearstream.streams.store.store import Position
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.redis_index.address import IndexAddress
from nearstream.workers.redis_index.index import RedisIndex
from nearstream.workers.redis_index.rebuild import IndexRebuild, RebuildRefusedError
from nearstream.workers.redis_index.schemes import SchemeFacts, SchemeRefusedError, drop_scheme, schemes, switch_scheme
from nearstream.workers.redis_index.sharding import shard_of
from nearstream.workers.redis_index.stats import CROWDED, index_facts, mean_fields
from tests.support.index_documents import (
    START_MS,
    admission,
    at_offset,
    ids,
    in_order,
    pairs,
    removal,
    traffic,
)
from tests.support.settlements import overlaps
from tests.support.shards import spread


@pytest.fixture
async def client(address: IndexAddress) -> AsyncIterator[Redis]:
    connected = Redis.from_url(address.url)
    yield connected
    await connected.aclose()


async def lose(client: Redis, address: IndexAddress) -> None:
    for key in await client.keys(f"{{{address.namespace}*"):
        await client.delete(key)


async def test_a_lost_index_is_rebuilt_and_answers_as_before(address: IndexAddress, client: Redis) -> None:
    index = await RedisIndex.open(address, may_create=True)
    batch = in_order([one for one in traffic(Random(1), 200, 40) if one.signature is not None])
    before = await index.admit(batch, START_MS)
    await lose(client, address)
    rebuild = await IndexRebuild.begin(address)
    assert await rebuild.index.admit(batch, START_MS) == before
    await rebuild.finish()
    assert await rebuild.index.state() is IndexState.READY
    assert await index.state() is IndexState.LOST
    again = await RedisIndex.open(address, may_create=False)
    assert await again.look_up(batch[0].keys, 9, START_MS) == await rebuild.index.look_up(batch[0].keys, 9, START_MS)
    for each in (index, again, rebuild):
        await each.close()


async def test_checkpoints_of_an_index_that_is_lost_or_being_rebuilt_are_not_trusted(
    address: IndexAddress, client: Redis
) -> None:
    index = await RedisIndex.open(address, may_create=True)
    batch = in_order([admission("a"), admission("b")])
    await index.admit(batch)
    assert await index.trusted_checkpoints() == {0: 1}
    await lose(client, address)
    with pytest.raises(IndexLostError, match="run `nearstream rebuild`"):
        await index.trusted_checkpoints()
    rebuild = await IndexRebuild.begin(address)
    await rebuild.index.admit(batch[:1])
    with pytest.raises(IndexLostError, match="is being rebuilt"):
        await index.trusted_checkpoints()
    await rebuild.index.admit(batch[1:])
    await rebuild.finish()
    assert await index.trusted_checkpoints() == {0: 1}
    await rebuild.close()
    await index.close()


async def test_what_holds_no_document_is_passed_over_by_all_parts_and_hides_no_loss(address: IndexAddress) -> None:
    index = await RedisIndex.open(replace(address, shards=3), may_create=True)
    await index.admit(in_order([admission("a"), admission("b")]))
    await index.pass_over([Position(0, 4)])
    await index.pass_over([Position(0, 3)])
    assert await index.checkpoints() == {0: 4}
    with pytest.raises(IndexBehindError):
        await index.pass_over([Position(0, 9)])
    assert await index.checkpoints() == {0: 4}
    await index.close()


async def test_while_an_index_is_rebuilt_nobody_else_uses_it(address: IndexAddress) -> None:
    rebuild = await IndexRebuild.begin(address)
    worker = await RedisIndex.open(address, may_create=False)
    assert await worker.state() is IndexState.REBUILDING
    with pytest.raises(IndexLostError, match="being rebuilt"):
        await worker.admit([admission("a")])
    with pytest.raises(IndexLostError, match="being rebuilt"):
        await worker.look_up(admission("a").keys, 5)
    await rebuild.finish()
    await rebuild.finish()
    assert (await worker.admit([admission("a")]))[0].status is Status.NEW
    await worker.close()
    await rebuild.close()


async def test_a_rebuild_resumes_from_its_checkpoints(address: IndexAddress) -> None:
    batch = in_order([admission(str(one), bands=[one // 2]) for one in range(40)])
    first = await IndexRebuild.begin(address, lease_seconds=0.05)
    await first.index.admit(batch[:25], START_MS)
    await asyncio.sleep(0.1)
    second = await IndexRebuild.begin(address)
    assert await second.index.checkpoints() == {0: 24}
    with pytest.raises(IndexLostError):
        await first.index.admit(batch[25:], START_MS)
    with pytest.raises(RebuildRefusedError):
        await first.renew()
    with pytest.raises(RebuildRefusedError):
        await first.finish()
    answers = await second.index.admit(batch[25:], START_MS)
    assert ids(answers[0].candidates) == ["24"]
    await second.finish()
    await first.close()
    await second.close()


async def test_two_rebuilds_exclude_each_other_as_long_as_one_renews(address: IndexAddress) -> None:
    first = await IndexRebuild.begin(address, lease_seconds=0.4)
    for _ in range(3):
        await asyncio.sleep(0.2)
        await first.renew()
    with pytest.raises(RebuildRefusedError, match="under way"):
        await IndexRebuild.begin(address)
    await first.close()


async def test_an_index_that_holds_documents_is_not_rebuilt(address: IndexAddress, client: Redis) -> None:
    index = await RedisIndex.open(address, may_create=True)
    empty = await IndexRebuild.begin(address)
    await empty.finish()
    assert await index.state() is IndexState.LOST
    await empty.index.admit([admission("a")])
    with pytest.raises(RebuildRefusedError, match="holds documents"):
        await IndexRebuild.begin(address)
    await index.close()
    await empty.close()


async def test_a_rebuild_takes_the_time_of_records(address: IndexAddress) -> None:
    place = replace(address, limits=IndexLimits(retention_seconds=256, documents=6_400))
    rebuild = await IndexRebuild.begin(place)
    await rebuild.index.admit([admission("old", bands=[1])], START_MS)
    (answer,) = await rebuild.index.admit([admission("new", bands=[1])], START_MS + 300_000)
    assert answer.candidates == ()
    await rebuild.close()


async def test_facts_tell_how_full_an_index_is(address: IndexAddress) -> None:
    limits = replace(address.limits, documents=320)
    redis_index = await RedisIndex.open(replace(address, limits=limits), may_create=True)
    batch = in_order([admission(str(one), bands=["hot", one], anchors=[one, "warm"]) for one in range(200)])
    await redis_index.admit(batch)
    await redis_index.admit([at_offset(removal("7"), 200)])
    (facts,) = await index_facts(redis_index)
    assert (facts.documents, facts.numbers, facts.floor, facts.rebuilt, facts.kept) == (199, 200, 1, 0, 0)
    assert (facts.state, facts.checkpoints) == (IndexState.READY, {0: 200})
    assert {each.kind: round(each.mean * each.chunks) for each in facts.chunks}["band"] in range(195, 208)
    assert facts.overflows == 188 + 150
    assert [(each.kind, each.overflows) for each in facts.hottest] == [("band", 188), ("anchor", 150)]
    assert facts.memory_bytes is not None
    used = {name for name, size in facts.memory_bytes.items() if size}
    assert used == {"digests", "bands", "anchors", "spills", "registry", "records", "removals", "rest"}
    await redis_index.close()


async def test_a_few_documents_are_counted_exactly_in_an_index_made_for_millions(address: IndexAddress) -> None:
    limits = replace(address.limits, documents=4_000_000)
    index = await RedisIndex.open(replace(address, limits=limits), may_create=True)
    for count in range(1, 11):
        await index.admit([admission(str(count))])
        (facts,) = await index_facts(index)
        assert facts.documents == count
    await index.close()


async def test_an_index_with_more_documents_than_expected_is_found_crowded(address: IndexAddress) -> None:
    limits = replace(address.limits, documents=96)
    index = await RedisIndex.open(replace(address, limits=limits, shards=2), may_create=True)
    await index.admit([admission(str(one)) for one in range(CROWDED)])
    assert await mean_fields(index) == CROWDED
    await index.admit([admission("one more")])
    assert await mean_fields(index) > CROWDED
    await index.close()


async def test_facts_are_told_without_the_right_to_ask_for_memory(redis_index: RedisIndex, client: Redis) -> None:
    name = f"test-{redis_index.address.namespace}"
    await client.execute_command("ACL", "SETUSER", name, "on", ">pw", "~*", "+@all", "-memory|usage")
    url = redis_index.address.url.replace("//", f"//{name}:pw@")
    index = await RedisIndex.open(replace(redis_index.address, url=url), may_create=False)
    await index.admit([admission("a")])
    (facts,) = await index_facts(index)
    assert (facts.documents, facts.memory_bytes) == (1, None)
    await index.close()
    await client.execute_command("ACL", "DELUSER", name)


async def test_the_hottest_buckets_are_counted_apart_as_long_as_there_is_room(
    redis_index: RedisIndex, client: Redis
) -> None:
    key = redis_index.address.key[:-1] + b"h"
    await client.hset(key, mapping={str(one): 1 for one in range(4_095)})
    for hot in ("first", "second", "third"):
        await redis_index.admit([admission(f"{hot} {one}", bands=[hot]) for one in range(14)])
    counts = await client.hgetall(key)
    assert len(counts) == 4_097
    assert counts[b"*"] == b"4"


async def test_schemes_are_switched_and_switched_back(address: IndexAddress) -> None:
    active = await RedisIndex.open(address, may_create=True)
    other = replace(address, scheme="test-2", key_fingerprint="0badcafe")
    with pytest.raises(SettingsError, match=r"test-1.*test-2"):
        await RedisIndex.open(other, may_create=True)
    beside = await RedisIndex.open(replace(other, beside=True), may_create=True)
    await active.admit([admission("a", bands=[1])])
    assert (await beside.admit([admission("b", bands=[1])]))[0].candidates == ()
    assert states(await schemes(address)) == {"test-1": "active", "test-2": "building"}
    await (await RedisIndex.open(other, may_create=False)).close()
    assert states(await switch_scheme(other)) == {"test-1": "retired", "test-2": "active"}
    with pytest.raises(SettingsError, match="retired"):
        await RedisIndex.open(address, may_create=False)
    assert states(await switch_scheme(address)) == {"test-1": "active", "test-2": "retired"}
    assert states(await switch_scheme(address)) == {"test-1": "active", "test-2": "retired"}
    with pytest.raises(SettingsError, match=r"not test-9"):
        await switch_scheme(replace(address, scheme="test-9"))
    await active.close()
    await beside.close()


async def test_a_dropped_scheme_leaves_nothing(address: IndexAddress, client: Redis) -> None:
    active = await RedisIndex.open(address, may_create=True)
    other = replace(address, scheme="test-2", beside=True, shards=3)
    beside = await RedisIndex.open(other, may_create=True)
    await active.admit([admission("a", bands=[1])])
    await beside.admit(spread([admission(str(one), bands=["hot"], anchors=["hot"]) for one in range(60)], 7))
    assert len(await client.keys(f"{other.every_tag}*")) == await drop_scheme(other)
    assert states(await schemes(address)) == {"test-1": "active"}
    assert not await client.keys(f"{other.every_tag}*")
    assert await active.state() is IndexState.READY
    assert await beside.state() is IndexState.LOST
    with pytest.raises(SchemeRefusedError, match="is active"):
        await drop_scheme(address)
    with pytest.raises(SettingsError, match="not test-2"):
        await drop_scheme(other)
    await active.close()
    await beside.close()


async def test_nothing_is_built_on_what_is_left_of_a_scheme(address: IndexAddress, client: Redis) -> None:
    active = await RedisIndex.open(address, may_create=True)
    other = replace(address, scheme="test-2", beside=True)
    beside = await RedisIndex.open(other, may_create=True)
    await beside.admit([admission("a")])
    await beside.close()
    name = f"test-{address.namespace}"
    await client.execute_command("ACL", "SETUSER", name, "on", ">pw", "~*", "+@all", "-unlink")
    with pytest.raises(SettingsError, match="no permissions"):
        await drop_scheme(replace(other, url=address.url.replace("//", f"//{name}:pw@")))
    await client.execute_command("ACL", "DELUSER", name)
    assert states(await schemes(address)) == {"test-1": "active", "test-2": "dropped"}
    with pytest.raises(SettingsError, match="run `nearstream index drop test-2` again"):
        await IndexRebuild.begin(other)
    with pytest.raises(SettingsError, match="is being dropped"):
        await RedisIndex.open(other, may_create=True)
    await drop_scheme(other)
    rebuild = await IndexRebuild.begin(other)
    assert (await rebuild.index.admit([admission("a")]))[0].status is Status.NEW
    await rebuild.close()
    await active.close()


def states(facts: tuple[SchemeFacts, ...]) -> dict[str, str]:
    return {each.name: each.state for each in facts}


async def test_of_two_that_switch_at_once_each_leaves_one_active(address: IndexAddress) -> None:
    both = [address, replace(address, scheme="test-2", beside=True)]
    opened = [await RedisIndex.open(each, may_create=True) for each in both]
    for _ in range(10):
        await asyncio.gather(*(switch_scheme(each) for each in both), return_exceptions=True)
        assert sorted(states(await schemes(address)).values()) == ["active", "retired"]
    for each in opened:
        await each.close()


async def test_collections_spread_over_parts_answer_as_one_index(address: IndexAddress) -> None:
    index = await RedisIndex.open(replace(address, shards=3), may_create=True)
    memory = local_store(address.limits)
    batch = spread(traffic(Random(4), 400, 60), 7)
    assert {shard_of(one.document_key, 3) for one in batch} == {0, 1, 2}
    for start in range(0, 400, 23):
        part = batch[start : start + 23]
        ours, theirs = await index.admit(part, START_MS), await memory.admit(part, START_MS)
        assert [each.status for each in ours] == [each.status for each in theirs]
        assert [pairs([one], [each]) for one, each in zip(part, ours, strict=True)] == [
            pairs([one], [each]) for one, each in zip(part, theirs, strict=True)
        ]
        await index.settle(overlaps(part, ours), START_MS)
        await memory.settle(overlaps(part, theirs), START_MS)
        numbers = [each.number for each in ours if each.status is Status.NEW]
        assert len(set(numbers)) == len(numbers)
        again = await index.admit(part, START_MS)
        assert {each.status for each in again} <= {Status.REPLAYED, Status.UNCHANGED, Status.STALE, Status.REMOVED}
    seen = [ids(await each.look_up(batch[1].keys, 9, START_MS)) for each in (index, memory)]
    assert seen[0] == seen[1]
    assert await index.checkpoints() == {0: 399}
    assert await index.state() is IndexState.READY
    facts = await index_facts(index)
    assert sum(each.documents for each in facts) == len(memory._states.registry)
    await index.close()


async def test_a_part_that_fell_behind_is_told(address: IndexAddress, client: Redis) -> None:
    place = replace(address, shards=3)
    index = await RedisIndex.open(place, may_create=True)
    batch = spread(in_order([admission(str(one)) for one in range(30)]), 7)
    await index.admit(batch[:10])
    await client.hset(place.key_of(1), "o0", "4")
    with pytest.raises(IndexBehindError) as caught:
        await index.admit(batch[10:20])
    assert (caught.value.partition, caught.value.checkpoint) == (0, 4)
    await index.admit(batch[5:20])
    assert await index.checkpoints() == {0: 19}
    with pytest.raises(IndexBehindError):
        await index.admit([batch[20], batch[22]])
    await index.close()


async def test_another_number_of_parts_is_refused(address: IndexAddress) -> None:
    index = await RedisIndex.open(replace(address, shards=3), may_create=True)
    await index.close()
    with pytest.raises(SettingsError, match="3 shards, not 2"):
        await RedisIndex.open(replace(address, shards=2), may_create=False)


async def test_a_rebuild_of_several_parts_is_taken_up_amid_its_end(address: IndexAddress) -> None:
    place = replace(address, shards=2)
    batch = spread(in_order([admission(str(one)) for one in range(30)]), 7)
    rebuild = await IndexRebuild.begin(place, lease_seconds=0.01)
    await rebuild.index.admit(batch, START_MS)
    whole = rebuild.index.shards
    rebuild.index.shards = whole[:1]
    await rebuild.finish()
    assert await (await RedisIndex.open(place, may_create=False)).state() is IndexState.REBUILDING
    await asyncio.sleep(0.05)
    again = await IndexRebuild.begin(place)
    assert await again.index.checkpoints() == {0: 29}
    await again.finish()
    assert await again.index.state() is IndexState.READY
    await rebuild.close()
    await again.close()
