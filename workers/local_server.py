"""One server process of our own on this machine: it dies with us at the latest."""

import ctypes
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

READY_SECONDS = 60.0
STOP_SECONDS = 15.0
POLL_SECONDS = 0.05
PORTS = range(20_000, 32_768)
"""Below the ports that Linux and macOS hand to outgoing connections: a client that keeps reconnecting to a stopped
server on such a port may reach itself and keep the port from the server."""

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
_STARTER = ThreadPoolExecutor(1, thread_name_prefix="server-starter")
"""Every server is started here: Linux ends a child with the *thread* that started it, and this one lives as long as
the process."""


class StackUnavailableError(Exception):
    """A server cannot be had on this machine; the message says which one and why."""


def free_ports(count: int) -> list[int]:
    """Distinct loopback ports on which nothing listens now."""
    ports: list[int] = []
    for port in random.sample(PORTS, len(PORTS)):
        if len(ports) == count:
            break
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        ports.append(port)
    return ports


def port_answers(host: str, port: int) -> bool:
    """Whether something accepts connections there."""
    try:
        with socket.create_connection((host, port), timeout=2):
            return True
    except OSError:
        return False


def end_with_parent() -> Callable[[], None]:
    """What a new child calls before its program, so that Linux kills it when the starting thread ends.

    Two system calls: between fork and exec a child of a threaded process may take no lock and import nothing.
    On other systems it does nothing, so there a parent ended by SIGKILL leaves its servers running.
    """
    parent = os.getpid()

    def ask_for_the_signal() -> None:
        if _LIBC is not None:
            _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)

    return ask_for_the_signal


def run_to_end(command: Sequence[str], *, purpose: str) -> str:
    """The output of a command that ended well.

    Raises:
        StackUnavailableError: it did not; with the last of what it printed.
    """
    done = subprocess.run(  # noqa: S603 - the callers' own command lines, no shell
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        preexec_fn=end_with_parent(),
    )
    if done.returncode != 0:
        raise StackUnavailableError(f"{purpose} failed with exit code {done.returncode}: {done.stdout[-800:].strip()}")
    return done.stdout


class LocalServer:
    """A server that listens on one address and keeps its data, its log and its port across restarts.

    The methods block; a coroutine calls them through `asyncio.to_thread`.

    Attributes:
        name: what it is, for messages.
        address: `host:port` for clients.
    """

    def __init__(
        self, name: str, address: str, command: Sequence[str], log: Path, answers: Callable[[str], bool]
    ) -> None:
        """Describe a server that is not started yet.

        Args:
            name: what it is, for messages.
            address: `host:port` for clients.
            command: program and arguments.
            log: file to which the output is appended.
            answers: whether the server at an address does what its clients need.
        """
        self.name = name
        self.address = address
        self._command = tuple(command)
        self._log = log
        self._answers = answers
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The process id; None when it does not run."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self) -> None:
        """Start the server unless it runs, then wait until it answers.

        Raises:
            StackUnavailableError: it ended, or did not answer in time; with the end of its log.
        """
        if self.pid is None:
            _STARTER.submit(self._spawn).result()
        deadline = time.monotonic() + READY_SECONDS
        while not self._answers(self.address):
            if self.pid is None:
                raise StackUnavailableError(f"{self.name} ended while starting: {self._log_end()}")
            if time.monotonic() > deadline:
                raise StackUnavailableError(f"{self.name} not ready after {READY_SECONDS:.0f} s: {self._log_end()}")
            time.sleep(POLL_SECONDS)

    def kill(self) -> None:
        """End it at once, as a power cut would (SIGKILL)."""
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()

    def pause(self) -> None:
        """Freeze it; its connections stay open without answers (SIGSTOP)."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused server go on (SIGCONT)."""
        self._signal(signal.SIGCONT)

    def stop(self) -> None:
        """End it in order, paused or not; by force after some seconds."""
        self._signal(signal.SIGTERM)
        self.resume()
        try:
            if self._process is not None:
                self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def restart(self) -> None:
        """Stop it if it runs, start it on the same port with the same data, wait until it answers."""
        self.stop()
        self.start()

    def _spawn(self) -> None:
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - the rooms' own command lines, no shell
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C in the terminal is ours to handle, not the server's
                preexec_fn=end_with_parent(),  # noqa: PLW1509 - it does only what is safe beside threads
            )

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def _log_end(self) -> str:
        return self._log.read_text(errors="replace")[-800:].strip() if self._log.exists() else "no log"


@contextmanager
def running(server: LocalServer) -> Iterator[LocalServer]:
    """The server, ready for clients, and stopped at the end whatever happens."""
    try:
        server.start()
        yield server
    finally:
        server.stop()
