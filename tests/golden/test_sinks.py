"""The files for stores of events have each field that an event of their topic can have."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from nearstream.schemas.published.json_schema import MESSAGES
from nearstream.schemas.topics.table import ALERTS, EVENT_TOPICS, LABELS_CHANGED

ROOT = Path(__file__).parents[2]
SINKS, EXAMPLES = ROOT / "deploy/sinks", ROOT / "schemas/examples"
NAMES = {struct.__name__: name for name, struct in MESSAGES.items()}
STORED = (*EVENT_TOPICS, ALERTS, LABELS_CHANGED)  # topics whose records have an id of their own
CREATED = dict(re.findall(r"^CREATE TABLE (\w+) \(\n(.*?)\n\)", (SINKS / "clickhouse.sql").read_text(), re.M | re.S))


def fields(record: dict[str, Any]) -> set[str]:
    """Return the path of each field of a record that a column can have."""
    paths = set()
    for name, value in record.items():
        if isinstance(value, dict) and name not in ("thresholds", "labels"):
            paths |= {f"{name}.{inner}" for inner in fields(value)}
        elif value is not None and not isinstance(value, list | dict):
            paths.add(name)
    return paths


def of_connect(schema: dict[str, Any]) -> dict[str, Any]:
    return {each["field"]: of_connect(each) if "fields" in each else 0 for each in schema["fields"]}


def of_opensearch(mapping: dict[str, Any]) -> dict[str, Any]:
    return {name: of_opensearch(each) if "properties" in each else 0 for name, each in mapping["properties"].items()}


@pytest.mark.parametrize("topic", STORED, ids=lambda topic: topic.name)
def test_the_files_have_each_field_of_the_examples(topic: Any) -> None:  # noqa: ANN401
    table = topic.name.removeprefix("nearstream.").removesuffix(".v1").replace("-", "_")
    wanted = set().union(*(fields(json.loads((EXAMPLES / f"{NAMES[name]}.json").read_text())) for name in topic.values))
    kind = "verdicts" if table == "verdicts" else "events"
    properties = dict(line.split("=", 1) for line in (SINKS / f"{table}.properties").read_text().splitlines())
    assert properties["topics"] == topic.name
    assert wanted <= _paths(of_connect(json.loads(properties["value.converter.schema.content"])))
    assert wanted <= _paths(of_opensearch(json.loads((SINKS / f"opensearch-{kind}.json").read_text())["mappings"]))
    assert {path.rpartition(".")[2] for path in wanted} <= set(re.findall(r"`(\w+)`", CREATED[table]))


def _paths(columns: dict[str, Any], before: str = "") -> set[str]:
    found = (_paths(each, f"{before}{name}.") if each else {before + name} for name, each in columns.items())
    return set().union(*found)
