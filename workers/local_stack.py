"""A real Kafka broker beside a real Redis without Docker, for development, demonstrations or tests."""

import argparse
import asyncio
import os
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from urllib.parse import urlsplit

from workers import background_stack
from workers.local_kafka import kafka_server
from workers.local_redis import redis_server
from workers.local_server import LocalServer, StackUnavailableError, port_answers, running

BACKGROUND = Path("build/stack")
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class LocalStack:
    """The addresses of a stack, with the servers behind them when they are ours.

    Attributes:
        kafka: `host:port`; empty when not asked for.
        redis: `redis://host:port/0`; empty when not asked for.
        kafka_server: None when not asked for or not ours (`NEARSTREAM_KAFKA`).
        redis_server: None when not asked for or not ours (`NEARSTREAM_REDIS`).
    """

    kafka: str = ""
    redis: str = ""
    kafka_server: LocalServer | None = None
    redis_server: LocalServer | None = None

    @property
    def pids(self) -> list[int]:
        """The processes that are ours and run."""
        return [
            server.pid
            for server in (self.kafka_server, self.redis_server)
            if server is not None and server.pid is not None
        ]


@contextmanager
def started_stack(kafka: bool = True, redis: bool = True, *, folder: Path | None = None) -> Iterator[LocalStack]:
    """The servers asked for, ready; what we started is stopped at the end whatever happens.

    Args:
        kafka: whether a broker is wanted.
        redis: whether a Redis is wanted.
        folder: where data and logs stay; a temporary folder when None.

    Raises:
        StackUnavailableError: a server cannot be had here; the message says why.
    """
    with ExitStack() as resources:
        root = folder or Path(resources.enter_context(tempfile.TemporaryDirectory(prefix="nearstream-stack-")))
        kafka_address = _given("NEARSTREAM_KAFKA", 9092) if kafka else ""
        redis_address = _given("NEARSTREAM_REDIS", 6379) if redis else ""
        own_redis = own_kafka = None
        if redis and not redis_address:
            own_redis = resources.enter_context(running(redis_server(root / "redis")))
            redis_address = f"redis://{own_redis.address}/0"
        if kafka and not kafka_address:
            own_kafka = resources.enter_context(running(kafka_server(root / "kafka")))
            kafka_address = own_kafka.address
        yield LocalStack(kafka_address, redis_address, own_kafka, own_redis)


@asynccontextmanager
async def local_stack(
    kafka: bool = True, redis: bool = True, *, folder: Path | None = None
) -> AsyncIterator[LocalStack]:
    """`started_stack` for coroutines: the event loop goes on while servers start and stop."""
    resources = ExitStack()
    stack = started_stack(kafka, redis, folder=folder)
    entering = asyncio.ensure_future(asyncio.to_thread(resources.enter_context, stack))
    try:
        yield await asyncio.shield(entering)
    finally:
        await asyncio.wait([entering])  # a cancelled start goes on in its thread: it must be over before it is undone
        await asyncio.to_thread(resources.close)


def _given(variable: str, default_port: int) -> str:
    """The address that the user's environment gives; empty when it gives none.

    Raises:
        StackUnavailableError: nothing listens there.
    """
    address = os.environ.get(variable, "")
    places = [urlsplit(one if "://" in one else f"//{one}") for one in address.split(",") if one]
    if places and not any(port_answers(place.hostname or "", place.port or default_port) for place in places):
        raise StackUnavailableError(f"{variable} is set, but nothing listens there; unset it to start a server here")
    return address


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code of `python -m workers.local_stack [run|start|stop]`."""
    parser = argparse.ArgumentParser(prog="python -m workers.local_stack", description=__doc__)
    parser.add_argument("command", nargs="?", choices=["run", "start", "stop"], default="run")
    parser.add_argument("--folder", type=Path, help=f"data and logs (run: temporary; start, stop: {BACKGROUND})")
    options = parser.parse_args(arguments)
    try:
        match options.command:
            case "run":
                _run(options.folder)
            case "start":
                _print_exports(background_stack.start(options.folder or BACKGROUND))
            case _:
                stopped = background_stack.stop(options.folder or BACKGROUND)
                sys.stderr.write("stopped\n" if stopped else "nothing to stop\n")
    except StackUnavailableError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except KeyboardInterrupt:
        return 0
    return 0


def _run(folder: Path | None) -> None:
    for number in ENDING:
        signal.signal(number, _interrupt)
    with ExitStack() as resources:
        if folder is not None:
            resources.enter_context(background_stack.owned(folder))
        stack = resources.enter_context(started_stack(folder=folder))
        if folder is not None:
            told = background_stack.Running(os.getpid(), stack.kafka, stack.redis, stack.pids)
            background_stack.tell(folder, told)
        _print_exports(stack)
        while True:
            time.sleep(1)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _print_exports(stack: LocalStack | background_stack.Running) -> None:
    sys.stdout.write(f"export NEARSTREAM_KAFKA={stack.kafka}\nexport NEARSTREAM_REDIS={stack.redis}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
