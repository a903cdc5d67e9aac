"""The rules of Prometheus and the dashboard of Grafana, as they are read by both."""

import json

import yaml

from tests.devstack.prometheus import DEPLOY

GRAFANA = DEPLOY.parent / "grafana"
DASHBOARD = json.loads((GRAFANA / "dashboards/nearstream.json").read_text())
RULES = [rule for group in yaml.safe_load((DEPLOY / "rules.yml").read_text())["groups"] for rule in group["rules"]]


def expressions() -> list[str]:
    """Return every expression of the rules and of the dashboard."""
    of_panels = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    of_marks = [each["expr"] for each in DASHBOARD["annotations"]["list"]]
    return [rule["expr"] for rule in RULES] + of_panels + of_marks
