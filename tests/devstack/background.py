"""A stack that outlives the command that started it."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from tests.devstack.server import POLL_SECONDS, StackUnavailableError, port_answers, say

STOP_SECONDS = 60.0


@dataclass(frozen=True)
class Running:
    """The state file of a stack, written by its owner."""

    owner: int  # pid of the process that started the servers and stops them
    kafka: str = ""  # `host:port`, empty until it is ready
    redis: str = ""  # URL, empty until it is ready
    pids: list[int] = field(default_factory=list)  # the servers that it started


@contextmanager
def owned(folder: Path) -> Iterator[None]:
    """Own the folder until the end of the block.

    The system releases the lock when its process ends, however it ends, so it can never be stale.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "owner.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StackUnavailableError(f"a stack runs already in {folder}") from None
        tell(folder, Running(os.getpid()))
        yield


def tell(folder: Path, running: Running) -> None:
    """Write the state file atomically."""
    part = folder / "stack.json.part"
    part.write_text(json.dumps(asdict(running), indent=2) + "\n")
    part.replace(folder / "stack.json")


def running_in(folder: Path) -> Running | None:
    """Return the stack that a process owns in the folder, or None."""
    with suppress(FileNotFoundError), (folder / "owner.lock").open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return Running(**json.loads((folder / "stack.json").read_text()))
    return None


def start(folder: Path) -> Running:
    """Return the stack of the folder, ready for clients, and start it if needed.

    A stack of which a server has died is started again. The data stay.
    """
    running = running_in(folder)
    if running is not None and running.redis:
        dead = [name for name, address in _addresses(running).items() if not port_answers(address)]
        if not dead:
            return running
        say(f"{' and '.join(dead)} of the stack in {folder} does not answer any more")
        say("both start again at new ports, so set the new addresses, and start workers and serve again")
        stop(folder)
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "stack.log"
    say(f"starting in {folder}, then with its log in {log}")
    command = [sys.executable, "-m", "tests.devstack", "run", "--folder", str(folder), "--log", str(log)]
    # Its stderr is ours until it is ready, and its stdout ends then.
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True)
    assert child.stdout is not None
    try:
        with child.stdout:
            is_ready = bool(child.stdout.read())
    except KeyboardInterrupt:
        child.terminate()
        raise
    running = running_in(folder)
    if not is_ready or running is None:
        raise StackUnavailableError(f"the stack in {folder} did not start")
    return running


def _addresses(running: Running) -> dict[str, str]:
    return {"Kafka": running.kafka.split(",")[0], "Redis": urlsplit(running.redis).netloc.rpartition("@")[2]}


def stop(folder: Path) -> bool:
    """Stop the stack of the folder, keep its data, and return whether one ran."""
    stopped = running = running_in(folder)
    deadline = time.monotonic() + STOP_SECONDS
    while running is not None and stopped is not None and running.owner == stopped.owner:
        with suppress(ProcessLookupError):
            os.kill(running.owner, signal.SIGKILL if time.monotonic() > deadline else signal.SIGTERM)
        time.sleep(POLL_SECONDS)
        running = running_in(folder)
    return stopped is not None
