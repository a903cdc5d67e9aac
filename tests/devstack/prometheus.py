"""A Prometheus and an Alertmanager of our own on free loopback ports, with the files of `deploy/prometheus`."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import yaml

from tests.devstack.debian import unpacked
from tests.devstack.server import LocalServer, answers_http, free_ports

DEPLOY = Path(__file__).parents[2] / "deploy/prometheus"


def promtool() -> str:
    """Return the path of the program that checks rules."""
    return str(unpacked("prometheus").program("promtool"))


def amtool() -> str:
    """Return the path of the program that checks the configuration of Alertmanager."""
    return str(unpacked("prometheus-alertmanager").program("amtool"))


def prometheus_server(folder: Path, targets: Sequence[str], token: str, alertmanager: str) -> LocalServer:
    """Return a Prometheus that scrapes and evaluates every second, not started yet.

    Args:
        folder: For configuration, data and log.
        targets: `host:port` of each worker, in place of the names of the containers.
        token: Bearer token of the workers.
        alertmanager: `host:port` of the Alertmanager.
    """
    program = unpacked("prometheus").program("prometheus")
    (port,) = free_ports(1)
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(DEPLOY / "rules.yml", folder)
    config = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"] = [alertmanager]
    job = config["scrape_configs"][0]
    config["scrape_configs"] = [job]
    job["authorization"] = {"credentials": token}
    del job["dns_sd_configs"]
    job["static_configs"] = [{"targets": list(targets)}]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    command = [
        str(program),
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    return LocalServer("Prometheus", f"127.0.0.1:{port}", command, folder / "server.log", answers_http("/-/ready"))


def alertmanager_server(folder: Path) -> LocalServer:
    """Return an Alertmanager, not started yet.

    Args:
        folder: For data and log.
    """
    tree = unpacked("prometheus-alertmanager")
    (port,) = free_ports(1)
    folder.mkdir(parents=True, exist_ok=True)
    # Debian's build reads its templates below /usr. In our copy this path is relative, and has the same length.
    program = folder / "alertmanager"
    content = tree.program("prometheus-alertmanager").read_bytes()
    program.write_bytes(content.replace(b"/usr/share/prometheus/", b"usr//share/prometheus/"))
    program.chmod(0o700)
    command = [
        *("env", "-C", str(tree.root)),
        str(program),
        f"--config.file={DEPLOY / 'alertmanager.yml'}",
        f"--storage.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
    ]
    return LocalServer("Alertmanager", f"127.0.0.1:{port}", command, folder / "server.log", answers_http("/-/ready"))
