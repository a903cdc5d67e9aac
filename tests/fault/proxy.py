"""A TCP proxy in its own process that delays, drops or cuts connections.

Start it with `python -m tests.fault.proxy PORT TARGET_PORT`. Each line on its standard input is a fault: `pass`,
`slow SECONDS SHARE STALL_SECONDS` (this share of the data waits longer), `blackhole up|down|both` (drop data, and at
the end cut the connections that lost some), `reset` (cut all connections and refuse new ones), `target PORT` (cut all
connections and use another target).
"""

import asyncio
import random
import socket
import ssl
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.devstack.server import end_with_parent, free_ports

_CHUNK = 65_536
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


@dataclass
class _Proxy:
    """The current fault and the open connections.

    A direction is `up` to the server or `down` to the client.
    """

    target: int
    seconds: float = 0.0
    stalled: tuple[float, float] = (0.0, 0.0)
    swallowed: frozenset[str] = frozenset()
    refusing: bool = False
    open: set[asyncio.StreamWriter] = field(default_factory=set)
    holed: set[asyncio.StreamWriter] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refusing:
            _reset(writer)
            return
        try:
            server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            _reset(writer)
            return
        both = {writer, server_writer}
        self.open |= both
        ways = [
            asyncio.ensure_future(self._carry("up", reader, server_writer)),
            asyncio.ensure_future(self._carry("down", server_reader, writer)),
        ]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        self.open -= both
        for each in both:
            each.close()

    async def _carry(self, direction: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(_CHUNK):
                await asyncio.sleep(self._pause(direction))
                if direction in self.swallowed:
                    self.holed.add(writer)
                else:
                    writer.write(data)
                    await writer.drain()
        except OSError:
            pass  # `serve` ends the other direction when this one ends

    def _cut(self, connections: set[asyncio.StreamWriter]) -> None:
        for writer in list(connections & self.open):
            _reset(writer)
        self.holed.clear()

    def _pause(self, direction: str) -> float:
        """Return the delay of a chunk. Only answers are delayed."""
        share, seconds = self.stalled
        if direction == "up":
            return 0.0
        return seconds if random.random() < share else self.seconds

    def turn(self, words: list[str]) -> None:
        self.seconds, self.stalled = 0.0, (0.0, 0.0)
        self.swallowed, self.refusing = frozenset(), False
        self._cut(self.holed)
        match words:
            case ["pass"]:
                pass
            case ["slow", seconds, share, stall]:
                self.seconds, self.stalled = float(seconds), (float(share), float(stall))
            case ["blackhole", direction]:
                self.swallowed = frozenset({"up", "down"} if direction == "both" else {direction})
            case ["reset"]:
                self.refusing = True
                self._cut(self.open)
            case ["target", port]:
                self.target = int(port)
                self._cut(self.open)
            case _:
                raise ValueError(f"no such fault: {' '.join(words)}")


def _reset(writer: asyncio.StreamWriter) -> None:
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    writer.transport.abort()


async def _main(port: int, target: int, *certificate: str) -> None:
    proxy = _Proxy(target)
    proxy.turn(["pass"])
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) if certificate else None
    if tls:
        tls.load_cert_chain(*certificate)
    await asyncio.start_server(proxy.serve, "127.0.0.1", port, ssl=tls)
    orders = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    print("ready", flush=True)  # noqa: T201 - who started us waits for it
    while line := await orders.readline():
        proxy.turn(line.decode().split())
        print("done", flush=True)  # noqa: T201


@dataclass(frozen=True)
class Proxy:
    """A running proxy, seen from the test."""

    port: int
    process: "subprocess.Popen[str]"

    def turn(self, fault: str) -> None:
        """Switch to this fault, which is active when the method returns."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{fault}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"


@contextmanager
def proxied(target: int, port: int | None = None, certificate: Sequence[Path] = ()) -> Iterator[Proxy]:
    """Run a proxy before a local port, for TLS if there are a certificate and its key.

    It ends when its standard input is closed, so it cannot outlive this process.
    """
    port = port or free_ports(1)[0]
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.fault.proxy", str(port), str(target), *map(str, certificate)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=end_with_parent(),  # noqa: PLW1509 - it does only what is safe beside threads
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield Proxy(port, process)
        assert process.stdin is not None
        process.stdin.close()


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]))
