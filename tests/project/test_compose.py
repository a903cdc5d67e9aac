"""The files for Docker agree with the code that they run."""

import re
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from nearstream.workers.config.settings import PREFIX, Settings, load
from tests.devstack.kafka import KAFKA_VERSION, POM
from tests.devstack.redis import command_line

ROOT = Path(__file__).resolve().parents[2]
COMPOSE = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
GUIDE = (ROOT / "docs" / "docker.md").read_text(encoding="utf-8")
TOP = dict(re.findall(r"^([a-z-]+):.*\n((?:(?: .*)?\n)*)", COMPOSE, re.MULTILINE))
SERVICES = dict(re.findall(r"^  ([a-z]+):\n((?:(?:   .*)?\n)*)", TOP["services"], re.MULTILINE))
ONE_SHOT = {"topics"}
SHARED, WORKER = TOP["x-nearstream"], TOP["x-worker"]
PARSED = yaml.safe_load(COMPOSE)["services"]
OURS = ("topics", "worker", "serve", "alert")


def test_ports_are_open_on_loopback_only() -> None:
    published = [port for body in SERVICES.values() for port in _list(body, "ports")]
    assert len(published) == len(set(published)) == 6
    assert all(port.startswith("127.0.0.1:") for port in published)
    assert COMPOSE.count("ports:") == 6
    assert "network_mode" not in COMPOSE


@pytest.mark.parametrize("text", [COMPOSE, DOCKERFILE, GUIDE], ids=["compose", "Dockerfile", "guide"])
def test_every_variable_is_a_setting(text: str) -> None:
    known = {PREFIX + item.name.upper() for item in fields(Settings)}
    used = set(re.findall(rf"\b{PREFIX}[A-Z_]+", text))
    assert {name.removesuffix("_FILE") for name in used} <= known


def test_the_broker_is_the_one_that_the_tests_run() -> None:
    assert _image("kafka") == f"apache/kafka:{KAFKA_VERSION}"
    assert f"<kafka.version>{KAFKA_VERSION}</kafka.version>" in POM.read_text(encoding="utf-8")


def test_workers_inside_and_programs_outside_reach_the_broker_by_the_address_it_tells_them() -> None:
    inside = re.search(r"NEARSTREAM_KAFKA: (\S+)", SHARED)
    assert inside is not None
    told = f"KAFKA_ADVERTISED_LISTENERS: INSIDE://{inside[1]},OUTSIDE://127.0.0.1:${{KAFKA_PORT:-9092}}\n"
    assert told in SERVICES["kafka"]
    assert _list(SERVICES["kafka"], "ports") == ["127.0.0.1:${KAFKA_PORT:-9092}:9092"]
    assert Settings().kafka == "127.0.0.1:9092"
    assert _list(SERVICES["valkey"], "ports") == ["127.0.0.1:${REDIS_PORT:-6379}:6379"]
    assert Settings().redis == "redis://127.0.0.1:6379/0"


def test_the_index_server_never_evicts_and_is_set_as_the_one_of_the_tests() -> None:
    words = _list(SERVICES["valkey"], "command")
    settings = dict(zip(words[1::2], words[2::2], strict=True))
    assert settings["--maxmemory-policy"] == "noeviction"
    assert settings["--appendfsync"] == "everysec"
    tested = command_line("", 0, Path())
    same = ("--save", "--appendonly", "--maxmemory-policy", "--hash-max-listpack-value")
    assert {name: settings[name] for name in same} == {name: tested[tested.index(name) + 1] for name in same}


def test_every_service_has_a_memory_limit_and_a_lasting_one_a_health_check() -> None:
    for name, service in PARSED.items():
        assert service["restart"] == ("no" if name in ONE_SHOT else "unless-stopped"), name
        assert re.search(r"^    mem_limit: \d+[mg]$", SERVICES[name], re.MULTILINE), name
        assert ("healthcheck" in service) == (name not in ONE_SHOT), name
    grace = re.search(r"stop_grace_period: (\d+)s", WORKER)
    assert grace is not None
    assert int(grace[1]) > Settings().stop_seconds


