"""The files for Docker agree with the code that they run."""

import re
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from nearstream.workers.config.settings import PREFIX, Settings
from tests.devstack.kafka import KAFKA_VERSION, POM
from tests.devstack.redis import command_line

ROOT = Path(__file__).resolve().parents[2]
COMPOSE = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
GUIDE = (ROOT / "docs" / "docker.md").read_text(encoding="utf-8")
TOP = dict(re.findall(r"^([a-z-]+):.*\n((?:(?: .*)?\n)*)", COMPOSE, re.MULTILINE))
SERVICES = dict(re.findall(r"^  ([a-z]+):\n((?:(?:   .*)?\n)*)", TOP["services"], re.MULTILINE))
ONE_SHOT = {"topics"}
SHARED = TOP["x-nearstream"]


def test_the_services_are_those_of_a_whole_deployment() -> None:
    assert list(SERVICES) == ["kafka", "valkey", "topics", "worker"]


def test_ports_are_open_on_loopback_only() -> None:
    published = [port for body in SERVICES.values() for port in _list(body, "ports")]
    assert len(published) == 2
    assert all(port.startswith("127.0.0.1:") for port in published)
    assert COMPOSE.count("ports:") == 2
    assert "network_mode" not in COMPOSE


@pytest.mark.parametrize("text", [COMPOSE, DOCKERFILE, GUIDE], ids=["compose", "Dockerfile", "guide"])
def test_every_variable_is_a_setting(text: str) -> None:
    known = {PREFIX + item.name.upper() for item in fields(Settings)}
    used = set(re.findall(rf"\b{PREFIX}[A-Z_]+", text))
    assert {name.removesuffix("_FILE") for name in used} <= known


def test_the_broker_is_the_one_that_the_tests_run() -> None:
    assert _image("kafka") == f"apache/kafka:{KAFKA_VERSION}"
    assert f"<kafka.version>{KAFKA_VERSION}</kafka.version>" in POM.read_text(encoding="utf-8")


def test_the_broker_has_one_replica_of_everything_and_no_topic_appears_by_itself() -> None:
    settings = dict(re.findall(r'^      (KAFKA_[A-Z_]+): "?([^"\n]+)"?$', SERVICES["kafka"], re.MULTILINE))
    assert settings["KAFKA_AUTO_CREATE_TOPICS_ENABLE"] == "false"
    replicas = {name: value for name, value in settings.items() if name.endswith(("_REPLICATION_FACTOR", "_MIN_ISR"))}
    assert len(replicas) == 5
    assert set(replicas.values()) == {"1"}


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


def test_memory_above_what_the_index_may_fill_is_left() -> None:
    assert "- 2gb\n" in SERVICES["valkey"]
    assert "mem_limit: 3g\n" in SERVICES["valkey"]


@pytest.mark.parametrize("service", SERVICES)
def test_every_service_restarts_or_runs_once(service: str) -> None:
    restart = re.findall(r"^    restart: (.+)$", SERVICES[service], re.MULTILINE)
    assert restart == (['"no"'] if service in ONE_SHOT else ["unless-stopped"])


@pytest.mark.parametrize("service", SERVICES)
def test_every_service_has_a_memory_limit_and_a_lasting_one_a_health_check(service: str) -> None:
    assert re.search(r"^    mem_limit: \d+[mg]$", SERVICES[service], re.MULTILINE)
    assert ("    healthcheck:\n" in SERVICES[service]) == (service not in ONE_SHOT)


def test_two_workers_start_after_the_topics_and_have_longer_to_stop_than_they_need() -> None:
    assert "      replicas: 2\n" in SERVICES["worker"]
    assert "      topics:\n        condition: service_completed_successfully\n" in SERVICES["worker"]
    grace = re.search(r"stop_grace_period: (\d+)s", SERVICES["worker"])
    assert grace is not None
    assert int(grace[1]) > Settings().stop_seconds


@pytest.mark.parametrize("service", ["topics", "worker"])
def test_what_runs_nearstream_cannot_write_or_gain_rights(service: str) -> None:
    assert "    <<: *nearstream\n" in SERVICES[service]
    assert "  read_only: true\n" in SHARED
    assert _list(SHARED, "cap_drop", indent=2) == ["ALL"]
    assert _list(SHARED, "security_opt", indent=2) == ["no-new-privileges:true"]
    assert [mount.split(":")[0] for mount in _list(SHARED, "tmpfs", indent=2)] == ["/tmp"]  # noqa: S108
    assert "TMPDIR=/tmp\n" in DOCKERFILE


def test_images_have_a_version() -> None:
    images = re.findall(r"^(?: +image:|FROM) (\S+)", COMPOSE + DOCKERFILE, re.MULTILINE)
    assert len(images) == 4
    assert all(re.fullmatch(r"[a-z/]+:\d[\w.-]*(@sha256:[0-9a-f]{64})?", image) for image in images)


def test_the_image_runs_nearstream_as_nobody_special_and_builds_nothing() -> None:
    last = DOCKERFILE.rpartition("\nFROM ")[2]
    assert last.rstrip().endswith('USER 10001:10001\nENTRYPOINT ["nearstream"]')
    assert not re.search(r"apt-get|pip install|pip wheel|gcc", last)
    assert "HEALTHCHECK" not in DOCKERFILE


def test_the_image_is_built_from_what_the_wheel_is_made_of() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    made_of = {"pyproject.toml", project["project"]["readme"], *project["project"]["license-files"]}
    links = [path for path in (ROOT / "src/nearstream").iterdir() if path.is_symlink()]
    made_of |= {"src", *(link.name for link in links)}
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
