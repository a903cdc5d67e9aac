"""A Redis Cluster of three nodes."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from redis import Redis

from tests.devstack.redis import command_line, find_program, redis_answers
from tests.devstack.server import LocalServer, free_ports, running

SLOTS = 16_384
NODES = 3


@contextmanager
def redis_cluster(folder: Path) -> Iterator[list[LocalServer]]:
    """Start three nodes that share the slots evenly."""
    ports = free_ports(2 * NODES)
    with ExitStack() as stack:
        servers = [
            stack.enter_context(running(_node(folder / str(port), port, bus)))
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
    # Nodes on a busy machine may be late for longer than the default of 15 s, after which the cluster refuses commands.
    cluster = ["--cluster-enabled", "yes", "--cluster-port", str(bus), "--cluster-node-timeout", "120000"]
    command = [*command_line(find_program(), port, folder), *cluster]
    return LocalServer("Redis", f"127.0.0.1:{port}", command, folder / "server.log", redis_answers)
