"""A local server process that ends no later than this process."""

import ctypes
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.request import urlopen

READY_SECONDS = 60.0
STOP_SECONDS = 15.0
POLL_SECONDS = 0.05
PROGRESS = "stack: "
PORTS = range(20_000, 32_768)
"""Below the ports that Linux and macOS hand to outgoing connections: a client that keeps reconnecting to a stopped
server on such a port may reach itself and keep the port from the server."""

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
_STARTER = ThreadPoolExecutor(1, thread_name_prefix="server-starter")
"""Every server is started here: Linux ends a child with the *thread* that started it, and this one lives as long as
the process."""


class StackUnavailableError(Exception):
    """A server cannot run on this machine. The message says which one and why."""


def free_ports(count: int, wanted: Sequence[int] = ()) -> list[int]:
    """Return distinct loopback ports on which nothing listens now, those that are wanted first.

    Each process of a parallel run of tests has ports of its own, so that no other one takes a port between here and the
    start of its server, or while that server is away.
    """
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % processes
    ours = PORTS[number::processes]
    ports: list[int] = []
    for port in [*wanted, *random.sample(ours, len(ours))]:
        if len(ports) == count:
            break
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        ports.append(port)
    return ports


def port_answers(address: str) -> bool:
    """Return whether a server accepts connections at this `host:port`."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=2):
            return True
    except OSError:
        return False


def answers_http(path: str) -> Callable[[str], bool]:
    """Return a function that returns whether a server at an address has a page at this path."""

    def answers(address: str) -> bool:
        try:
            with urlopen(f"http://{address}{path}", timeout=5) as response:
                return bool(response.status == 200)
        except OSError:
            return False

    return answers


def end_with_parent() -> Callable[[], None]:
    """Return a function that makes Linux kill a child when its starting thread ends.

    The child calls it before its program. It consists of two system calls, because between fork and exec a child of a
    threaded process must not take a lock or import a module. On other systems it does nothing, so a parent that is
    ended by SIGKILL leaves its servers running.
    """
    parent = os.getpid()

    def ask_for_the_signal() -> None:
        if _LIBC is not None:
            _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)

    return ask_for_the_signal


def say(text: str) -> None:
    """Tell on stderr what is being done. `background.start` passes such lines on."""
    sys.stderr.write(f"{PROGRESS}{text}\n")
    sys.stderr.flush()


def run_to_end(
    command: Sequence[str], *, purpose: str, seconds: float | None = None, environment: Mapping[str, str] | None = None
) -> str:
    """Run a command and return its output.

    Raises:
        StackUnavailableError: it failed, or took longer than `seconds`. The message contains the end of its output.
    """
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=seconds,
            env=environment,
            preexec_fn=end_with_parent(),
        )
    except subprocess.TimeoutExpired:
        raise StackUnavailableError(f"{purpose} did not end within {seconds:g} s") from None
    if done.returncode != 0:
        raise StackUnavailableError(f"{purpose} failed with exit code {done.returncode}: {done.stdout[-800:].strip()}")
    return done.stdout


@dataclass(eq=False)
class LocalServer:
    """A server that keeps its address, data and log across restarts.

    The methods block, so a coroutine calls them through `asyncio.to_thread`.
    """

    name: str  # what it is, for messages
    address: str  # `host:port` for clients
    command: Sequence[str]  # program and arguments
    log: Path  # the file to which the output is appended
    answers: Callable[[str], bool]  # whether the server at an address does what its clients need
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def pid(self) -> int | None:
        """Return the process id, or None if it does not run."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self) -> None:
        """Start the server unless it runs, then wait until it answers.

        Raises:
            StackUnavailableError: it ended or did not answer in time. The message contains the end of its log.
        """
        if self.pid is None:
            _STARTER.submit(self._spawn).result()
        deadline = time.monotonic() + READY_SECONDS
        while not self.answers(self.address):
            if self.pid is None:
                raise StackUnavailableError(f"{self.name} ended while starting: {self._log_end()}")
            if time.monotonic() > deadline:
                raise StackUnavailableError(f"{self.name} not ready after {READY_SECONDS:.0f} s: {self._log_end()}")
            time.sleep(POLL_SECONDS)

    def kill(self) -> None:
        """Kill it at once with SIGKILL, as a crash would."""
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()

    def pause(self) -> None:
        """Freeze it with SIGSTOP, and wait until all its threads stand. Its connections stay open without answers."""
        self._signal(signal.SIGSTOP)
        if self._process is not None and self.pid is not None:
            os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        """Resume a paused server with SIGCONT."""
        self._signal(signal.SIGCONT)

    def stop(self, within_seconds: float = STOP_SECONDS) -> None:
        """Stop it in order, even if it is paused, and kill it if it does not end in time."""
        self._signal(signal.SIGTERM)
        self.resume()
        try:
            if self._process is not None:
                self._process.wait(within_seconds)
        except subprocess.TimeoutExpired:
            self.kill()

    def restart(self) -> None:
        """Restart it with its port and data, and wait until it answers."""
        self.stop()
        self.start()

    def _spawn(self) -> None:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C in the terminal must not reach the server
                preexec_fn=end_with_parent(),  # noqa: PLW1509 - it does only what is safe beside threads
            )

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def _log_end(self) -> str:
        return self.log.read_text(errors="replace")[-800:].strip() if self.log.exists() else "no log"


@contextmanager
def running(server: LocalServer) -> Iterator[LocalServer]:
    """Start a server, wait until it answers, and stop it after the block."""
    try:
        server.start()
        yield server
    finally:
        server.stop()
