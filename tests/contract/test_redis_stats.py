"""What an operator reads about a whole index: documents, families and memory of all its slots."""

from dataclasses import replace
from datetime import datetime, timedelta
from random import Random

import pytest
from redis.asyncio import Redis

from nearstream.streams.matching.family import FamilyFacts, facts_of
from nearstream.streams.store.limits import IndexState
from nearstream.streams.store.messages import Measure
from nearstream.streams.store.registration import Order, Put, document_hash
from nearstream.workers.redis.index.index import RedisIndex
from nearstream.workers.redis.reading import stats
from nearstream.workers.redis.reading.stats import CROWDED, families, index_facts, mean_fields
from nearstream.workers.redis.server.address import IndexAddress
from tests.devstack.server import LocalServer
from tests.support.filing import Filing
from tests.support.made_up import NOON, words

PARTITIONS = 4
TEXTS = [words(seed, 60) for seed in range(9)]
DAY_MS = 86_400_000
LANGUAGE = words(1, 2_000)


@pytest.fixture
async def index(address: IndexAddress) -> RedisIndex:
    """Return an empty index of as many slots as there are partitions."""
    return await RedisIndex.open(replace(address, slots=PARTITIONS), partitions=PARTITIONS, may_create=True)


@pytest.fixture
def filing(index: RedisIndex) -> Filing:
    return Filing(index.store())


def minute(number: int) -> datetime:
    return NOON + timedelta(minutes=number)


async def storms(filing: Filing, *sizes: int) -> None:
    """Match a family of each size."""
    for storm, size in enumerate(sizes):
        for copy in range(size):
            await filing.put(f"{storm}-{copy}", TEXTS[storm], observed_at=minute(storm))


async def listed(index: RedisIndex, now_ms: int = 0) -> list[FamilyFacts]:
    return sorted([each async for each in families(index, now_ms)], key=lambda facts: facts.founder)


async def test_what_is_told_of_an_index(index: RedisIndex, filing: Filing) -> None:
    await storms(filing, 3, 1, 1, 1, 1, 1, 1, 1)
    await filing.put("7-0", TEXTS[8], observed_at=minute(9))
    await filing.remove("1-0")
    await filing.label("0-1")
    await filing.label("of nobody")
    await index.cover(filing.ends())
    facts = await index_facts(index)
    assert (facts.states, facts.documents, facts.oldest_ms) == ({IndexState.READY}, 9, NOON.timestamp() * 1000)
    assert [each.size for each in await listed(index)] == [3]
    assert facts.used_bytes > 0


async def test_families_are_listed_as_their_slots_tell_their_growth(index: RedisIndex, filing: Filing) -> None:
    draw = Random(5)
    for step in range(60):
        text = [*TEXTS[draw.randrange(5)][: draw.choice((60, 59, 40))], str(step % 7)]
        await filing.put(f"d{draw.randrange(25)}", text, observed_at=minute(step))
        if step % 9 == 8:
            await filing.remove(f"d{draw.randrange(25)}")
    now_ms = (await listed(index))[0].last_joined_ms + 2 * DAY_MS
    asked = [Measure(number, now_ms) for number in range(1, 200 * PARTITIONS)]
    grown = [facts_of(each) for each in await index.store().growth(asked) if each and each.family_id]
    found = await listed(index, now_ms)
    assert len(found) > 3
    assert {each.number: replace(each, founder="") for each in found} == {each.number: each for each in grown}
    assert len({each.joined for each in found}) > 1


async def test_families_have_the_name_of_a_founder_that_is_stored(index: RedisIndex, filing: Filing) -> None:
    await storms(filing, 3, 2, 1)
    assert [(each.founder, each.size) for each in await listed(index)] == [
        ("default/0-0", 3),
        ("default/1-0", 2),
    ]
    await filing.remove("0-0")
    assert [(each.founder, each.size) for each in await listed(index)] == [("", 2), ("default/1-0", 2)]


