"""An index whose shards are on several nodes of a Redis Cluster."""

import asyncio
from dataclasses import replace
from random import Random

import pytest
from redis import Redis

from nearstream.streams.store.limits import IndexLimits, IndexState, IndexUnavailableError
from nearstream.streams.store.registration import Status
from nearstream.workers.redis_index.address import IndexAddress
from nearstream.workers.redis_index.index import RedisIndex
from nearstream.workers.redis_index.rebuild import IndexRebuild
from nearstream.workers.redis_index.schemes import schemes, switch_scheme
from nearstream.workers.redis_index.stats import index_facts
from tests.devstack.server import LocalServer
from tests.support.cluster import NODES
from tests.support.index_documents import FINGERPRINT, SCHEME, START_MS, admission, ids, in_order, traffic
from tests.support.settlements import decide
from tests.support.shards import spread


@pytest.fixture
def address(nodes: list[LocalServer], request: pytest.FixtureRequest) -> IndexAddress:
    name = "".join(each if each.isalnum() else "-" for each in request.node.name)[-32:].lower()
    url = f"redis://{nodes[0].address}"
    limits = IndexLimits(documents=6_400)
    return IndexAddress(url, name, SCHEME, FINGERPRINT, limits, shards=6, cluster=True)


async def test_parts_on_three_nodes_answer_as_parts_on_one_server(address: IndexAddress, redis_url: str) -> None:
    cluster = await RedisIndex.open(address, may_create=True)
    alone = await RedisIndex.open(replace(address, url=redis_url, cluster=False), may_create=True)
    batch = spread(traffic(Random(7), 300, 50), 11)
    owners = {cluster.client.get_node_from_key(part.key.decode()) for part in cluster.shards}  # type: ignore[union-attr]
    assert len(owners) == NODES
    for start in range(0, 300, 32):
        part = batch[start : start + 32]
        answers = await cluster.admit(part, START_MS)
        assert answers == await alone.admit(part, START_MS)
        await decide(Random(start), part, answers, (cluster, alone), START_MS)
    for one in batch[:30]:
        assert await cluster.look_up(one.keys, 9, START_MS) == await alone.look_up(one.keys, 9, START_MS)
    assert await cluster.checkpoints() == await alone.checkpoints() == {0: 299}
    assert await cluster.state() is IndexState.READY
    facts = await index_facts(cluster)
    assert [each.documents for each in facts] == [each.documents for each in await index_facts(alone)]
    await cluster.close()
    with Redis.from_url(redis_url) as client:
        for key in client.scan_iter(match=f"{{{address.namespace}*", count=1_000):
            client.delete(key)
    await alone.close()


async def test_of_pairs_that_race_over_a_cluster_exactly_one_sees_the_other(address: IndexAddress) -> None:
    workers = [await RedisIndex.open(address, may_create=True) for _ in range(3)]
    halves = [spread([admission(f"{share}-{pair}", bands=[pair]) for pair in range(150)], 1) for share in range(3)]
    met: dict[str, set[str]] = {}

    async def admit(share: int) -> None:
        order = Random(share).sample(halves[share], 150)
        for start in range(0, 150, 7):
            batch = order[start : start + 7]
            for one, answer in zip(batch, await workers[share].admit(batch), strict=True):
                met[one.document_key.partition("/")[2]] = set(ids(answer.candidates))

    await asyncio.gather(*map(admit, range(3)))
    for pair in range(150):
        order = sorted((f"{share}-{pair}" for share in range(3)), key=lambda name: len(met[name]))
        assert [met[name] for name in order] == [set(), {order[0]}, set(order[:2])]
    for each in workers:
        await each.close()


async def test_an_index_on_a_cluster_is_rebuilt_and_switched(address: IndexAddress) -> None:
    rebuild = await IndexRebuild.begin(address)
    await rebuild.index.admit(spread(in_order([admission(str(one)) for one in range(40)]), 9), START_MS)
    await rebuild.renew()
    await rebuild.finish()
    assert await rebuild.index.state() is IndexState.READY
    beside = await RedisIndex.open(replace(address, scheme="test-2", beside=True), may_create=True)
    await switch_scheme(replace(address, scheme="test-2"))
    assert [each.state for each in await schemes(address)] == ["retired", "active"]
    await rebuild.close()
    await beside.close()


async def test_a_node_that_is_silent_is_an_outage_that_is_made_up_for(
    address: IndexAddress, nodes: list[LocalServer]
) -> None:
    index = await RedisIndex.open(address, may_create=True)
    batch = spread(in_order([admission(str(one), bands=[one // 2]) for one in range(60)]), 20)
    await index.admit(batch[:20])
    nodes[2].pause()
    try:
        with pytest.raises(IndexUnavailableError):
            await index.admit(batch[20:40])
    finally:
        nodes[2].resume()
    statuses = {answer.status for answer in await index.admit(batch[20:60])}
    assert statuses <= {Status.NEW, Status.REPLAYED}
    assert await index.checkpoints() == {0: 59}
    await index.close()
