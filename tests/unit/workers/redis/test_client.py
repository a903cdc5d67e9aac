"""Connections of the Redis client."""

from redis.asyncio import RedisCluster

from nearstream.workers.config.bounds import RANGES
from nearstream.workers.redis.server.address import IndexAddress
from nearstream.workers.redis.server.client import connect
from nearstream.workers.worker.topology import MATCH_LANES


def test_a_node_of_a_cluster_has_a_connection_for_each_call_that_can_be_under_way() -> None:
    """The client of a cluster raises an error at its limit, where that of a server waits."""
    client = connect(IndexAddress("redis://127.0.0.1:7000", "n", "s", cluster=True))
    assert isinstance(client, RedisCluster)
    (node,) = client.nodes_manager.startup_nodes.values()
    most = MATCH_LANES * int(RANGES["index_slots"][1])
    connections = [node.acquire_connection() for _ in range(most)]
    assert len(set(map(id, connections))) == most
