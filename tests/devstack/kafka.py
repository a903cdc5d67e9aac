"""An Apache Kafka broker of our own on free loopback ports, without Docker."""

import asyncio
import base64
import hashlib
import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError

from tests.devstack.cache import cached
from tests.devstack.server import LocalServer, StackUnavailableError, free_ports, port_answers, run_to_end, say

KAFKA_VERSION = "4.1.1"
# A broker that lives for minutes never gets back what the optimizing compiler costs: without it, a broker starts with
# half of the CPU time.
QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_CLASSES = "classes.jsa"
_ARCHIVE_SECONDS = 120.0
_REQUEST_MS = 5_000
_ATTEMPT_SECONDS = 15.0
POM = Path(__file__).with_name("kafka.pom.xml")
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
    """The ports of one broker."""

    client: int  # where clients connect
    fault: int  # where a fault proxy connects
    controller: int  # where the broker connects to its own controller
    advertised_fault: int  # the port of the proxy, which the broker advertises to clients of the fault listener


def choose_ports(fault_port: int | None = None, wanted: Sequence[int] = ()) -> KafkaPorts:
    """Choose free ports, for clients one that is wanted. The fault listener advertises `fault_port` or its own port."""
    client, fault, controller = free_ports(3, wanted[:1])
    return KafkaPorts(client, fault, controller, fault_port or fault)


def kafka_server(
    folder: Path,
    ports: KafkaPorts | None = None,
    *,
    properties: str = "",
    storage: Sequence[str] = (),
) -> LocalServer:
    """Return a broker, not started yet, that keeps its data in the folder.

    An empty folder is formatted.

    Args:
        folder: for data, configuration and logs.
        ports: where it listens. The default is free ports.
        properties: lines that replace or complete those of `server_properties`. The last one of a name counts.
        storage: further arguments for formatting, such as users.
    """
    java, jars = find_java(), kafka_jars()
    prepared = _prepared(java, jars)
    folder = folder.resolve()
    (folder / "tmp").mkdir(parents=True, exist_ok=True)
    ports = ports or choose_ports()
    (folder / "server.properties").write_text(server_properties(ports, folder / "data") + properties)
    (folder / "log4j2.properties").write_text(LOGGING)
    if not (folder / "data" / "meta.properties").exists():
        if storage:
            say(f"formatting Kafka's storage in {folder}")
            _format(java, jars, folder, (*QUICK_START, *_shared(prepared)), storage)
        else:
            _copy_formatted(prepared / "data", folder / "data")
    command = command_line(java, jars, folder, (*QUICK_START, *_shared(prepared)))
    return LocalServer("Kafka", f"127.0.0.1:{ports.client}", command, folder / "server.log", _answers)


def tool(name: str) -> list[str]:
    """Return the start of the command that runs a program of Kafka.

    Args:
        name: the class of the program.
    """
    java, jars = find_java(), kafka_jars()
    return [java, "-Xmx256M", *QUICK_START, *_shared(_prepared(java, jars)), "-cp", f"{jars}/*", name]


def _shared(prepared: Path) -> tuple[str, ...]:
    archive = prepared / _CLASSES
    return (f"-XX:SharedArchiveFile={archive}",) if archive.exists() else ()


@cache
def _prepared(java: str, jars: Path) -> Path:
    """Return a folder with what every broker begins with, which is made once per user and Java.

    It holds formatted storage, and an archive of the classes that a broker loads. Each would cost every start as much
    CPU time as all the rest of it.
    """
    told = run_to_end([java, "-version"], purpose="starting Java")
    key = hashlib.sha256(f"{java} {told} {jars}".encode()).hexdigest()[:12]
    return cached(f"kafka-{KAFKA_VERSION}-prepared-{key}", "Kafka", partial(_prepare, java, jars))


def _prepare(java: str, jars: Path, folder: Path) -> None:
    """Format storage, and start a broker that writes its classes when it ends, if its Java can do that."""
    say("preparing Kafka's storage and classes, once")
    folder.mkdir()
    with tempfile.TemporaryDirectory(prefix="nearstream-kafka-") as name:
        first, ports = Path(name), choose_ports()
        (first / "tmp").mkdir()
        (first / "server.properties").write_text(server_properties(ports, first / "data"))
        (first / "log4j2.properties").write_text(LOGGING)
        _format(java, jars, first, QUICK_START, ())
        shutil.copytree(first / "data", folder / "data")
        writing = ("-XX:+IgnoreUnrecognizedVMOptions", f"-XX:ArchiveClassesAtExit={folder / _CLASSES}")
        command = command_line(java, jars, first, (*QUICK_START, *writing))
        server = LocalServer("Kafka", f"127.0.0.1:{ports.client}", command, first / "server.log", _answers)
        try:
            server.start()
        finally:
            server.stop(_ARCHIVE_SECONDS)


