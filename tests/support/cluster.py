"""A Redis Cluster, with or without replicas."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from redis import Redis
from redis.crc import key_slot

from tests.devstack.redis import command_line, find_program, redis_answers
from tests.devstack.server import LocalServer, free_ports, running

SLOTS = 16_384
NODES = 3
_DEADLINE_SECONDS = 60


@contextmanager
def redis_cluster(folder: Path, *, nodes: int = NODES, replicas: bool = False) -> Iterator[list[LocalServer]]:
    """Start nodes that share the slots evenly, then, if they are wanted, a replica of each."""
    count = 2 * nodes if replicas else nodes
    ports = free_ports(2 * count)
    with ExitStack() as stack:
        servers = [
            stack.enter_context(running(_node(folder / str(port), port, bus)))
            for port, bus in zip(ports[:count], ports[count:], strict=True)
        ]
        clients = [stack.enter_context(_client(server)) for server in servers]
        for at, client in enumerate(clients[:nodes]):
            first, last = at * SLOTS // nodes, (at + 1) * SLOTS // nodes - 1
            client.execute_command("CLUSTER ADDSLOTSRANGE", first, last)
        for at in range(count):
            clients[0].execute_command("CLUSTER MEET", "127.0.0.1", ports[at], ports[count + at])
        _until(lambda: all(client.cluster("info")["cluster_state"] == "ok" for client in clients))
        for primary, replica in zip(clients, clients[nodes:], strict=False):
            name = primary.execute_command("CLUSTER MYID").decode()
            _until(partial(_knows, replica, name))
            replica.execute_command("CLUSTER REPLICATE", name)
        _until(lambda: all(map(_follows, servers[nodes:])))
        yield servers


def _node(folder: Path, port: int, bus: int) -> LocalServer:
    # Nodes on a busy machine may be late for longer than the default of 15 s, after which the cluster refuses commands.
    cluster = ["--cluster-enabled", "yes", "--cluster-port", str(bus), "--cluster-node-timeout", "120000"]
    at_once = ["--repl-diskless-sync-delay", "0"]
    command = [*command_line(find_program(), port, folder), *cluster, *at_once]
    return LocalServer("Redis", f"127.0.0.1:{port}", command, folder / "server.log", redis_answers)


def owner(nodes: Sequence[LocalServer], key: str) -> LocalServer:
    """Return the primary that has a key, as the first of these nodes that runs knows it."""
    return _owners(next(node for node in nodes if node.pid), nodes, key)[0]


def promote(nodes: Sequence[LocalServer], killed: LocalServer, key: str) -> None:
    """Let a replica take the place of the killed primary that has a key, and wait until all nodes know."""
    alive = [node for node in nodes if node is not killed]
    replica = _owners(alive[0], nodes, key)[1]
    with _client(replica) as client:
        client.execute_command("CLUSTER FAILOVER TAKEOVER")
    _until(lambda: all(_owners(node, nodes, key)[0] is replica for node in alive))


def rejoin(server: LocalServer) -> None:
    """Start a node that was killed and replaced, and wait until it is a replica that has everything."""
    server.start()
    _until(lambda: _follows(server))


def move_slot(nodes: Sequence[LocalServer], tag: str) -> None:
    """Move the slot that has the keys with this tag to another primary."""
    slot, source = key_slot(tag.encode()), owner(nodes, tag)
    other = next(at for at in range(0, SLOTS, SLOTS // NODES // 2) if _at(source, nodes, at)[0] is not source)
    target = _at(source, nodes, other)[0]
    with _client(source) as source_client, _client(target) as target_client:
        names = [client.execute_command("CLUSTER MYID") for client in (source_client, target_client)]
        target_client.execute_command("CLUSTER SETSLOT", slot, "IMPORTING", names[0])
        source_client.execute_command("CLUSTER SETSLOT", slot, "MIGRATING", names[1])
        host, _, port = target.address.partition(":")
        while keys := list(source_client.scan_iter(match=f"{tag}*", count=1_000)):
            source_client.execute_command("MIGRATE", host, port, "", 0, 5_000, "KEYS", *keys)
        for client in (target_client, source_client):
            client.execute_command("CLUSTER SETSLOT", slot, "NODE", names[1])
    _until(lambda: all(_owners(node, nodes, tag)[0] is target for node in nodes))


def _owners(asked: LocalServer, nodes: Sequence[LocalServer], key: str) -> list[LocalServer]:
    return _at(asked, nodes, key_slot(key.encode()))


def _at(asked: LocalServer, nodes: Sequence[LocalServer], slot: int) -> list[LocalServer]:
    """Return the primary of a slot and its replicas, as a node knows them."""
    with _client(asked) as client:
        ranges = client.execute_command("CLUSTER SLOTS")
    servers = next(servers for first, last, *servers in ranges if first <= slot <= last)
    by_port = {int(node.address.rpartition(":")[2]): node for node in nodes}
    return [by_port[port] for _, port, *_ in servers]


def _knows(client: Redis, name: str) -> bool:
    return name in str(client.execute_command("CLUSTER NODES"))  # type: ignore[no-untyped-call]


def _follows(server: LocalServer) -> bool:
    with _client(server) as client:
        found = client.info("replication")
    return bool(found["role"] == "slave" and found["master_link_status"] == "up")


def _client(server: LocalServer) -> Redis:
    return Redis(port=int(server.address.rpartition(":")[2]))


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _DEADLINE_SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)
