"""Run a real Kafka and a real Redis during a test or a command."""

import asyncio
import fcntl
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tests.devstack.kafka import QUICK_START, kafka_server
from tests.devstack.redis import redis_server
from tests.devstack.server import LocalServer, StackUnavailableError, port_answers, running, say

BACKGROUND = Path("build/stack")
LOCK = "in-use.lock"


@dataclass(frozen=True)
class LocalStack:
    """The addresses of a stack, and the servers that we started for it.

    Attributes:
        kafka: `host:port`, or empty if it was not requested.
        redis: `redis://host:port/0`, or empty if it was not requested.
        kafka_server: None if it was not requested or is not ours (`NEARSTREAM_KAFKA`).
        redis_server: None if it was not requested or is not ours (`NEARSTREAM_REDIS`).
    """

    kafka: str = ""
    redis: str = ""
    kafka_server: LocalServer | None = None
    redis_server: LocalServer | None = None

    @property
    def pids(self) -> list[int]:
        """Return the process ids of our running servers."""
        return [
            server.pid
            for server in (self.kafka_server, self.redis_server)
            if server is not None and server.pid is not None
        ]


@contextmanager
def started_stack(
    kafka: bool = True, redis: bool = True, *, folder: Path | None = None, jvm: Sequence[str] = QUICK_START
) -> Iterator[LocalStack]:
    """Start the requested servers, and stop them at the end of the block.

    A server from the environment (`NEARSTREAM_KAFKA`, `NEARSTREAM_REDIS`) is used instead and is never stopped.

    Args:
        kafka: whether a broker is wanted.
        redis: whether a Redis is wanted.
        folder: where data and logs stay. The default is a temporary folder.
        jvm: options of the broker's Java virtual machine.

    Raises:
        StackUnavailableError: a server cannot run here. The message says why.
    """
    with ExitStack() as resources:
        root = folder or resources.enter_context(_temporary_folder())
        kafka_address = _given("NEARSTREAM_KAFKA", 9092) if kafka else ""
        redis_address = _given("NEARSTREAM_REDIS", 6379) if redis else ""
        own_redis = own_kafka = None
        if redis and not redis_address:
            own_redis = _started(resources, redis_server(root / "redis"))
            redis_address = f"redis://{own_redis.address}/0"
        if kafka and not kafka_address:
            own_kafka = _started(resources, kafka_server(root / "kafka", jvm=jvm))
            kafka_address = own_kafka.address
        yield LocalStack(kafka_address, redis_address, own_kafka, own_redis)


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    """Make a folder that is removed at the end, or at the next start if its owner was killed."""
    with tempfile.TemporaryDirectory(prefix="nearstream-new-") as new, (Path(new) / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Only now may others find it, because they remove a folder without a locked file.
        folder = Path(new).rename(new.replace("-new-", "-stack-"))
        try:
            _remove_folders_of_killed(folder.parent)
            yield folder
        finally:
            folder.rename(new)


def _remove_folders_of_killed(parent: Path) -> None:
    # Elsewhere than on Linux servers may still use the folder, because they outlive a killed owner.
    for folder in parent.glob("nearstream-stack-*") if sys.platform == "linux" else ():
        with suppress(OSError), (folder / LOCK).open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder)


def _started(resources: ExitStack, server: LocalServer) -> LocalServer:
    """Start a server until the end of the resources, and say so."""
    say(f"starting {server.name} at {server.address}")
    resources.enter_context(running(server))
    say(f"{server.name} is ready")
    return server


@asynccontextmanager
async def local_stack(
    kafka: bool = True, redis: bool = True, *, folder: Path | None = None, jvm: Sequence[str] = QUICK_START
) -> AsyncIterator[LocalStack]:
    """Run `started_stack` in a thread, so that the event loop goes on."""
    resources = ExitStack()
    stack = started_stack(kafka, redis, folder=folder, jvm=jvm)
    entering = asyncio.ensure_future(asyncio.to_thread(resources.enter_context, stack))
    try:
        yield await asyncio.shield(entering)
    finally:
        await asyncio.wait([entering])  # a cancelled start goes on in its thread, so wait for its end before undoing it
        await asyncio.to_thread(resources.close)


def _given(variable: str, default_port: int) -> str:
    """Return the address in this environment variable, or an empty string.

    Raises:
        StackUnavailableError: nothing listens there.
    """
    address = os.environ.get(variable, "")
    places = [urlsplit(one if "://" in one else f"//{one}") for one in address.split(",") if one]
    if places and not any(port_answers(place.hostname or "", place.port or default_port) for place in places):
        raise StackUnavailableError(f"{variable} is set, but nothing listens there; unset it to start a server here")
    return address
