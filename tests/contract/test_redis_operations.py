"""How full an index in Redis is."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from redis.asyncio import Redis

from nearstream.streams.store.limits import IndexState
from nearstream.workers.redis_index.address import IndexAddress
from nearstream.workers.redis_index.index import RedisIndex
from nearstream.workers.redis_index.stats import CROWDED, index_facts, mean_fields
from tests.support.index_documents import (
    admission,
    at_offset,
    in_order,
    removal,
)


@pytest.fixture
async def client(address: IndexAddress) -> AsyncIterator[Redis]:
    connected = Redis.from_url(address.url)
    yield connected
    await connected.aclose()


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
