"""What a Redis says that scripts and functions touch, compared with the keys that their callers declare."""

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from redis.connection import parse_url

_LINE = re.compile(rb"\+[0-9.]+ \[\d+ (lua|[^\]]*)\] (.*)\r\n")
_WORD = re.compile(rb'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(rb"\\(x[0-9a-f]{2}|.)", re.DOTALL)
_CALLS = (b"fcall", b"fcall_ro", b"eval")
_WITHOUT_KEY = (b"time",)
_SUBCOMMANDS = (b"object",)  # whose key follows their second word


@dataclass
class Watch:
    """What was found out."""

    # Each function or script, and a command of it about a key that its call does not declare.
    undeclared: set[tuple[bytes, bytes]] = field(default_factory=set)
    _name: bytes = b""
    _declared: frozenset[bytes] = frozenset()

    def see(self, line: bytes) -> None:
        """Take a line of MONITOR. The server runs one call at a time, and says so before the commands of the call."""
        found = _LINE.fullmatch(line)
        if found is None:
            return
        words = [_ESCAPE.sub(_unescaped, word) for word in _WORD.findall(found[2])]
        name = words[0].lower()
        if name in _CALLS:
            self._name, self._declared = words[1], frozenset(words[3 : 3 + int(words[2])])
            return
        is_of_a_key = found[1] == b"lua" and name not in _WITHOUT_KEY
        if is_of_a_key and words[2 if name in _SUBCOMMANDS else 1] not in self._declared:
            self.undeclared.add((self._name, name))


@contextmanager
def watched(url: str) -> Iterator[Watch]:
    """Watch the calls of a server. At the end, all that it was asked before has been seen."""
    at = parse_url(url)
    address, end, watch = (at["host"], at["port"]), f"watched-{threading.get_ident()}", Watch()
    with socket.create_connection(address, timeout=60) as connection, connection.makefile("rb") as lines:
        connection.sendall(b"MONITOR\r\n")
        lines.readline()
        thread = threading.Thread(target=_see, args=(lines, end.encode(), watch), daemon=True)
        thread.start()
        try:
            yield watch
        finally:
            with suppress(OSError), socket.create_connection(address, timeout=60) as asking:
                asking.sendall(f"ECHO {end}\r\n".encode())
                asking.recv(64)
            thread.join(60)


def _see(lines: Iterator[bytes], end: bytes, watch: Watch) -> None:
    for line in lines:
        if end in line:
            return
        watch.see(line)


def _unescaped(found: re.Match[bytes]) -> bytes:
    escape = found[1]
    if escape[:1] == b"x":
        return bytes([int(escape[1:], 16)])
    return {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"a": b"\a", b"b": b"\b"}.get(escape, escape)
