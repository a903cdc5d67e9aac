"""The rules of Prometheus, the configuration of Alertmanager and the dashboard of Grafana."""

import json
import re
import subprocess
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import REGISTRY

from nearstream.streams.matching.judge import MatchCounts
from nearstream.workers.kafka.lag import PartitionLag
from nearstream.workers.monitoring.health import Health
from nearstream.workers.monitoring.metrics import WorkerMetrics, recall_metrics
from tests.devstack.prometheus import DEPLOY, amtool, promtool
from tests.support.dashboards import DASHBOARD, GRAFANA, RULES, expressions

ROOT = DEPLOY.parents[1]
PAGE = (ROOT / "docs/dashboards.md").read_text()


def checked(*command: str) -> None:
    done = subprocess.run(command, cwd=DEPLOY, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.foreign
@pytest.mark.parametrize(
    "arguments", [("check", "rules", "rules.yml"), ("test", "rules", "rules_test.yml")], ids=lambda words: words[0]
)
def test_promtool_accepts_the_rules_and_their_tests(arguments: tuple[str, ...]) -> None:
    checked(promtool(), *arguments)


@pytest.mark.foreign
@pytest.mark.parametrize("name", ["prometheus.yml", "hosts.yml"])
def test_promtool_accepts_the_configuration(name: str) -> None:
    checked(promtool(), "check", "config", "--syntax-only", name)


@pytest.mark.foreign
def test_amtool_accepts_the_configuration_of_alertmanager() -> None:
    checked(amtool(), "check-config", "alertmanager.yml")


def test_every_alert_rule_has_a_test_in_which_it_fires() -> None:
    tests = yaml.safe_load((DEPLOY / "rules_test.yml").read_text())["tests"]
    fired = {case["alertname"] for test in tests for case in test["alert_rule_test"] if case.get("exp_alerts")}
    assert fired == {rule["alert"] for rule in RULES if "alert" in rule}


def test_the_page_explains_every_alert_and_no_other() -> None:
    section = PAGE.partition("## Prometheus")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `([A-Z]\w+)` \|", section, re.MULTILINE)) == {
        rule["alert"] for rule in RULES if "alert" in rule
    }


def test_dashboards_use_declared_metrics_only() -> None:
    health = Health(assigned=frozenset({("t", 0)}), lags=(PartitionLag("t", 0, 0, 0, 1, 1.0),))
    of_worker = WorkerMetrics(health, MatchCounts(), {"role": "all"})
    families = [*REGISTRY.collect(), *of_worker.collect(), *recall_metrics(1.0, (0.5, 1.0), 1, 2).collect()]
    suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",)}
    declared = {family.name + suffix for family in families for suffix in suffixes.get(family.type, ())}
    recorded = {rule["record"] for rule in RULES if "record" in rule}
    used = {name for text in expressions() for name in re.findall(r"\bnearstream[_:][a-z0-9_:]+", text)}
    assert used - declared - recorded == set()
    assert recorded <= used


def test_the_dashboard_names_the_provisioned_data_source() -> None:
    provisioned = yaml.safe_load((GRAFANA / "provisioning/datasources/prometheus.yml").read_text())
    (source,) = provisioned["datasources"]
    named = re.findall(r'"uid": "([\w-]+)"', json.dumps(DASHBOARD["panels"] + DASHBOARD["annotations"]["list"]))
    assert set(named) == {source["uid"]}


def test_panels_have_a_meaning_and_do_not_overlap() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len({panel["title"] for panel in panels}) == len(panels)
    assert all(panel["description"] for panel in panels)
    for one, other in combinations([panel["gridPos"] for panel in panels], 2):
        assert not overlap(one, other), (one, other)
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in panels)


def overlap(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(one[at] < other[at] + other[by] and other[at] < one[at] + one[by] for at, by in (("x", "w"), ("y", "h")))


def test_the_folder_of_the_dashboards_is_the_one_that_is_mounted() -> None:
    provider = yaml.safe_load((GRAFANA / "provisioning/dashboards/nearstream.yml").read_text())
    path = Path(provider["providers"][0]["options"]["path"])
    assert f"./deploy/grafana/dashboards:{path}:ro" in (ROOT / "docker-compose.yml").read_text()
