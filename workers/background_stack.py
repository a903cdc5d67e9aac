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

from workers.local_server import POLL_SECONDS, StackUnavailableError

START_SECONDS = 600.0
"""Long enough for a first download over a slow line."""
STOP_SECONDS = 60.0


@dataclass(frozen=True)
class Running:
    """What the owner of a background stack tells about it.

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
    """The folder is ours until the end.

    The system drops the lock when its process ends, however it ends, so nothing here can be stale.

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
    """Write the state file, whole or not at all."""
    part = folder / "stack.json.part"
    part.write_text(json.dumps(asdict(running), indent=2) + "\n")
    part.replace(folder / "stack.json")


def owner_of(folder: Path) -> int | None:
    """The pid of the live process that owns the folder; None when there is none.

    The system itself names the holder of the lock (F_GETLK): a pid that it gave to another process is never told.
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
    """The stack of the folder when it runs and is ready."""
    owner = owner_of(folder)
    try:
        told = Running(**json.loads((folder / "stack.json").read_text()))
    except FileNotFoundError:
        return None
    return told if told.owner == owner else None


def start(folder: Path) -> Running:
    """The stack that runs in the folder, started now if there was none, ready for clients.

    Raises:
        StackUnavailableError: the owner ended or was not ready in time; with the end of its log.
    """
    child: subprocess.Popen[bytes] | None = None
    deadline = time.monotonic() + START_SECONDS
    while (running := running_in(folder)) is None:
        if child is None and owner_of(folder) is None:
            child = _spawn_owner(folder)
        elif (child is not None and child.poll() is not None and owner_of(folder) is None) or (
            time.monotonic() > deadline
        ):
            end = (folder / "stack.log").read_text(errors="replace")[-800:].strip()
            raise StackUnavailableError(f"the stack in {folder} did not start: {end}")
        time.sleep(POLL_SECONDS)
    return running


def _spawn_owner(folder: Path) -> subprocess.Popen[bytes]:
    folder.mkdir(parents=True, exist_ok=True)
    sys.stderr.write(f"starting a stack in {folder}; its log is {folder / 'stack.log'}\n")
    with (folder / "stack.log").open("wb") as log:
        return subprocess.Popen(  # noqa: S603 - this project's own command line, no shell
            [sys.executable, "-m", "workers.local_stack", "run", "--folder", str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def stop(folder: Path) -> bool:
    """Whether a stack ran in the folder; it is stopped now, the data stay."""
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
