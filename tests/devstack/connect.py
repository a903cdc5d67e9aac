"""A Kafka Connect worker of our own on a free loopback port, with the connectors that read files."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.devstack.cache import cached
from tests.devstack.kafka import KAFKA_VERSION, LOGGING, QUICK_START, find_java, maven, tool
from tests.devstack.server import LocalServer, free_ports, say


def connect_server(folder: Path, kafka: str, connectors: Mapping[str, str], jars: Sequence[Path] = ()) -> LocalServer:
    """Return a standalone Connect worker, not started yet. Starting it does not wait for it, since it has no clients.

    Args:
        folder: for configuration, offsets and log.
        kafka: `host:port` of the broker.
        connectors: the properties of each connector, by its name.
        jars: folders of jars in place of Kafka's and of the connectors that read files.
    """
    (port,) = free_ports(1)
    folder.mkdir(parents=True, exist_ok=True)
    settings = {
        "bootstrap.servers": kafka,
        "listeners": f"http://127.0.0.1:{port}",
        "offset.storage.file.filename": folder / "offsets",
        "plugin.discovery": "service_load",  # looks into no class files, which would take longer than all else
        # Each connector says how its values are written.
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    }
    (folder / "worker.properties").write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    (folder / "log4j2.properties").write_text(LOGGING)
    files = [folder / f"{name}.properties" for name in connectors]
    for file, properties in zip(files, connectors.values(), strict=True):
        file.write_text(properties)
    program = "org.apache.kafka.connect.cli.ConnectStandalone"
    if jars:
        path = ":".join(f"{each}/*" for each in jars)
        java, *options = [find_java(), "-Xmx256M", *QUICK_START, "-cp", path, program]
    else:
        java, *options = tool(program, _connector_jars())
    logging = f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}"
    command = [java, logging, *options, *map(str, (folder / "worker.properties", *files))]
    return LocalServer("Kafka Connect", f"127.0.0.1:{port}", command, folder / "connect.log", lambda _: True)


def _connector_jars() -> Path:
    return cached(f"connect-file-{KAFKA_VERSION}", "Kafka Connect", _download)


def _download(folder: Path) -> None:
    say(f"downloading the file connectors of Kafka Connect {KAFKA_VERSION}, once")
    artifact = f"org.apache.kafka:connect-file:{KAFKA_VERSION}"
    maven("dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={folder}")
