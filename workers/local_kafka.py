"""An Apache Kafka broker of our own on free loopback ports, without Docker."""

import asyncio
import base64
import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from workers.kafka_ready import broker_answers
from workers.local_server import LocalServer, StackUnavailableError, free_ports, port_answers, run_to_end

KAFKA_VERSION = "4.1.1"
JAVA_AT_LEAST = 17
POM = Path(__file__).with_name("local_kafka.pom.xml")
LOGGING = """\
rootLogger.level=warn
rootLogger.appenderRef.c.ref=C
appender.c.type=Console
appender.c.name=C
appender.c.layout.type=PatternLayout
appender.c.layout.pattern=[%d] %p %m (%c)%n
"""


@dataclass(frozen=True)
class KafkaPorts:
    """The ports of one broker.

    Attributes:
        client: where clients connect.
        fault: where a fault proxy connects.
        controller: the broker's talk with itself.
        advertised_fault: what the broker tells clients of the fault listener: the proxy's port.
    """

    client: int
    fault: int
    controller: int
    advertised_fault: int


def choose_ports(fault_port: int | None = None) -> KafkaPorts:
    """Free ports; the fault listener advertises `fault_port`, or itself."""
    client, fault, controller = free_ports(3)
    return KafkaPorts(client, fault, controller, fault_port or fault)


def kafka_server(
    folder: Path, ports: KafkaPorts | None = None, *, properties: str = "", storage: Sequence[str] = ()
) -> LocalServer:
    """A broker, not started yet, that keeps its data in the folder; an empty folder is formatted.

    Args:
        folder: For data, configuration, logs.
        ports: Where it listens; None: on free ports.
        properties: Lines that replace or complete those of `server_properties`: the last one of a name counts.
        storage: Further arguments of formatting, such as users.

    Raises:
        StackUnavailableError: no Java, no Maven or no download.
    """
    java, jars = find_java(), kafka_jars()
    folder = folder.resolve()
    (folder / "tmp").mkdir(parents=True, exist_ok=True)
    ports = ports or choose_ports()
    (folder / "server.properties").write_text(server_properties(ports, folder / "data") + properties)
    (folder / "log4j2.properties").write_text(LOGGING)
    if not (folder / "data" / "meta.properties").exists():
        # The first byte is fixed: an id that began with a dash would be taken for an option.
        cluster = base64.urlsafe_b64encode(b"n" + uuid.uuid4().bytes[1:]).decode().rstrip("=")
        form = ["format", "--standalone", "-t", cluster, "-c", str(folder / "server.properties"), *storage]
        run_to_end(
            [java, "-Xmx256M", "-cp", f"{jars}/*", "kafka.tools.StorageTool", *form],
            purpose="formatting Kafka's storage",
        )
    command = command_line(java, jars, folder)
    return LocalServer("Kafka", f"127.0.0.1:{ports.client}", command, folder / "server.log", _answers)


def server_properties(ports: KafkaPorts, data: Path) -> str:
    """The broker's configuration: one node that is broker and controller, small, for one machine.

    A broker that was killed may register again only after the session of its former self: 3 s here, by default 9 s.
    """
    listeners = f"PLAINTEXT://127.0.0.1:{ports.client},FAULT://127.0.0.1:{{}},CONTROLLER://127.0.0.1:{ports.controller}"
    settings = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{ports.controller}",
        "listeners": listeners.format(ports.fault),
        "advertised.listeners": listeners.format(ports.advertised_fault),
        "inter.broker.listener.name": "PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,FAULT:PLAINTEXT",
        "log.dirs": data,
        "num.partitions": 6,
        "offsets.topic.num.partitions": 4,
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.num.partitions": 4,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "group.initial.rebalance.delay.ms": 0,
        "auto.create.topics.enable": "false",
        "broker.session.timeout.ms": 3_000,
        "broker.heartbeat.interval.ms": 500,
        "num.network.threads": 2,
        "num.io.threads": 2,
        "log.cleaner.dedupe.buffer.size": 16_777_216,
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def command_line(java: str, jars: Path, folder: Path) -> list[str]:
    """The broker's program and arguments."""
    heap = ["-Xms256M", "-Xmx512M", "-XX:+UseG1GC", "-Djava.awt.headless=true", f"-Djava.io.tmpdir={folder / 'tmp'}"]
    logging = [f"-Dkafka.logs.dir={folder / 'logs'}", f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}"]
    return [java, *heap, *logging, "-cp", f"{jars}/*", "kafka.Kafka", str(folder / "server.properties")]


def find_java() -> str:
    """The Java of JAVA_HOME, else of PATH."""
    homes = [f"{home}/bin" for home in [os.environ.get("JAVA_HOME")] if home]
    java = shutil.which("java", path=os.pathsep.join([*homes, os.environ.get("PATH", "")]))
    if java is None:
        raise StackUnavailableError(f"no Kafka: it needs Java {JAVA_AT_LEAST} or newer; no java in JAVA_HOME or PATH")
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr  # noqa: S603
    version = java_version(told)
    if version < JAVA_AT_LEAST:
        raise StackUnavailableError(f"no Kafka: it needs Java {JAVA_AT_LEAST} or newer; {java} is {version or told!r}")
    return java


def java_version(told: str) -> int:
    """The feature release in what `java -version` tells; 0 when it tells none."""
    found = re.search(r'version "(\d+)', told)
    return int(found.group(1)) if found else 0


def kafka_jars() -> Path:
    """The folder of the broker's jars; downloaded through Maven once for all projects of this user."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nearstream"
    whole = cache / f"kafka-{KAFKA_VERSION}"
    if not whole.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with (cache / f"{whole.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not whole.exists():
                _download(whole)
    return whole / "lib"


def _download(whole: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise StackUnavailableError(f"no Kafka: {whole} does not exist, and there is no mvn on PATH to download it")
    sys.stderr.write(f"downloading Apache Kafka {KAFKA_VERSION} (55 MB) into {whole}, once\n")
    with tempfile.TemporaryDirectory(dir=whole.parent, prefix=f"{whole.name}.") as folder:
        part = Path(folder) / "whole"
        copy = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={part / 'lib'}"]
        run_to_end([maven, "-q", "-B", "-f", str(POM), *copy], purpose="downloading Apache Kafka")
        part.rename(whole)


def _answers(address: str) -> bool:
    host, port = address.rsplit(":", 1)
    return port_answers(host, int(port)) and asyncio.run(broker_answers(address))
