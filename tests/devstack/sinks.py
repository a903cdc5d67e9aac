"""Servers that keep events: a PostgreSQL, and a Kafka Connect that writes to tables."""

import os
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from tests.devstack.cache import cached
from tests.devstack.connect import connect_server
from tests.devstack.debian import unpacked
from tests.devstack.kafka import POM, maven
from tests.devstack.server import LocalServer, free_ports, port_answers, run_to_end, say
from tests.devstack.wheels import python_environment

CONNECT_VERSION = "4.2.0"  # the first whose JsonConverter takes a schema
_JDBC = "io.debezium:debezium-connector-jdbc:3.3.1.Final:tar.gz:plugin"


class Postgres:
    """A PostgreSQL of Debian, with one database.

    Attributes:
        server: To be started and stopped.
        url: Its address, as JDBC writes it.
    """

    def __init__(self, folder: Path) -> None:
        """Make an empty database in a folder."""
        self._tree = unpacked("postgresql-15")
        self._bin = self._tree.root / "usr/lib/postgresql/15/bin"
        (port,) = free_ports(1)
        self._port, data = str(port), folder / "data"
        self._run(
            "initdb", "-D", str(data), "-U", "nearstream", "--auth=trust", "-E", "UTF8", "--no-sync", *self._share
        )
        settings = ("listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off")
        arguments = ["-D", str(data), "-p", self._port, *(word for each in settings for word in ("-c", each))]
        command, address = self._command("postgres", *arguments), f"127.0.0.1:{port}"
        self.server = LocalServer("PostgreSQL", address, command, folder / "postgres.log", port_answers)
        self.url = f"jdbc:postgresql://{address}/postgres"

    def ask(self, question: str) -> list[list[str]]:
        """Return the rows that the database answers."""
        where = ("-h", "127.0.0.1", "-p", self._port, "-U", "nearstream", "-d", "postgres")
        told = self._run("psql", *where, "-v", "ON_ERROR_STOP=1", "--no-psqlrc", "-At", "-F", "\t", "-c", question)
        return [line.split("\t") for line in told.splitlines()]

    @property
    def _share(self) -> tuple[str, str]:
        return "-L", str(self._tree.root / "usr/share/postgresql/15")

    def _command(self, program: str, *arguments: str) -> list[str]:
        # It refuses to run as root, so root runs it under another number of its own.
        other = ["unshare", "--user", "--map-user=1000", "--map-group=1000"] if os.geteuid() == 0 else []
        variables = [f"{name}={value}" for name, value in self._tree.environment().items()]
        return [*other, "env", *variables, str(self._bin / program), *arguments]

    def _run(self, program: str, *arguments: str) -> str:
        return run_to_end(self._command(program, *arguments), purpose=program)


def readers() -> Path:
    """Return a Python with DuckDB, and with ClickHouse in one process."""
    wanted = ("duckdb==2.0.1", "chdb-core-lite==26.5.0", "pyarrow==26.0.1", "pandas")
    return python_environment(*wanted) / "bin/python"


def connect_to_tables(folder: Path, kafka: str, connectors: Mapping[str, str]) -> LocalServer:
    """Return a Kafka Connect with the JDBC connector of Debezium, not started yet."""
    jars = cached(f"connect-{CONNECT_VERSION}", "Kafka Connect", _download_connect) / "lib"
    plugin = cached("connect-jdbc-3.3.1", "the JDBC connector of Debezium", partial(_download, _JDBC))
    return connect_server(folder, kafka, connectors, (jars, *(each for each in plugin.iterdir() if each.is_dir())))


def _download_connect(folder: Path) -> None:
    say(f"downloading Kafka Connect {CONNECT_VERSION} (55 MB), once")
    version, output = f"-Dkafka.version={CONNECT_VERSION}", f"-DoutputDirectory={folder / 'lib'}"
    maven("-f", str(POM), version, "dependency:copy-dependencies", "-DincludeScope=runtime", output)


def _download(artifact: str, folder: Path) -> None:
    """Download an archive of Maven and unpack it."""
    say(f"downloading {artifact}, once")
    folder.mkdir()
    maven("dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={folder}")
    (archive,) = folder.glob("*.tar.gz")
    shutil.unpack_archive(archive, folder)
    archive.unlink()
