"""A stack that outlives the command that started it."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from tests.devstack.server import POLL_SECONDS, READY_SECONDS, StackUnavailableError, port_answers, say

STOP_SECONDS = 60.0
REVIVE = signal.SIGUSR1  # asks the owner to start again what does not answer


@dataclass(frozen=True)
class Running:
    """The state file of a stack, written by its owner."""

    owner: int  # pid of the process that started the servers and stops them
    kafka: str = ""  # `host:port`, empty until it is ready
    redis: str = ""  # URL, empty until it is ready
    # Of each server that it started: its process id and port, by the variable that names its address.
    own: dict[str, tuple[int | None, int]] = field(default_factory=dict)
    revived: int = 0  # how often it was asked to start again what had died

    @property
    def ports(self) -> dict[str, int]:
        """Return the ports of its servers, by variable."""
        return {variable: port for variable, (_, port) in self.own.items()}


@contextmanager
def owned(folder: Path) -> Iterator[dict[str, int]]:
    """Own the folder until the end of the block, and yield the ports of its former servers.

    The system releases the lock when its process ends, however it ends, so it can never be stale.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "owner.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StackUnavailableError(f"a stack runs already in {folder}") from None
        former = _told(folder)
        tell(folder, Running(os.getpid()))
        yield former.ports if former else {}


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
            return _told(folder)
    return None


def _told(folder: Path) -> Running | None:
    """Return what the state file says, also of a stack that has ended."""
    try:
        return Running(**json.loads((folder / "stack.json").read_text()))
    except (FileNotFoundError, TypeError, ValueError):  # TypeError: of another release
        return None


def start(folder: Path) -> Running:
    """Return the stack of the folder, ready for clients, and start it if needed.

    Only what has died is started again, at its address and with its data, and what lives is left alone.
    """
    running = running_in(folder)
    if running is not None and running.redis:
        dead = [name for name, address in _addresses(running).items() if not port_answers(address)]
        if not dead:
            return running
        if foreign := [name for name in dead if f"NEARSTREAM_{name.upper()}" not in running.own]:
            raise StackUnavailableError(f"{foreign[0]} does not answer, and is none of ours: start it again")
        say(f"{' and '.join(dead)} of the stack in {folder} does not answer any more, and starts again at its address")
        return _revived(folder, running)
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "stack.log"
    say(f"starting in {folder}, then with its log in {log}")
    command = [sys.executable, "-m", "tests.devstack", "run", "--folder", str(folder), "--log", str(log)]
    # Its stderr is ours until it is ready, and its stdout ends then.
    given = _without_own(folder, os.environ)
    child = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True, env=given
    )
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


def _revived(folder: Path, running: Running) -> Running:
    """Let the owner start again what does not answer, and return the stack once all of it answers."""
    os.kill(running.owner, REVIVE)
    deadline = time.monotonic() + STOP_SECONDS + READY_SECONDS
    while True:
        now = running_in(folder)
        if now is None or time.monotonic() > deadline:
            raise StackUnavailableError(f"what died of the stack in {folder} did not start: see stack.log there")
        if now.revived > running.revived and all(map(port_answers, _addresses(now).values())):
            return now
        time.sleep(POLL_SECONDS)


def _without_own(folder: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without addresses of this stack, which a shell keeps after the stack has ended."""
    former = _told(folder)
    own = {} if former is None else former.ports
    return {
        name: value
        for name, value in environment.items()
        if name not in own or urlsplit(value if "://" in value else f"//{value}").netloc != f"127.0.0.1:{own[name]}"
    }


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
