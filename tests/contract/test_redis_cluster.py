"""An index whose slots are on several nodes of a Redis Cluster."""

import asyncio
from dataclasses import replace

import pytest

from nearstream.streams.matching.arriving import Arrival
from nearstream.streams.store.limits import IndexLimits, IndexState, IndexUnavailableError
from nearstream.streams.store.part import Part
from nearstream.streams.store.registration import Status
from nearstream.streams.store.store import Local, Position, Shape, Store
from nearstream.workers.redis.index.index import RedisIndex
from nearstream.workers.redis.index.rebuild import IndexRebuild
from nearstream.workers.redis.index.schemes import schemes, switch_scheme
from nearstream.workers.redis.server.address import IndexAddress
from tests.devstack.server import LocalServer
from tests.support.arrivals import arrivals, crawl, matcher
from tests.support.cluster import NODES
from tests.support.made_up import KEY, STANDARD, sign, words

PARTITIONS = SLOTS = 6
BATCH = crawl(PARTITIONS)


@pytest.fixture
def address(nodes: list[LocalServer], request: pytest.FixtureRequest) -> IndexAddress:
    name = "".join(each if each.isalnum() else "-" for each in request.node.name)[-32:].lower()
    url, limits = f"redis://{nodes[0].address}", IndexLimits(documents=6_400)
    return IndexAddress(url, name, STANDARD.name, KEY.fingerprint, limits, slots=SLOTS, cluster=True)


async def made(place: IndexAddress) -> RedisIndex:
    return await RedisIndex.open(place, partitions=PARTITIONS, may_create=True)


async def test_slots_on_three_nodes_answer_as_slots_in_memory(address: IndexAddress) -> None:
    index = await made(address)
    memory = Store(Local([Part(address.limits) for _ in range(SLOTS)]), Shape(SLOTS, PARTITIONS), address.limits)
    owners = {index.client.get_node_from_key(address.tag(slot).decode()) for slot in range(SLOTS)}  # type: ignore[union-attr]
    assert len(owners) == NODES
    cluster, alone = matcher(index.store()), matcher(memory)
    for at in range(0, len(BATCH), 5):
        part = BATCH[at : at + 5]
        found = [(each.verdict, each.events) for each in await cluster.match_all(part)]
        assert found == [(each.verdict, each.events) for each in await alone.match_all(part)]
    await index.cover([Position(partition, 9) for partition in range(PARTITIONS)])
    assert await index.checkpoints() == dict.fromkeys(range(PARTITIONS), 9)
    assert await index.state() is IndexState.READY
    await index.close()


async def test_a_reference_whose_slots_are_on_other_nodes_is_found(address: IndexAddress) -> None:
    index = await made(address)
    texts = {f"{seed}": words(seed, 150) for seed in range(40, 52)}
    named = (Arrival(f"good/{name}", sign(text, name, collection="good")) for name, text in texts.items())
    cluster = matcher(index.store())
    await cluster.match_all([replace(each, position=Position(0, at)) for at, each in enumerate(named)])
    asked = (Arrival(f"default/q{name}", sign(text, f"q{name}", against=("good", "x"))) for name, text in texts.items())
    told = await cluster.match_all([replace(each, position=Position(1, at)) for at, each in enumerate(asked)])
    found = [each.verdict.references for each in told if each.verdict is not None]
    named = [[("good", name)] for name in texts]
    assert [[(one.collection, one.id) for one in some] for some in found if some] == named
    await index.close()


async def test_copies_that_race_over_a_cluster_are_one_family(address: IndexAddress) -> None:
    workers = [await made(address) for _ in range(3)]
    told: dict[str, tuple[str, int]] = {}

    async def match(share: int) -> None:
        lane = matcher(workers[share].store())
        batch = arrivals([(f"{share}-{pair}", words(pair, 150)) for pair in range(30)], 1)
        for at in range(0, 30, 7):
            part = [
                replace(each, position=each.position._replace(partition=share))
                for each in batch[at : at + 7]
                if each.position
            ]
            for found in await lane.match_all(part):
                assert found.verdict is not None
                told[found.verdict.id] = found.verdict.family.id, found.verdict.family.ordinal

    await asyncio.gather(*map(match, range(3)))
    for pair in range(30):
        trio = [told[f"{share}-{pair}"] for share in range(3)]
        assert len({family for family, _ in trio}) == 1
        assert sorted(ordinal for _, ordinal in trio) == [1, 2, 3]
    for each in workers:
        await each.close()


async def test_an_index_on_a_cluster_is_rebuilt_and_switched(address: IndexAddress) -> None:
    rebuild = await IndexRebuild.begin(address, partitions=PARTITIONS)
    await matcher(rebuild.store).match_all(BATCH)
    await rebuild.lease.renew()
    await rebuild.lease.finish()
    assert await rebuild.index.state() is IndexState.READY
    beside = await made(replace(address, scheme="test-2", beside=True))
    await switch_scheme(replace(address, scheme="test-2"))
    assert sorted(each.state for each in await schemes(address)) == ["active", "retired"]
    await rebuild.close()
    await beside.close()


async def test_a_node_that_is_silent_is_an_outage_that_is_made_up_for(
    address: IndexAddress, nodes: list[LocalServer]
) -> None:
    index = await made(address)
    lane = matcher(index.store())
    await lane.match_all(BATCH[:6])
    nodes[2].pause()
    try:
        with pytest.raises(IndexUnavailableError):
            await lane.match_all(BATCH[6:14])
    finally:
        nodes[2].resume()
    found = await lane.match_all(BATCH[6:], is_again=True)
    assert {each.registered.status for each in found} <= {Status.NEW, Status.KNOWN}
    assert all(each.verdict for each in found)
    await index.close()
