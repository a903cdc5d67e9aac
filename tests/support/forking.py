"""Start our programs as processes that need not import anything: forks of one that has imported everything."""

import atexit
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Any

from tests.support.fork_server import MESSAGE_BYTES, NUMBER

File = int | IO[Any] | None
# Variables that our programs read when they run, so a fork may be given other values than the server was.
_READ_LATE = ("NEARSTREAM_", "PYTEST_CURRENT_TEST", "TMPDIR")
# Programs that change nothing before their imports, as one without the C code does.
_PROGRAMS = ("nearstream", "tests.fault.entry", "tests.fault.wrong_loops")
_CLIENT = Path(__file__).with_name("fork_client.py")
_STARTING = threading.Lock()


def started(
    command: Sequence[str],
    environment: Mapping[str, str],
    stdin: File = None,
    stdout: File = None,
    stderr: File = None,
    folder: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Start a command that begins with a Python and `-m`, by default in the folder of this process.

    It is forked if that gives the process that a start would give: a program of ours, with this Python, and an
    environment that differs only in what is read after the imports.
    """
    kind = _Forked if _is_forkable(command, environment) else subprocess.Popen
    return kind(list(command), env=dict(environment), stdin=stdin, stdout=stdout, stderr=stderr, cwd=folder)


def finished(
    command: Sequence[str], environment: Mapping[str, str], given: bytes = b"", timeout: float = 60
) -> subprocess.CompletedProcess[bytes]:
    """Run a command that begins with a Python and `-m` to its end.

    Raises:
        subprocess.TimeoutExpired: It took longer than `timeout` seconds, and was killed.
    """
    pipe = subprocess.PIPE
    with started(command, environment, pipe, pipe, pipe) as process:
        try:
            output, errors = process.communicate(given, timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


class _Forked(subprocess.Popen[bytes]):
    """A process that the fork server has started, with all that `Popen` offers of one that was executed.

    The server reports its exit status, because only a parent can ask the system for it.
    """

    def _execute_child(self, args: Sequence[str], *given: Any) -> None:  # noqa: ANN401 - as `Popen`
        """Ask the server for the process, where `Popen` would fork and execute."""
        folder, environment, pipes = given[4], given[5], given[9:15]
        message = {
            "arguments": list(args[2:]),
            "environment": [f"{name}={text}" for name, text in environment.items()],
            "folder": str(folder or os.getcwd()),
            "group": 0,
        }
        streams = [number if file == -1 else file for number, file in enumerate((pipes[0], pipes[3], pipes[5]))]
        self._status, theirs = socket.socketpair()
        try:
            with theirs:
                packed = json.dumps(message).encode()
                assert len(packed) < MESSAGE_BYTES, "the server reads no more"
                socket.send_fds(_server(), [packed], [*streams, theirs.fileno()])
        finally:
            self._close_pipe_fds(*pipes)  # type: ignore[attr-defined] # a private name of `Popen`
        self.pid = self._number(0)
        self._child_created = True

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:  # noqa: ANN401 - as `Popen`
        """Return the exit code, or None while the process runs. Each Python has another `Popen._internal_poll`."""
        lock: threading.Lock = self._waitpid_lock  # type: ignore[attr-defined] # a private name of `Popen`
        if lock.acquire(blocking=False):  # else another thread is waiting
            try:
                if self.returncode is None and (ended := self._try_wait(os.WNOHANG))[0]:
                    self.returncode = os.waitstatus_to_exitcode(ended[1])
            finally:
                lock.release()
        return self.returncode

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        """Return pid and status as `os.waitpid` does."""
        with suppress(BlockingIOError):
            return self.pid, self._number(socket.MSG_DONTWAIT if wait_flags & os.WNOHANG else 0)
        return 0, 0

    def _number(self, flags: int) -> int:
        packed = self._status.recv(NUMBER.size, flags)
        assert packed, "the fork server has ended"
        number: int
        (number,) = NUMBER.unpack(packed)
        return number


def write_program(folder: Path) -> int:
    """Write a program `nearstream` for shells, which forks too, and return the file that a shell has to pass on to it.

    What it starts belongs to its process group, so the shell has to be in the session of this process.
    """
    server = _server().fileno()
    program = folder / "nearstream"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -IS {_CLIENT} {server} nearstream "$@"\n')
    program.chmod(0o755)
    return server


@cache
def _start() -> tuple[socket.socket, dict[str, str]]:
    """Start the server, and return the socket that it reads and its environment."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environment = dict(os.environ)
    with theirs:
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.support.fork_server", str(theirs.fileno())],
            env=environment,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.PIPE,  # so that the streams of its forks are those of a program in a pipe
            stdout=subprocess.PIPE,
        )

    def end() -> None:
        ours.close()
        server.communicate()

    atexit.register(end)
    return ours, environment


def _server() -> socket.socket:
    return _start()[0]


def _is_forkable(command: Sequence[str], environment: Mapping[str, str]) -> bool:
    is_ours = list(command[:2]) == [sys.executable, "-m"] and command[2] in _PROGRAMS
    if not is_ours or sys.platform != "linux":
        return False
    with _STARTING:
        _, theirs = _start()
    return _read_early(environment) == _read_early(theirs)


def _read_early(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in environment.items() if not name.startswith(_READ_LATE)}