async def test_expired_documents_and_families_are_not_told(address: IndexAddress) -> None:
    limits = replace(address.limits, retention_seconds=1_000)
    index = await RedisIndex.open(replace(address, limits=limits, slots=4), partitions=PARTITIONS, may_create=True)

    def put(number: int, now_ms: int) -> Put:
        return Put(number, document_hash(str(number)), Order(number, -1, 0, b"version1"), 1, b"record", now_ms)

    store = index.store()
    await store.register([put(number, 1_000_000) for number in range(4, 44)])
    facts = await index_facts(index)
    assert (facts.documents, facts.oldest_ms) == (40, 4)
    await store.register([put(number, 2_000_001) for number in range(44, 54)])
    facts = await index_facts(index)
    assert (facts.documents, facts.oldest_ms) == (10, 44)


async def test_a_few_documents_are_counted_exactly_in_an_index_made_for_millions(address: IndexAddress) -> None:
    limits = replace(address.limits, documents=1_000_000)
    index = await RedisIndex.open(replace(address, limits=limits), partitions=PARTITIONS, may_create=True)
    filing = Filing(index.store())
    for count in (1, 2):
        await filing.put(str(count), TEXTS[count])
        assert (await index_facts(index)).documents == count


async def test_many_documents_are_estimated_from_a_sample(
    index: RedisIndex, filing: Filing, monkeypatch: pytest.MonkeyPatch
) -> None:
    for step in range(240):
        await filing.put(f"d{step}", Random(step // 2).choices(LANGUAGE, k=20), observed_at=minute(step))
    monkeypatch.setattr(stats, "_READ", 12)
    assert (await index_facts(index)).documents == 240  # because none has expired and none is labelled
    monkeypatch.setattr(stats, "_CHUNKS", 60)
    assert (await index_facts(index)).documents == pytest.approx(240, rel=0.5)


async def test_an_index_with_more_documents_than_expected_is_found_crowded(address: IndexAddress) -> None:
    limits = replace(address.limits, documents=96)
    index = await RedisIndex.open(replace(address, limits=limits, slots=2), partitions=PARTITIONS, may_create=True)
    store = index.store()

    async def put(*numbers: int) -> None:
        orders = {number: Order(number, -1, 0, b"version1") for number in numbers}
        await store.register([Put(number, b"%9d" % number, orders[number], 1, b"r") for number in numbers])

    await put(*range(4, 4 + 2 * CROWDED))
    assert await mean_fields(index) == CROWDED
    await put(4 + 2 * CROWDED)
    assert await mean_fields(index) > CROWDED


async def test_a_slot_that_was_emptied_is_told(address: IndexAddress, client: Redis) -> None:
    index = await RedisIndex.open(replace(address, slots=4), partitions=PARTITIONS, may_create=True)
    filing = Filing(index.store())
    await storms(filing, 2, 2, 2, 2)
    async for key in client.scan_iter(match=index.layout.tag(2).decode() + "*", count=1_000):
        await client.delete(key)
    reader = await RedisIndex.open_to_read(address)
    facts = await index_facts(reader)
    assert facts.states == {IndexState.READY, IndexState.LOST}
    assert 0 < facts.documents < 8
    assert await reader.state() is IndexState.LOST


async def test_another_index_in_the_same_namespace_does_not_count(index: RedisIndex, filing: Filing) -> None:
    await storms(filing, 2)
    beside = replace(index.address, scheme="other", beside=True)
    other = await RedisIndex.open(beside, partitions=PARTITIONS, may_create=True)
    assert (await index_facts(other)).documents == 0
    assert await listed(other) == []


async def test_slots_on_three_nodes_tell_what_slots_on_one_server_do(
    nodes: list[LocalServer], address: IndexAddress
) -> None:
    alone = replace(address, slots=4)
    own = replace(alone, url=f"redis://{nodes[0].address}", cluster=True)
    told = []
    for place in (alone, own):
        index = await RedisIndex.open(place, partitions=PARTITIONS, may_create=True)
        filing = Filing(index.store())
        await storms(filing, 4, 3, 2, 1, 1)
        await filing.remove("1-0")
        await filing.label("2-1")
        await index.cover(filing.ends())
        facts = replace(await index_facts(index), used_bytes=0, limit_bytes=0)
        told.append((facts, [replace(each, last_joined_ms=0) for each in await listed(index)]))
        assert await mean_fields(index) > 0
    assert told[0] == told[1]
