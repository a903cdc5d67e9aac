"""The rules of Prometheus, the configuration of Alertmanager and the dashboard of Grafana."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml
from prometheus_client import REGISTRY

from nearstream.streams.matching.judge import MatchCounts
from nearstream.workers.config import alert_rules
from nearstream.workers.kafka.lag import PartitionLag
from nearstream.workers.monitoring.health import Health
from nearstream.workers.monitoring.metrics import GroupMetrics, WorkerMetrics
from tests.devstack.prometheus import DEPLOY, amtool, promtool
from tests.support.dashboards import RULES, expressions

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
    of_group = GroupMetrics(list, list)
    families = [*REGISTRY.collect(), *of_worker.collect(), *of_group.collect()]
    suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",)}
    declared = {family.name + suffix for family in families for suffix in suffixes.get(family.type, ())}
    recorded = {rule["record"] for rule in RULES if "record" in rule}
    used = {name for text in expressions() for name in re.findall(r"\bnearstream[_:][a-z0-9_:]+", text)}
    assert used - declared - recorded == set()
    assert recorded <= used


def test_the_rules_that_the_page_shows_are_the_default_ones(tmp_path: Path) -> None:
    (shown, _) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "alerts.toml").write_text(shown)
    assert set(alert_rules.load_alerts(str(tmp_path / "alerts.toml")).rules) == set(alert_rules.DEFAULT_RULES)