def test_what_runs_nearstream_cannot_write_or_gain_rights() -> None:
    for service in OURS:
        assert PARSED[service]["read_only"] is True
        assert PARSED[service]["cap_drop"] == ["ALL"]
        assert PARSED[service]["build"] == "."
    assert "  read_only: true\n" in SHARED
    assert _list(SHARED, "cap_drop", indent=2) == ["ALL"]
    assert _list(SHARED, "security_opt", indent=2) == ["no-new-privileges:true"]
    assert [mount.split(":")[0] for mount in _list(SHARED, "tmpfs", indent=2)] == ["/tmp"]  # noqa: S108
    assert "TMPDIR=/tmp\n" in DOCKERFILE


@pytest.mark.parametrize("service", ["worker", "serve", "alert"])
def test_what_listens_beyond_its_container_has_a_token_from_a_file(service: str) -> None:
    environment = PARSED[service]["environment"]
    settings = load(
        {name: value for name, value in environment.items() if not name.endswith("_FILE")}
        | {name.removesuffix("_FILE"): "t" * 20 for name in environment if name.endswith("_FILE")}
    )
    (secret,) = PARSED[service]["secrets"]
    assert f"/run/secrets/{secret}" in environment.values()
    assert [settings.status.startswith("0.0.0.0:"), settings.api.startswith("0.0.0.0:")].count(True) == 1
    assert re.search(r"http://127\.0\.0\.1:946[45]/readyz", PARSED[service]["healthcheck"]["test"][-1])


def test_every_secret_is_a_file_of_the_project_that_can_be_another() -> None:
    for name, secret in yaml.safe_load(COMPOSE)["secrets"].items():
        path = re.fullmatch(r"\$\{[A-Z_]+:-(\./deploy/compose/[a-z]+\.token)\}", secret["file"])
        assert path is not None, name
        assert len((ROOT / path[1]).read_text().strip()) >= 16


def test_prometheus_finds_every_service_that_serves_metrics_with_its_token() -> None:
    config = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())
    jobs = {job["job_name"]: job for job in config["scrape_configs"]}
    found = {
        (name, place["port"]): job["authorization"]["credentials_file"]
        for job in jobs.values()
        for place in job["dns_sd_configs"]
        for name in place["names"]
    }
    status, api = "/run/secrets/status_token", "/run/secrets/api_token"
    assert found == {("worker", 9464): status, ("alert", 9464): status, ("serve", 9465): api}
    assert PARSED["prometheus"]["secrets"] == ["status_token", "api_token"]
    (manager,) = config["alerting"]["alertmanagers"]
    assert manager["static_configs"] == [{"targets": ["alertmanager:9093"]}]


def test_every_mounted_file_exists() -> None:
    named = [mount for service in PARSED.values() for mount in service.get("volumes", [])]
    mounts = [mount.split(":") for mount in named if mount.startswith("./")]
    assert all((ROOT / source).exists() and mode == "ro" for source, _, mode in mounts)


def test_images_have_a_version() -> None:
    images = re.findall(r"^(?: +image:|FROM) (\S+)", COMPOSE + DOCKERFILE, re.MULTILINE)
    assert len(images) == 7
    assert all(re.fullmatch(r"[a-z/]+:v?\d[\w.-]*(@sha256:[0-9a-f]{64})?", image) for image in images)


def test_s23_the_image_runs_nearstream_as_nobody_special_and_builds_nothing() -> None:
    last = DOCKERFILE.rpartition("\nFROM ")[2]
    assert last.rstrip().endswith('USER 10001:10001\nENTRYPOINT ["nearstream"]')
    assert not re.search(r"apt-get|pip install|pip wheel|gcc", last)
    assert "HEALTHCHECK" not in DOCKERFILE


def test_the_image_is_built_from_what_the_wheel_is_made_of() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    made_of = {"pyproject.toml", project["project"]["readme"], *project["project"]["license-files"]}
    links = [path for path in (ROOT / "src/nearstream").iterdir() if path.is_symlink()]
    made_of |= {"deploy/requirements.lock", "src", *(link.name for link in links)}
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if not line.startswith("#")]
    assert rules[0] == "*"
    assert {rule[1:] for rule in rules if rule.startswith("!")} == made_of


def _image(service: str) -> str:
    found = re.search(r"^    image: (\S+)$", SERVICES[service], re.MULTILINE)
    return found[1] if found else ""


def _list(body: str, name: str, indent: int = 4) -> list[str]:
    """Return the items of a block list."""
    block = re.search(rf"^ {{{indent}}}{name}:\n((?: {{{indent + 2}}}- .*\n)+)", body, re.MULTILINE)
    return [line.strip().removeprefix("- ").strip('"') for line in block[1].splitlines()] if block else []
