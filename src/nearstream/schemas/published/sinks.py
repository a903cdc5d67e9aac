"""What stores of events need to know: schemas for Kafka Connect, tables for ClickHouse, mappings for OpenSearch."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from nearstream.schemas.published.json_schema import MESSAGES, json_schemas
from nearstream.schemas.topics.table import ALERTS, EVENT_TOPICS, LABELS_CHANGED, Topic

STORED = (*EVENT_TOPICS, ALERTS, LABELS_CHANGED)  # topics whose records have an id of their own
ID = "event_id"

_NAMES = {struct.__name__: name for name, struct in MESSAGES.items()}
# By the type of a column: its type in Kafka Connect, ClickHouse and OpenSearch.
_TYPES = {
    "string": ("string", "String", "keyword"),
    "time": ("string", "DateTime64(3)", "date"),
    "integer": ("int64", "Int64", "long"),
    "number": ("double", "Float64", "double"),
    "boolean": ("boolean", "Bool", "boolean"),
}


@dataclass(frozen=True)
class Column:
    """A field of a record that a table can have. Lists, and objects of any names, have none.

    Attributes:
        name: The field.
        kind: One of `_TYPES`, or `object`.
        columns: Of an object: its own.
    """

    name: str
    kind: str
    columns: "tuple[Column, ...]" = ()


def columns(topic: Topic) -> tuple[Column, ...]:
    """Return the columns of all messages of a topic. A message need not have each."""
    schemas = json_schemas()
    found: tuple[Column, ...] = ()
    for name in topic.values:
        schema = schemas[_NAMES[name]]
        found = _merged(found, _of_object(schema["$defs"][name], schema["$defs"]))
    return found


def connect_schema(topic: Topic) -> dict[str, Any]:
    """Return the schema of a topic as `schema.content` of Kafka Connect's JsonConverter takes it."""
    return {"type": "struct", "optional": False, "fields": [_connect(each) for each in columns(topic)]}


def jdbc_sink(topic: Topic, prefix: str) -> str:
    """Return the properties of a connector that writes a topic to a table of PostgreSQL, a row for each event id."""
    settings = {
        "name": table(topic),
        "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
        "topics": prefix + topic.name,
        "connection.url": "jdbc:postgresql://127.0.0.1:5432/nearstream",
        "connection.username": "nearstream",
        "connection.password": "",
        "collection.name.format": table(topic),
        "insert.mode": "upsert",
        "primary.key.mode": "record_value",
        "primary.key.fields": ID,
        "schema.evolution": "basic",
        "quote.identifiers": "true",  # one is `offset`
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "true",
        "value.converter.schema.content": json.dumps(connect_schema(topic), separators=(",", ":")),
        "transforms": "flat",
        "transforms.flat.type": "org.apache.kafka.connect.transforms.Flatten$Value",
        "transforms.flat.delimiter": "_",
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def clickhouse_tables(topics: Sequence[Topic], prefix: str) -> str:
    """Return the statements that let ClickHouse read topics into tables, in which the last row of an id counts."""
    return "\n".join(_clickhouse(topic, prefix) for topic in topics)


def opensearch_mapping(topic: Topic) -> dict[str, Any]:
    """Return the body that creates an index of OpenSearch for a topic. Fields without a column are kept unsearched."""
    return {"mappings": {"dynamic": False, "properties": _properties(columns(topic))}}


def table(topic: Topic) -> str:
    """Return the name of the table of a topic."""
    return topic.name.removeprefix("nearstream.").removesuffix(".v1").replace("-", "_")


def _of_object(schema: dict[str, Any], definitions: dict[str, Any]) -> tuple[Column, ...]:
    found = (_column(name, each, definitions) for name, each in schema.get("properties", {}).items())
    return tuple(column for column in found if column is not None)


def _column(name: str, schema: dict[str, Any], definitions: dict[str, Any]) -> Column | None:
    """Return the column of a field, if a table can have it."""
    for choice in schema.get("anyOf", ()):
        if choice.get("type") != "null":
            return _column(name, choice, definitions)
    if "$ref" in schema:
        return _column(name, definitions[schema["$ref"].rpartition("/")[2]], definitions)
    kind = schema.get("type")
    if kind is None and ("enum" in schema or "const" in schema):
        kind = "string"
    if kind == "object":
        inner = _of_object(schema, definitions)
        return Column(name, kind, inner) if inner else None
    if schema.get("format") == "date-time":
        kind = "time"
    return Column(name, kind) if kind in _TYPES else None


def _merged(some: Sequence[Column], others: Sequence[Column]) -> tuple[Column, ...]:
    """Return the columns of both. Objects of one name have those of both."""
    merged = {column.name: column for column in some}
    for column in others:
        known = merged.setdefault(column.name, column)
        if known.columns or column.columns:
            merged[column.name] = Column(column.name, "object", _merged(known.columns, column.columns))
    return tuple(merged.values())


def _connect(column: Column) -> dict[str, Any]:
    named = {"field": column.name, "optional": True}
    if column.columns:
        return {**named, "type": "struct", "fields": [_connect(each) for each in column.columns]}
    return {**named, "type": _TYPES[column.kind][0]}


def _properties(some: Sequence[Column]) -> dict[str, Any]:
    return {
        each.name: {"properties": _properties(each.columns)} if each.columns else {"type": _TYPES[each.kind][2]}
        for each in some
    }


def _clickhouse(topic: Topic, prefix: str) -> str:
    name, typed = table(topic), [f"    `{each.name}` {_clickhouse_type(each)}" for each in columns(topic)]
    lines = ",\n".join(line.replace("Nullable(String)", "String") if f"`{ID}`" in line else line for line in typed)
    return f"""\
CREATE TABLE {name} (
{lines}
) ENGINE = ReplacingMergeTree ORDER BY {ID};
CREATE TABLE {name}_queue AS {name} ENGINE = Kafka SETTINGS
    kafka_broker_list = '127.0.0.1:9092', kafka_topic_list = '{prefix}{topic.name}',
    kafka_group_name = 'clickhouse', kafka_format = 'JSONEachRow',
    input_format_skip_unknown_fields = 1, date_time_input_format = 'best_effort';
CREATE MATERIALIZED VIEW {name}_view TO {name} AS SELECT * FROM {name}_queue;
"""  # noqa: S608 - all names are ours, and a prefix has letters, digits, dots, dashes and underscores


def _clickhouse_type(column: Column) -> str:
    if not column.columns:
        return f"Nullable({_TYPES[column.kind][1]})"
    return f"Tuple({', '.join(_clickhouse_fields(column.columns))})"


def _clickhouse_fields(some: Sequence[Column]) -> Iterator[str]:
    return (f"`{each.name}` {_clickhouse_type(each)}" for each in some)
