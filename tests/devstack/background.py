"""A stack that outlives the command that started it."""

import fcntl
import json
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from tests.devstack.server import POLL_SECONDS, PROGRESS, StackUnavailableError, port_answers, say

START_SECONDS = 600.0
"""Long enough for a first download over a slow line."""
STOP_SECONDS = 60.0


@dataclass(frozen=True)
class Running:
    """The state file of a background stack, written by its owner.

    Attributes:
        owner: pid of the process that started the servers and stops them.
        kafka: `host:port`.
        redis: URL.
        pids: the servers it started.
    """

    owner: int
    kafka: str
    redis: str
    pids: list[int]


@contextmanager
def owned(folder: Path) -> Iterator[None]:
    """Own the folder until the end of the block.

    The system releases the lock when its process ends, however it ends, so it can never be stale.

    Raises:
        StackUnavailableError: another process owns it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "owner.lock").open("w") as lock:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            raise StackUnavailableError(f"a stack runs already in {folder}") from None
        (folder / "stack.json").unlink(missing_ok=True)
        try:
            yield
        finally:
            (folder / "stack.json").unlink(missing_ok=True)


def tell(folder: Path, running: Running) -> None:
    """Write the state file atomically."""
    part = folder / "stack.json.part"
    part.write_text(json.dumps(asdict(running), indent=2) + "\n")
    part.replace(folder / "stack.json")


def owner_of(folder: Path) -> int | None:
    """Return the pid of the process that owns the folder, or None.

    The system itself names the holder of the lock (F_GETLK), so a pid that was reused by another process is never
    returned.
    """
    try:
        with (folder / "owner.lock").open("r+") as lock:
            if sys.platform == "darwin":  # struct flock: start, length, pid, type, whence
                _, _, owner, kind, _ = _ask(lock, "qqihh", 0, 0, 0, fcntl.F_WRLCK, os.SEEK_SET)
            else:  # type, whence, start, length, pid
                kind, _, _, _, owner = _ask(lock, "hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    except FileNotFoundError:
        return None
    return owner if kind != fcntl.F_UNLCK else None


def _ask(lock: IO[str], layout: str, *fields: int) -> tuple[int, ...]:
    return struct.unpack(layout, fcntl.fcntl(lock, fcntl.F_GETLK, struct.pack(layout, *fields)))


def running_in(folder: Path) -> Running | None:
    """Return the stack of the folder if it runs and is ready, else None."""
    owner = owner_of(folder)
    try:
        told = Running(**json.loads((folder / "stack.json").read_text()))
    except FileNotFoundError:
        return None
    return told if told.owner == owner else None


def start(folder: Path) -> Running:
    """Return the stack of the folder, ready for clients, and start it if needed.

    A stack of which a server has died is started again. The data stay.

    Raises:
        StackUnavailableError: the owner ended or was not ready in time. The message contains the end of its log.
    """
    if (running := running_in(folder)) is not None:
        dead = [name for name, address in _addresses(running).items() if not port_answers(*address)]
        if not dead:
            return running
        say(f"{' and '.join(dead)} of the stack in {folder} does not answer any more")
        say("both start again at new ports, so set the new addresses, and start workers and serve again")
        stop(folder)
    child: subprocess.Popen[bytes] | None = None
    log, shown = folder / "stack.log", 0
    deadline = time.monotonic() + START_SECONDS
    try:
        while (running := running_in(folder)) is None:
            if child is None and owner_of(folder) is None:
                with _uninterrupted():
                    child = _spawn_owner(folder, log)
            elif (child is not None and child.poll() is not None and owner_of(folder) is None) or (
                time.monotonic() > deadline
            ):
                end = log.read_text(errors="replace")[-800:].strip()
                raise StackUnavailableError(f"the stack in {folder} did not start: {end}")
            shown = _show_progress(log, shown)
            time.sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        if child is not None:
            child.terminate()
        raise
    _show_progress(log, shown)
    return running


def _addresses(running: Running) -> dict[str, tuple[str, int]]:
    redis = urlsplit(running.redis)
    host, port = running.kafka.split(",")[0].rsplit(":", 1)
    return {"Kafka": (host, int(port)), "Redis": (redis.hostname or "", redis.port or 0)}


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Hold back Ctrl-C until the process that is being started is known, so that it can be ended."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _show_progress(log: Path, shown: int) -> int:
    """Pass on the progress in a log from this byte on, and return how far it was read."""
    with suppress(FileNotFoundError), log.open("rb") as lines:
        lines.seek(shown)
        new = lines.read()
        whole = new[: new.rfind(b"\n") + 1]
        for line in whole.decode(errors="replace").splitlines():
            if line.startswith(PROGRESS):
                sys.stderr.write(f"{line}\n")
                sys.stderr.flush()
        return shown + len(whole)
    return shown


def _spawn_owner(folder: Path, log: Path) -> subprocess.Popen[bytes]:
    folder.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        say(f"starting in {folder}, with its log in {log}")
        return subprocess.Popen(
            [sys.executable, "-m", "tests.devstack", "run", "--folder", str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def stop(folder: Path) -> bool:
    """Stop the stack of the folder, keep its data, and return whether one ran."""
    owner = owner_of(folder)
    if owner is None:
        return False
    deadline = time.monotonic() + STOP_SECONDS
    number = signal.SIGTERM
    while owner_of(folder) == owner:
        with suppress(ProcessLookupError):
            os.kill(owner, number)
        number = signal.SIGKILL if time.monotonic() > deadline else signal.SIGTERM
        time.sleep(POLL_SECONDS)
    return True
