"""An index whose slots are on several nodes of a Redis Cluster."""

from dataclasses import replace

import pytest

from nearstream.streams.matching.arriving import Arrival
from nearstream.streams.store.limits import IndexLimits, IndexState, IndexUnavailableError
from nearstream.streams.store.registration import Status
from nearstream.streams.store.store import Position
from nearstream.workers.redis.index.index import RedisIndex
from nearstream.workers.redis.index.rebuild import IndexRebuild
from nearstream.workers.redis.index.schemes import schemes, switch_scheme
from nearstream.workers.redis.kept.decisions import DecisionStore
from nearstream.workers.redis.server.address import IndexAddress
from nearstream.workers.redis.server.client import open_client
from tests.devstack.server import LocalServer
from tests.support.decisions import page_state, store_states
from tests.support.made_up import STANDARD, sign, words
from tests.support.matched import crawl, matcher

PARTITIONS = SLOTS = 6
BATCH = crawl(PARTITIONS)


@pytest.fixture
def address(nodes: list[LocalServer], request: pytest.FixtureRequest) -> IndexAddress:
    name = "".join(each if each.isalnum() else "-" for each in request.node.name)[-32:].lower()
    url, limits = f"redis://{nodes[0].address}", IndexLimits(documents=6_400)
    return IndexAddress(url, name, STANDARD.name, limits, slots=SLOTS, cluster=True)


async def made(place: IndexAddress) -> RedisIndex:
    return await RedisIndex.open(place, partitions=PARTITIONS, may_create=True)


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


async def test_an_index_on_a_cluster_is_rebuilt_and_switched(address: IndexAddress) -> None:
    rebuild = await IndexRebuild.begin(address, partitions=PARTITIONS)
    await matcher(rebuild.store).match_all(BATCH)
    await rebuild.lease.renew()
    await rebuild.lease.finish()
    assert await rebuild.index.state() is IndexState.READY
    await made(replace(address, scheme="test-2", beside=True))
    await switch_scheme(replace(address, scheme="test-2"))
    assert sorted(each.state for each in (await schemes(address)).values()) == ["active", "retired"]


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


async def test_pages_on_several_nodes_are_read_at_once_and_named_when_they_are_due(address: IndexAddress) -> None:
    async with open_client(address) as client:
        store = DecisionStore(client, address.namespace)
        names = [f"https://a.example/{number}" for number in range(40)]
        made = [page_state(name, "unchanged", -1 - number % 2) for number, name in enumerate(names)]
        await store_states(store, *made, aliases={"https://a.example/old": names[7]})
        found = await store.read_states("default", [*names, "https://a.example/old", "https://a.example/new"])
        assert [state and state.decision.lineage for state in found] == [*names, names[7], None]
        assert {state.decision.lineage for state in await store.due("default", "a.example", 99)} == set(names)