def _format(java: str, jars: Path, folder: Path, jvm: Sequence[str], storage: Sequence[str]) -> None:
    """Format the storage of a broker whose properties are in a folder."""
    form = ["format", "-t", _new_id(), "-c", str(folder / "server.properties"), *storage]
    run_to_end(
        [java, "-Xmx256M", *jvm, "-cp", f"{jars}/*", "kafka.tools.StorageTool", *form],
        purpose="formatting Kafka's storage",
    )


def _copy_formatted(formatted: Path, data: Path) -> None:
    """Copy formatted storage as that of another cluster."""
    shutil.copytree(formatted, data, dirs_exist_ok=True)  # it may be the root of a disk of its own
    about = data / "meta.properties"
    about.write_text(re.sub(r"(?m)^cluster\.id=.*$", f"cluster.id={_new_id()}", about.read_text()))


def _new_id() -> str:
    """Return the id of a cluster. It begins with a letter, because a dash at its beginning would make it an option."""
    return base64.urlsafe_b64encode(b"n" + uuid.uuid4().bytes[1:]).decode().rstrip("=")


def server_properties(ports: KafkaPorts, data: Path) -> str:
    """Return the configuration of a small single-node broker.

    The node is broker and controller. A broker that was killed can register again only after its previous session has
    expired, here after 3 s instead of the default 9 s.
    """
    listeners = f"PLAINTEXT://127.0.0.1:{ports.client},FAULT://127.0.0.1:{{}},CONTROLLER://127.0.0.1:{ports.controller}"
    settings = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@127.0.0.1:{ports.controller}",
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
        "metadata.max.idle.interval.ms": 10_000,  # by default it writes a record twice a second that says nothing
        "num.network.threads": 2,
        "num.io.threads": 2,
        "log.cleaner.dedupe.buffer.size": 16_777_216,
        # Each partition maps two index files of this size. Linux fills much of a new one with zeros at the first
        # access, which took the broker up to three times the CPU of all else with the default of 10 MB.
        "log.index.size.max.bytes": 1_048_576,
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def command_line(java: str, jars: Path, folder: Path, jvm: Sequence[str]) -> list[str]:
    """Return the broker's program and arguments."""
    heap = ["-Xms256M", "-Xmx512M", *jvm, "-Djava.awt.headless=true", f"-Djava.io.tmpdir={folder / 'tmp'}"]
    logging = [f"-Dkafka.logs.dir={folder / 'logs'}", f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}"]
    return [java, *heap, *logging, "-cp", f"{jars}/*", "kafka.Kafka", str(folder / "server.properties")]


def find_java() -> str:
    """Return the path of the Java in JAVA_HOME, else in PATH."""
    homes = [f"{home}/bin" for home in [os.environ.get("JAVA_HOME")] if home]
    java = shutil.which("java", path=os.pathsep.join([*homes, os.environ.get("PATH", "")]))
    if java is None:
        raise StackUnavailableError("no Kafka: it needs Java 17 or newer; no java in JAVA_HOME or PATH")
    return java


def kafka_jars() -> Path:
    """Return the folder of the broker's jars.

    They are downloaded through Maven once per user.
    """
    return cached(f"kafka-{KAFKA_VERSION}", "Kafka", _download) / "lib"


def _download(folder: Path) -> None:
    say(f"downloading Apache Kafka {KAFKA_VERSION} (55 MB), once")
    maven(
        "-f", str(POM), "dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder / 'lib'}"
    )


def maven(*arguments: str) -> None:
    """Run Maven."""
    program = shutil.which("mvn")
    if program is None:
        raise StackUnavailableError("no Kafka: it is not downloaded yet, and there is no mvn on PATH to download it")
    run_to_end([program, "-q", "-B", *arguments], purpose="downloading from Maven")


def _answers(address: str) -> bool:
    return port_answers(address) and asyncio.run(_keeps_records(address))


async def _keeps_records(bootstrap: str) -> bool:
    """Return whether groups have a coordinator, and a new topic keeps a record.

    An open port is not enough: a broker listens before its log works, and it creates the topic that groups need only
    when the first group asks for it.
    """
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap, request_timeout_ms=_REQUEST_MS)
    topic = f"nearstream-ready-{uuid.uuid4().hex}"
    try:
        async with asyncio.timeout(_ATTEMPT_SECONDS):
            await admin.start()
            await admin.find_coordinator("nearstream-ready")
            created = await admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])
            if created.topic_errors[0][1] == 0:
                async with AIOKafkaProducer(bootstrap_servers=bootstrap, request_timeout_ms=_REQUEST_MS) as producer:
                    await producer.send_and_wait(topic, b"ready")
                await admin.delete_topics([topic])
            return bool(created.topic_errors[0][1] == 0)
    except (KafkaError, OSError, TimeoutError):
        return False
    finally:
        await admin.close()
