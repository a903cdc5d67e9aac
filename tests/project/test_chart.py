"""The Helm chart: what it makes fits the schemas of its kinds, and the code that it runs."""

import re
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from nearstream.schemas.topics.table import DOCUMENTS, SIGNATURES
from nearstream.workers.config.settings import PREFIX, Settings, load
from tests.devstack.chart_tools import rendered, run_helm, unfit

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy/helm/nearstream"
EXAMPLES = sorted((CHART / "ci").glob("*-values.yaml"))
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())


def test_the_chart_names_only_settings_that_exist() -> None:
    known = {PREFIX + item.name.upper() for item in fields(Settings)}
    texts = [path.read_text() for path in CHART.rglob("*") if path.is_file()]
    used = {name for text in texts for name in re.findall(rf"\b{PREFIX}[A-Z_]+", text)}
    assert {name.removesuffix("_FILE") for name in used} <= known


def test_a_pod_has_longer_to_stop_than_a_worker_takes() -> None:
    assert VALUES["terminationGracePeriodSeconds"] > load({}).stop_seconds


def test_the_chart_and_its_page_name_the_version_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    images = re.findall(r"nearstream:(\d\S*)", (ROOT / "docs/kubernetes.md").read_text())
    assert {chart["version"], chart["appVersion"], *images} == {version}


@pytest.mark.foreign
@pytest.mark.parametrize("values", EXAMPLES, ids=lambda path: path.stem)
def test_everything_that_the_chart_makes_fits_the_schema_of_its_kind(values: Path) -> None:
    linted = run_helm("lint", "--strict", str(CHART), "--values", str(values))
    assert linted.returncode == 0, linted.stdout
    assert unfit(rendered(CHART, values)) == []


@pytest.mark.foreign
def test_what_fits_no_schema_is_found() -> None:
    made = rendered(CHART, CHART / "ci/production-values.yaml")
    wrong = [{**each, "spec": {**each["spec"], "surplus": 1}} for each in made if each["kind"] == "Deployment"]
    scaled = [{**each, "spec": {**each["spec"], "triggers": 1}} for each in made if each["kind"] == "ScaledObject"]
    assert len(unfit(wrong + scaled)) == 2 * len(wrong) + len(scaled)


@pytest.mark.foreign
@pytest.mark.parametrize("values", EXAMPLES, ids=lambda path: path.stem)
def test_the_settings_of_each_pod_load_and_its_secrets_are_files(values: Path, tmp_path: Path) -> None:
    secrets = {"hash-key": "k" * 32, "status-token": "s" * 16, "api-token": "a" * 16, "kafka-password": "p"}
    for name, text in (secrets | {"redis-address": "rediss://u:p@redis.example:6379/0"}).items():
        (tmp_path / name).write_text(text)
    pods = list(_pods(rendered(CHART, values)))
    assert pods
    for pod in pods:
        (container,) = pod["containers"]
        given = {each["name"]: each["value"] for each in container["env"]}
        load({name: text.replace("/etc/nearstream/secret", str(tmp_path)) for name, text in given.items()})
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["terminationGracePeriodSeconds"] == 45


@pytest.mark.foreign
def test_workers_are_scaled_by_their_lag_up_to_the_partitions() -> None:
    made = rendered(CHART, CHART / "ci/production-values.yaml")
    scaled = {each["metadata"]["name"]: each["spec"] for each in made if each["kind"] == "ScaledObject"}
    topics = {name: [each["metadata"]["topic"] for each in spec["triggers"]] for name, spec in scaled.items()}
    assert topics == {"trial-sign": [DOCUMENTS.name], "trial-match": [SIGNATURES.name]}
    assert {spec["maxReplicaCount"] for spec in scaled.values()} == {24}
    deployed = {each["metadata"]["name"]: each["spec"] for each in made if each["kind"] == "Deployment"}
    assert [name for name in sorted(deployed) if "replicas" not in deployed[name]] == ["trial-match", "trial-sign"]


@pytest.mark.foreign
def test_without_an_image_the_chart_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text("{}")
    with pytest.raises(ValueError, match=r"image\.repository: expected the image that you built"):
        rendered(CHART, tmp_path / "values.yaml")


def _pods(resources: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each["spec"]["template"]["spec"] for each in resources if each["kind"] in ("Deployment", "Job")]
