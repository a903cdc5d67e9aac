"""Run a real Kafka and a real Redis during a test or a command."""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tests.devstack.kafka import choose_ports, kafka_server
from tests.devstack.redis import redis_server
from tests.devstack.server import LocalServer, StackUnavailableError, port_answers, running, say

BACKGROUND = Path("build/stack")
VARIABLES = ("NEARSTREAM_KAFKA", "NEARSTREAM_REDIS")


@dataclass(frozen=True)
class LocalStack:
    """The addresses of a stack, and the servers that we started for it."""

    kafka: str = ""  # `host:port`, or empty if it was not requested
    redis: str = ""  # `redis://host:port/0`, or empty if it was not requested
    kafka_server: LocalServer | None = None  # None if it was not requested or is not ours (`NEARSTREAM_KAFKA`)
    redis_server: LocalServer | None = None  # None if it was not requested or is not ours (`NEARSTREAM_REDIS`)

    @property
    def servers(self) -> dict[str, LocalServer]:
        """Return our servers by the variables that name their addresses."""
        known = {"NEARSTREAM_KAFKA": self.kafka_server, "NEARSTREAM_REDIS": self.redis_server}
        return {variable: server for variable, server in known.items() if server is not None}

    def restart_silent(self) -> None:
        """Start each of our servers again that does not answer, at its address and with its data."""
        for server in self.servers.values():
            if not server.answers(server.address):
                server.restart()


@contextmanager
def started_stack(
    kafka: bool = True, redis: bool = True, *, folder: Path | None = None, wanted: Mapping[str, int] | None = None
) -> Iterator[LocalStack]:
    """Start the requested servers, and stop them at the end of the block.

    A server from the environment (`NEARSTREAM_KAFKA`, `NEARSTREAM_REDIS`) is used instead and is never stopped.

    Args:
        kafka: whether a broker is wanted.
        redis: whether a Redis is wanted.
        folder: where data and logs stay. The default is a temporary folder.
        wanted: by variable the port that a server gets if nothing listens there.
    """
    with ExitStack() as resources:
        root = folder or Path(resources.enter_context(tempfile.TemporaryDirectory(prefix="nearstream-stack-")))
        kafka_address = _given("NEARSTREAM_KAFKA", 9092) if kafka else ""
        redis_address = _given("NEARSTREAM_REDIS", 6379) if redis else ""
        own_redis = own_kafka = None
        ports = {name: [(wanted or {})[name]] if name in (wanted or {}) else [] for name in VARIABLES}
        if redis and not redis_address:
            own_redis = _started(resources, redis_server(root / "redis", wanted=ports["NEARSTREAM_REDIS"]))
            redis_address = f"redis://{own_redis.address}/0"
        if kafka and not kafka_address:
            own_kafka = _started(
                resources, kafka_server(root / "kafka", choose_ports(wanted=ports["NEARSTREAM_KAFKA"]))
            )
            kafka_address = own_kafka.address
        yield LocalStack(kafka_address, redis_address, own_kafka, own_redis)


def _started(resources: ExitStack, server: LocalServer) -> LocalServer:
    """Start a server until the end of the resources, and say so."""
    say(f"starting {server.name} at {server.address}")
    resources.enter_context(running(server))
    say(f"{server.name} is ready")
    return server


def _given(variable: str, default_port: int) -> str:
    """Return the address in this environment variable, or an empty string."""
    address = os.environ.get(variable, "")
    places = [urlsplit(one if "://" in one else f"//{one}") for one in address.split(",") if one]
    if places and not any(port_answers(f"{place.hostname}:{place.port or default_port}") for place in places):
        raise StackUnavailableError(f"{variable} is set, but nothing listens there; unset it to start a server here")
    return address
