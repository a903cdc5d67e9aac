"""An index whose parts lie on several nodes."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from redis import Redis

from streams.index import IndexLimits, IndexState, IndexUnavailableError, Report, Status
from tests.contract.index_documents import FINGERPRINT, SCHEME, START_MS, admission, ids, in_order, traffic
from tests.contract.test_redis_operations import spread
from workers.local_redis import command_line, find_program, redis_answers
from workers.local_server import LocalServer, free_ports, running
from workers.redis_address import IndexAddress
from workers.redis_index import RedisIndex
from workers.redis_rebuild import IndexRebuild
from workers.redis_schemes import schemes, switch_scheme
from workers.redis_stats import index_facts

SLOTS = 16_384
NODES = 3


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[LocalServer]]:
    """Three nodes that share the slots evenly."""
    ports = free_ports(2 * NODES)
    with ExitStack() as stack:
        servers = [
            stack.enter_context(running(_node(tmp_path_factory.mktemp("node"), port, bus)))
            for port, bus in zip(ports[:NODES], ports[NODES:], strict=True)
        ]
        clients = [stack.enter_context(Redis(port=port)) for port in ports[:NODES]]
        for at, client in enumerate(clients):
            first, last = at * SLOTS // NODES, (at + 1) * SLOTS // NODES - 1
            client.execute_command("CLUSTER ADDSLOTSRANGE", first, last)
            clients[0].execute_command("CLUSTER MEET", "127.0.0.1", ports[at], ports[NODES + at])
        deadline = time.monotonic() + 30
        while not all(client.cluster("info")["cluster_state"] == "ok" for client in clients):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield servers


def _node(folder: Path, port: int, bus: int) -> LocalServer:
    command = [*command_line(find_program(), port, folder), "--cluster-enabled", "yes", "--cluster-port", str(bus)]
    return LocalServer("Redis", f"127.0.0.1:{port}", command, folder / "server.log", redis_answers)


@pytest.fixture
def address(nodes: list[LocalServer], request: pytest.FixtureRequest) -> IndexAddress:
    name = "".join(each if each.isalnum() else "-" for each in request.node.name)[-32:].lower()
    url = f"redis://{nodes[0].address}"
    limits = IndexLimits(documents=6_400)
    return IndexAddress(url, name, SCHEME, FINGERPRINT, limits, parts=6, cluster=True)


async def test_parts_on_three_nodes_answer_as_parts_on_one_server(address: IndexAddress, redis_url: str) -> None:
    cluster = await RedisIndex.open(address, may_create=True)
    alone = await RedisIndex.open(replace(address, url=redis_url, cluster=False), may_create=True)
    batch = spread(traffic(Random(7), 300, 50), 11)
    owners = {cluster.client.get_node_from_key(part.key.decode()) for part in cluster.parts}  # type: ignore[union-attr]
    assert len(owners) == NODES
    for start in range(0, 300, 32):
        part = batch[start : start + 32]
        answers = await cluster.admit(part, START_MS)
        assert answers == await alone.admit(part, START_MS)
        found = [
            Report(each.number, other.number, "overlap", f"{start:032x}")
            for each in answers
            for other in each.candidates
        ]
        assert await cluster.report(found) == await alone.report(found)
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
