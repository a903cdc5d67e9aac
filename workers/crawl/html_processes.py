"""A pool of child processes that turn HTML into text, and are killed when they do not answer."""

import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from math import ceil
from pathlib import Path
from queue import Empty, LifoQueue
from types import TracebackType
from typing import Self

_SCRIPT = Path(__file__).with_name("html_child.py")
_ANSWER_MAX_BYTES = 16 * 1024 * 1024
_START_MAX_SECONDS = 30.0  # after which a process that has not become ready is replaced


class HtmlProcesses:
    """Child processes, each of which works on one document at a time.

    A process is started when it is first needed. A pool of the standard library would break as a whole when one of its
    processes is killed. All methods may be called from several threads.
    """

    def __init__(self, count: int = 2, deadline_seconds: float = 2.0, start_seconds: float = 10.0) -> None:
        """Prepare the pool.

        Args:
            count: Number of processes.
            deadline_seconds: How long a document waits for a process, and then for its text.
            start_seconds: How long a document waits for a process that has just been started.
        """
        self._deadline = deadline_seconds
        self._start_seconds = start_seconds
        self._free: LifoQueue[_Child | None] = LifoQueue()
        self._count = count
        for _ in range(count):
            self._free.put(None)

    def __enter__(self) -> Self:
        """Return the pool."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the pool."""
        self.close()

    @staticmethod
    def is_available() -> bool:
        """Return whether the extra `html` is installed."""
        return find_spec("resiliparse") is not None

    def start(self) -> None:
        """Start every process, so that the first documents need not wait for it."""
        for child in [self._free.get() for _ in range(self._count)]:
            self._free.put(child or _Child(self._deadline))

    def text(self, html: str) -> str | None:
        """Return the text of HTML.

        Returns:
            None if there is no answer in time, because the document or too many others take too long.
        """
        try:
            child = self._free.get(timeout=self._deadline)
        except Empty:
            return None
        try:
            child = child or _Child(self._deadline)
            if not child.is_ready(self._start_seconds):
                return None
            return child.ask(html.encode("utf-8", "replace"), self._deadline)
        except OSError:
            if child is not None:
                child.kill()
            child = None  # in case that no process can be started
            child = _Child(self._deadline)  # which becomes ready while nobody waits for it
            return None
        finally:
            self._free.put(child)

    def close(self) -> None:
        """Kill all processes. A later document starts them again."""
        for child in [self._free.get() for _ in range(self._count)]:
            if child is not None:
                child.kill()
            self._free.put(None)


class _Child:
    """One process, and our end of its socket."""

    def __init__(self, deadline_seconds: float) -> None:
        self._socket, theirs = socket.socketpair()
        with theirs:
            # -P: else files beside the script could hide modules of the same name.
            command = [sys.executable, "-P", str(_SCRIPT), str(ceil(deadline_seconds) + 1)]
            self._process = subprocess.Popen(  # noqa: S603 - our own script
                command, stdin=theirs.fileno(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
        self._started = time.monotonic()
        self._is_ready = False

    def is_ready(self, wait_seconds: float) -> bool:
        """Wait until the process can work.

        Raises:
            OSError: The process ended, or has not become ready for `_START_MAX_SECONDS`.
        """
        if not self._is_ready:
            try:
                self._receive(4, time.monotonic() + wait_seconds)
            except TimeoutError:
                if time.monotonic() - self._started > _START_MAX_SECONDS:
                    raise
                return False
            self._is_ready = True
        return True

    def ask(self, html: bytes, deadline_seconds: float) -> str:
        """Return the text of a document.

        Raises:
            OSError: There is no answer within the deadline, or the process ended.
        """
        deadline = time.monotonic() + deadline_seconds
        self._socket.settimeout(deadline_seconds)
        self._socket.sendall(len(html).to_bytes(4, "big") + html)
        size = int.from_bytes(self._receive(4, deadline), "big")
        if size > _ANSWER_MAX_BYTES:
            raise ConnectionError(f"expected an answer of at most {_ANSWER_MAX_BYTES} bytes, got {size}")
        return self._receive(size, deadline).decode("utf-8", "replace")

    def kill(self) -> None:
        """End the process at once."""
        self._socket.close()
        self._process.kill()
        self._process.wait()

    def _receive(self, size: int, deadline: float) -> bytes:
        data = bytearray()
        while len(data) < size:
            self._socket.settimeout(max(0.001, deadline - time.monotonic()))
            piece = self._socket.recv(size - len(data))
            if not piece:
                raise ConnectionError("the process ended")
            data += piece
        return bytes(data)
