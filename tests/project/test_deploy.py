"""The files for Docker, Kubernetes and systemd agree with the code that they run."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from nearstream.schemas.topics.table import DOCUMENTS, SIGNATURES
from nearstream.workers.cli.parser import create_parser
from nearstream.workers.cli.servers import ROLES
from nearstream.workers.config.settings import PREFIX, Settings, load
from tests.devstack.chart_tools import rendered, run_helm, unfit
from tests.devstack.debian import unpacked
from tests.devstack.release import copy_sources
from tests.support.distributions import run

ROOT = Path(__file__).resolve().parents[2]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES = COMPOSE["services"]
OURS = ("topics", "worker", "serve", "alert")
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
CHART = ROOT / "deploy/helm/nearstream"
VALUES = sorted((CHART / "ci").glob("*-values.yaml"))
CHART_VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
ROLES_OF_CHART = CHART_VALUES["workers"]
UNITS = sorted((ROOT / "deploy/systemd").glob("nearstream*.*"))
SPREAD = {"kubernetes.io/hostname", "topology.kubernetes.io/zone"}
INSTALLED = "/opt/nearstream/bin/nearstream"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


def test_every_variable_that_is_named_is_a_setting() -> None:
    known = {PREFIX + item.name.upper() for item in fields(Settings)}
    named = [ROOT / "docker-compose.yml", ROOT / "Dockerfile", ROOT / "docs/docker.md"]
    for path in [*named, *(path for path in CHART.rglob("*") if path.is_file())]:
        used = set(re.findall(rf"\b{PREFIX}[A-Z_]+", path.read_text()))
        assert {name.removesuffix("_FILE") for name in used} <= known, path


def test_what_stops_a_worker_waits_for_longer_than_its_stop_takes() -> None:
    assert CHART_VALUES["terminationGracePeriodSeconds"] > Settings().stop_seconds
    assert int(SERVICES["worker"]["stop_grace_period"].removesuffix("s")) > Settings().stop_seconds


def test_versions_are_those_of_the_package_and_no_image_is_the_latest() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    images = re.findall(r"nearstream:(\d\S*)", (ROOT / "docs/kubernetes.md").read_text())
    assert {chart["version"], chart["appVersion"], *images} == {VERSION}
    used = {service["image"] for service in SERVICES.values() if "build" not in service}
    used |= set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE))
    assert all(re.fullmatch(r"[a-z/]+:v?\d[\w.-]*(@sha256:[0-9a-f]{64})?", image) for image in used)


def test_ports_are_open_on_loopback_only_where_programs_outside_look_for_them() -> None:
    published = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert len(published) == len(set(published)) == 6
    assert all(port.startswith("127.0.0.1:") for port in published)
    assert not [name for name, service in SERVICES.items() if "network_mode" in service]


def test_the_index_server_never_evicts_and_keeps_what_it_has() -> None:
    words = SERVICES["valkey"]["command"]
    settings = dict(zip(words[1::2], words[2::2], strict=True))
    assert settings.items() >= {"--maxmemory-policy": "noeviction", "--appendonly": "yes"}.items()


def test_every_service_is_bounded_and_ours_cannot_write_or_gain_rights() -> None:
    for name, service in SERVICES.items():
        is_lasting = name != "topics"
        assert service["restart"] == ("unless-stopped" if is_lasting else "no"), name
        assert re.fullmatch(r"\d+[mg]", service["mem_limit"]), name
        assert ("healthcheck" in service) == is_lasting, name
        mounts = [mount.split(":") for mount in service.get("volumes", []) if mount.startswith("./")]
        assert all((ROOT / source).exists() and mode == "ro" for source, _, mode in mounts), name
    limits = {each["resources"]["limits"]["memory"] for each in (*ROLES_OF_CHART.values(), CHART_VALUES["serve"])}
    assert ({SERVICES[name]["mem_limit"] for name in OURS}, limits) == ({"2g"}, {"2Gi"})
    for page in ("operations", "docker", "kubernetes"):
        assert "2 GiB" in (ROOT / f"docs/{page}.md").read_text(), page
    for name in OURS:
        assert (SERVICES[name]["read_only"], SERVICES[name]["cap_drop"]) == (True, ["ALL"])
        assert SERVICES[name]["security_opt"] == ["no-new-privileges:true"]
        assert [mount.split(":")[0] for mount in SERVICES[name]["tmpfs"]] == ["/tmp"]  # noqa: S108


@pytest.mark.parametrize("service", ["worker", "serve", "alert"])
def test_what_listens_beyond_its_container_has_a_token_from_a_file(service: str) -> None:
    environment = SERVICES[service]["environment"]
    settings = load(
        {name: value for name, value in environment.items() if not name.endswith("_FILE")}
        | {name.removesuffix("_FILE"): "t" * 20 for name in environment if name.endswith("_FILE")}
    )
    (secret,) = SERVICES[service]["secrets"]
    assert f"/run/secrets/{secret}" in environment.values()
    assert [settings.status.startswith("0.0.0.0:"), settings.api.startswith("0.0.0.0:")].count(True) == 1
    assert re.search(r"http://127\.0\.0\.1:946[45]/readyz", SERVICES[service]["healthcheck"]["test"][-1])
    path = re.fullmatch(r"\$\{[A-Z_]+:-(\./deploy/compose/[a-z]+\.token)\}", COMPOSE["secrets"][secret]["file"])
    assert path is not None
    assert len((ROOT / path[1]).read_text().strip()) >= 16


def test_prometheus_finds_every_service_that_serves_metrics_with_its_token() -> None:
    config = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())
    found = {
        (name, place["port"]): job["authorization"]["credentials_file"]
        for job in config["scrape_configs"]
        for place in job["dns_sd_configs"]
        for name in place["names"]
    }
    status, api = "/run/secrets/status_token", "/run/secrets/api_token"
    assert found == {("worker", 9464): status, ("alert", 9464): status, ("serve", 9465): api}
    assert SERVICES["prometheus"]["secrets"] == ["status_token", "api_token"]


def test_s23_the_image_runs_nearstream_as_nobody_special_and_builds_nothing() -> None:
    last = DOCKERFILE.rpartition("\nFROM ")[2]
    assert last.rstrip().endswith('USER 10001:10001\nENTRYPOINT ["nearstream"]')
    assert not re.search(r"apt-get|pip install|pip wheel|gcc", last)


@pytest.mark.foreign
@pytest.mark.timeout(1200)
def test_what_the_image_is_built_by_makes_a_program_that_reads_web_pages(tmp_path: Path) -> None:
    """The steps of the Dockerfile run here, in folders of ours and with our Python, over what Docker would be sent."""
    sent = re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    sources = copy_sources(tmp_path / "source")
    assert {path.name for path in sources.iterdir()} | {"deploy/requirements.lock"} == set(sent)
    (sources / "deploy").mkdir()
    shutil.copy(ROOT / "deploy/requirements.lock", sources / "deploy")
    (extras,) = re.findall(r"^ARG EXTRAS=(\S+)$", DOCKERFILE, re.MULTILINE)
    assert {service["build"]["args"]["EXTRAS"] for name, service in SERVICES.items() if name in OURS} == {
        f"${{EXTRAS:-{extras}}}"
    }
    (steps,) = re.findall(r"^RUN (pip wheel(?:.*\\\n)*.*)$", DOCKERFILE, re.MULTILINE)
    steps = steps.replace("/wheels", f"{tmp_path}/wheels").replace("/opt/nearstream", f"{tmp_path}/image")
    python = f"{Path(sys.base_prefix) / 'bin'}:{os.environ['PATH']}"
    run(["sh", "-ec", steps], sources, within_seconds=1000, EXTRAS=extras, PATH=python)
    (tmp_path / "page.html").write_text("<title>t</title><main>" + "<p>A flood came at night." * 9)
    seen = run([str(tmp_path / "image/bin/nearstream"), "scan", "page.html", "--all", "--json"], tmp_path)
    assert '"verdict":"unique"' in seen


@pytest.mark.foreign
@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)
def test_all_that_the_chart_makes_fits_its_schema_and_its_pods_load_their_settings(
    values: Path, tmp_path: Path
) -> None:
    linted = run_helm("lint", "--strict", str(CHART), "--values", str(values))
    assert linted.returncode == 0, linted.stdout
    made = rendered(CHART, values)
    assert unfit(made) == []
    wrong = [{**each, "spec": {**each["spec"], "surplus": 1}} for each in made if each["kind"] == "Deployment"]
    assert len(unfit(wrong)) == 2 * len(wrong) > 0  # by the schemas of two versions
    names = [(each["kind"], each["metadata"]["name"]) for each in made]
    assert len(names) == len(set(names))
    secrets = {"hash-key": "k" * 32, "status-token": "s" * 16, "api-token": "a" * 16, "kafka-password": "p"}
    for name, text in (secrets | {"redis-address": "rediss://u:p@redis.example:6379/0"}).items():
        (tmp_path / name).write_text(text)
    for pod in [each["spec"]["template"]["spec"] for each in made if each["kind"] in ("Deployment", "Job")]:
        (container,) = pod["containers"]
        given = {each["name"]: each["value"] for each in container["env"]}
        load({name: text.replace("/etc/nearstream/secret", str(tmp_path)) for name, text in given.items()})
        assert {each["topologyKey"] for each in pod.get("topologySpreadConstraints", [])} in (set(), SPREAD)
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert pod["securityContext"]["runAsNonRoot"]


@pytest.mark.foreign
def test_workers_are_scaled_by_their_lag_and_watched_by_the_rules_of_prometheus() -> None:
    made = rendered(CHART, CHART / "ci/production-values.yaml")
    scaled: dict[str, Any] = {each["metadata"]["name"]: each["spec"] for each in made if each["kind"] == "ScaledObject"}
    topics = {name: [each["metadata"]["topic"] for each in spec["triggers"]] for name, spec in scaled.items()}
    assert topics == {"trial-sign": [DOCUMENTS.name], "trial-match": [SIGNATURES.name]}
    assert {spec["maxReplicaCount"] for spec in scaled.values()} == {24}
    deployed = {each["metadata"]["name"]: each["spec"] for each in made if each["kind"] == "Deployment"}
    assert [name for name in sorted(deployed) if "replicas" not in deployed[name]] == ["trial-match", "trial-sign"]
    (rule,) = [each["spec"] for each in made if each["kind"] == "PrometheusRule"]
    assert rule["groups"] == yaml.safe_load((ROOT / "deploy/prometheus/rules.yml").read_text())["groups"]
    watched = {each["metadata"]["name"]: each["spec"] for each in made if each["kind"] == "ServiceMonitor"}
    assert {name: spec["endpoints"][0]["authorization"]["credentials"]["key"] for name, spec in watched.items()} == {
        "trial-workers": "status-token",
        "trial-serve": "metrics-token",
    }
    # The rules look for jobs of this name, and the release has another one.
    services = [each["metadata"]["labels"] for each in made if each["kind"] == "Service"]
    assert {labels[spec["jobLabel"]] for spec in watched.values() for labels in services} == {"nearstream"}


@pytest.mark.foreign
@pytest.mark.parametrize(
    ("part", "told"),
    [
        ("image: {}", "image.repository: expected the image that you built"),
        ("settings: {NEARSTREAM_KAFAK: k}", "NEARSTREAM_KAFAK"),
        ("serviceMonitor: {enable: true}", "enable"),
        ("topics: {partitions: many}", "partitions"),
        ("settings: {}", "settings.NEARSTREAM_KAFKA: expected an address"),
        ("settings: {NEARSTREAM_KAFKA: k}", "settings.NEARSTREAM_REDIS: expected an address"),
        ("secret: {name: own}", "secret.settings.NEARSTREAM_HASH_KEY: expected the key of your Secret"),
        ("secret: {name: own, settings: {NEARSTREAM_HASH_KEY: k}}", "secret.settings.NEARSTREAM_STATUS_TOKEN"),
        (
            "secret: {name: own, settings: {NEARSTREAM_HASH_KEY: k, NEARSTREAM_STATUS_TOKEN: s}}",
            "secret.settings.NEARSTREAM_API_TOKEN",
        ),
        ("secret: {settings: {NEARSTREAM_HASH_KEY: k}}", "secret.name: expected the name of the Secret"),
    ],
)
def test_values_with_which_no_pod_would_start_are_refused(part: str, told: str, tmp_path: Path) -> None:
    given = yaml.safe_load("image: {repository: r}\nsettings: {NEARSTREAM_KAFKA: k, NEARSTREAM_REDIS: 'redis://r'}")
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(given | yaml.safe_load(part)))
    with pytest.raises(ValueError, match=re.escape(told)):
        rendered(CHART, tmp_path / "values.yaml")


def test_the_schema_of_the_chart_knows_each_setting_and_each_value() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())["properties"]
    known = {PREFIX + item.name.upper() for item in fields(Settings)}
    assert (
        set(schema["settings"]["properties"]) == set(schema["secret"]["properties"]["settings"]["properties"]) == known
    )
    assert set(schema) - {"global"} == set(CHART_VALUES)
    assert tuple(sorted(schema["workers"]["properties"])) == tuple(sorted(ROLES))


@pytest.mark.foreign
def test_systemd_finds_nothing_wrong_with_the_units(tmp_path: Path) -> None:
    """Of a template, the instance `all` is judged. The units that ours name are those of the Debian package."""
    tree, program, copies = unpacked("systemd"), tmp_path / "nearstream", []
    program.symlink_to(Path(sys.executable).parent / "nearstream")
    for unit in UNITS:
        (tmp_path / unit.name).write_text(unit.read_text().replace(INSTALLED, str(program)))
        if unit.suffix in (".service", ".timer"):
            copies.append(tmp_path / unit.name.replace("@.", "@all."))
    known = f"{tmp_path}:{tree.root / 'usr/lib/systemd/system'}:{tree.root / 'lib/systemd/system'}"
    done = subprocess.run(
        [tree.program("systemd-analyze"), "verify", "--man=no", "--recursive-errors=one", *copies],
        env=os.environ | tree.environment(*tree.private_libraries) | {"SYSTEMD_UNIT_PATH": known},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_unit_starts_a_command_that_there_is_and_its_settings_can_be_loaded() -> None:
    services = {unit.stem: unit for unit in UNITS if unit.suffix == ".service"}
    assert {unit.stem for unit in UNITS if unit.suffix == ".timer"} <= services.keys()
    for unit in services.values():
        ((program, line),) = re.findall(r"^ExecStart=(\S+) (.*)$", unit.read_text(), re.MULTILINE)
        assert program == INSTALLED
        assert ("Restart=" in unit.read_text()) == ("ExecReload=/bin/kill -HUP $MAINPID" in unit.read_text())
        for role in ROLES if "%i" in line else ("",):
            create_parser().parse_args(line.replace("%i", role).split())
    for profile, path in (("production", "systemd/nearstream.env"), ("mail", "mail/nearstream.env")):
        lines = (ROOT / "deploy" / path).read_text().splitlines()
        given = dict(line.split("=", 1) for line in lines if not line.startswith("#"))
        assert load(given | {"NEARSTREAM_HASH_KEY": "k" * 32}).profile == profile
