"""What stores of events are told fits the examples of all messages."""

import json
from pathlib import Path
from typing import Any

import pytest

from nearstream.schemas.published import sinks
from nearstream.schemas.published.json_schema import MESSAGES, subjects
from nearstream.schemas.published.sinks import Column, columns
from nearstream.schemas.topics.table import ALERTS, NEAR_DUPLICATES, VERDICTS, Topic

EXAMPLES = Path(__file__).parents[2] / "schemas/examples"
NAMES = {struct.__name__: name for name, struct in MESSAGES.items()}
TYPES = {"string": str, "time": str, "integer": int, "number": (int, float), "boolean": bool}


@pytest.mark.parametrize("topic", sinks.STORED, ids=lambda topic: topic.name)
def test_columns_have_every_scalar_of_the_examples(topic: Topic) -> None:
    for name in topic.values:
        check(json.loads((EXAMPLES / f"{NAMES[name]}.json").read_text()), columns(topic))


def check(record: dict[str, Any], some: tuple[Column, ...]) -> None:
    known = {column.name: column for column in some}
    for name, value in record.items():
        if name in ("thresholds", "labels") or value is None or isinstance(value, list):
            continue
        column = known[name]
        if isinstance(value, dict):
            check(value, column.columns)
        else:
            assert isinstance(value, TYPES[column.kind]), name


def test_a_column_of_an_object_is_written_for_each_store() -> None:
    (of,) = [each for each in sinks.connect_schema(VERDICTS)["fields"] if each["field"] == "of"]
    assert of["type"] == "struct"
    assert {"field": "offset", "optional": True, "type": "int64"} in of["fields"]
    tables = sinks.clickhouse_tables([ALERTS], "wide.")
    assert "`value` Nullable(Float64),\n" in tables
    assert "kafka_topic_list = 'wide.nearstream.alerts.v1'" in tables
    fields = sinks.opensearch_mapping(NEAR_DUPLICATES)["mappings"]["properties"]
    assert fields["newer"]["properties"]["observed_at"] == {"type": "date"}
    assert "topics=wide.nearstream.verdicts.v1\n" in sinks.jdbc_sink(VERDICTS, "wide.")


def test_a_subject_is_a_topic_and_a_message() -> None:
    assert subjects("wide.")["wide.nearstream.near-duplicates.v1-retraction"]["$id"] == "urn:nearstream:v1:retraction"
    assert not [subject for subject in subjects("") if "signatures" in subject]
