"""Turn HTML into text in child processes that can be killed."""

import os
import socket
import subprocess
import sys
import time
from functools import cache
from importlib.util import find_spec
from math import ceil
from pathlib import Path
from queue import Empty, LifoQueue
from typing import NamedTuple

_SCRIPT = Path(__file__).with_name("html_child.py")
_ANSWER_MAX_BYTES = 16 * 1024 * 1024
# glibc would give memory back to the system after each page, and take it again, for a quarter of the time of a page.
_KEPT_BYTES = str(32 * 1024 * 1024)
_KEEP_MEMORY = {"MALLOC_TRIM_THRESHOLD_": _KEPT_BYTES, "MALLOC_MMAP_THRESHOLD_": _KEPT_BYTES}
_TO_FIND_LIBRARIES = ("LD_LIBRARY_PATH", "PYTHONPATH")  # all that a process inherits: it has to know no secret
_LEFT_OUT = "\x1f"  # as the process writes it
_START_SECONDS = 60.0  # within which a process becomes ready, on a slow and busy machine


class PageText(NamedTuple):
    """What a process finds in a web page."""

    title: str  # its title in one line, which may be empty
    parts: tuple[str, ...]  # its paragraphs, headings and other parts in order, each in one line
    is_main_small: bool = False  # the main content was too small, so these are the parts of all text
    declared: str = ""  # The only target of `rel=canonical` in its head. Empty: there is none, or there are several.
    hidden: str = ""  # A digest of text that may be hidden, in hex. Empty: no text may be.
    # All that is seen in order, each part with whether it is in the main content. Addresses begin with `@`.
    shown: tuple[tuple[str, bool], ...] = ()


class HtmlProcesses:
    """Child processes, each of which works on one document at a time.

    A process is started when it is first needed. A pool of the standard library would break as a whole when one of its
    processes is killed. All methods may be called from several threads.
    """

    def __init__(self, count: int = 2, deadline_seconds: float = 2.0) -> None:
        """Prepare the pool, in which a document waits so long for a process, and then for its text."""
        self._deadline = deadline_seconds
        self._free: LifoQueue[_Child | None] = LifoQueue()
        self._count = count
        for _ in range(count):
            self._free.put(None)

    @staticmethod
    @cache
    def is_available() -> bool:
        """Return whether the extra `html` is installed."""
        return find_spec("resiliparse") is not None

    def start(self) -> None:
        """Start every process, so that the first documents need not wait for it."""
        for child in [self._free.get() for _ in range(self._count)]:
            self._free.put(child or _Child(self._deadline))

    def text(self, html: str) -> tuple[str, tuple[str, ...]] | None:
        """Return the visible text of the HTML of a mail, and the hosts of its links.

        There is nothing if the document or too many others take too long.
        """
        answer = self._answer(b"v" + html.encode("utf-8", "replace"), self._deadline)
        if answer is None:
            return None
        text, *links = answer.decode("utf-8", "replace").split("\n" + _LEFT_OUT)
        return text, tuple(links)

    def page(
        self, html: str, *, main_content: bool, links: bool = False, deadline_seconds: float | None = None
    ) -> PageText | None:
        """Return the title and the text of a web page, or None if there is no answer in time.

        With `main_content` what surrounds the content is left out. With `links` the targets of links and the addresses
        of images are in the text. No process takes longer than the pool allows.
        """
        seconds = min(self._deadline, deadline_seconds or self._deadline)
        work = b"m" if main_content else b"a"
        answer = self._answer((work.upper() if links else work) + html.encode("utf-8", "replace"), seconds)
        if answer is None:
            return None
        title, declared, hidden, count, *lines = answer.decode("utf-8", "replace").split("\n")
        shown = tuple((line[1:], line.startswith("+")) for line in lines[int(count) :])
        return PageText(title[1:], tuple(lines[: int(count)]), title.startswith("s"), declared, hidden, shown)

    def _answer(self, question: bytes, seconds: float) -> bytes | None:
        try:
            child = self._free.get(timeout=seconds)
        except Empty:
            return None
        try:
            child = child or _Child(self._deadline)
            return child.ask(question, seconds)
        except OSError:
            if child is not None:
                child.kill()
            child = None
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
            # Without -P a file beside the script would be imported in place of a module with its name.
            command = [sys.executable, "-P", str(_SCRIPT), str(ceil(deadline_seconds) + 1)]
            self._process = subprocess.Popen(  # noqa: S603 - our own script
                command,
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=_KEEP_MEMORY | {name: os.environ[name] for name in _TO_FIND_LIBRARIES if name in os.environ},
                cwd="/",
            )
        try:
            self._receive(4, time.monotonic() + _START_SECONDS)  # with which it says that it is ready
        except OSError:
            self.kill()
            raise

    def ask(self, question: bytes, deadline_seconds: float) -> bytes:
        """Return the answer to a question."""
        deadline = time.monotonic() + deadline_seconds
        self._socket.settimeout(deadline_seconds)
        self._socket.sendall(len(question).to_bytes(4, "big") + question)
        size = int.from_bytes(self._receive(4, deadline), "big")
        if size > _ANSWER_MAX_BYTES:
            raise ConnectionError(f"expected an answer of at most {_ANSWER_MAX_BYTES} bytes, got {size}")
        return self._receive(size, deadline)

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
