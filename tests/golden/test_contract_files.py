"""The published schemas are those of the structs, public validators accept them, and releases stay readable."""

import copy
import json
import os
import sys
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft7Validator, Draft202012Validator

from nearstream.schemas.alerts.alert import Alert
from nearstream.schemas.documents.record import ConsumerRecord, PageFacts, page_headers
from nearstream.schemas.published.asyncapi import asyncapi_document
from nearstream.schemas.published.json_schema import MESSAGES, json_schemas
from nearstream.schemas.topics.codec import (
    ORIGIN_HEADER,
    decode_event,
    decode_json,
    decode_signature,
    event_headers,
)
from nearstream.schemas.topics.dead_letter import PRIVATE_HEADER, DeadLetter, Reason, outgoing
from nearstream.schemas.topics.table import ALL
from nearstream.schemas.verdicts.events import RELATIONS
from nearstream.streams.ingest.parse import _FIELD_HEADERS, _LIST_HEADERS, _REMOVAL_HEADERS
from nearstream.workers.config.settings import Settings
from nearstream.workers.kafka.acls import needed
from nearstream.workers.pipeline.sign import signature_record
from tests.devstack.npm import npm_packages
from tests.support.forking import finished

ROOT = Path(__file__).parents[2]
SCHEMAS, EXAMPLES = (ROOT / "schemas" / name for name in ("published/v1", "examples"))
RELEASE = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
ASYNCAPI = asyncapi_document(RELEASE, "", Settings().retention_seconds)

Json = dict[str, Any]


def payload(path: Path) -> Any:  # noqa: ANN401 - a JSON value
    """Return an example as JSON shows it."""
    if path.suffix == ".msgpack":
        return json.loads(msgspec.json.encode(decode_signature(path.read_bytes())))
    return json.loads(path.read_bytes())


def examples_of(folder: Path) -> dict[str, Path]:
    return {path.stem: path for path in sorted(folder.iterdir())}


def test_the_command_writes_the_committed_files(tmp_path: Path) -> None:
    schemas, asyncapi = tmp_path / "made/v1", tmp_path / "asyncapi.json"
    command = [sys.executable, "-m", "nearstream", "topics", "--schemas", str(schemas), "--asyncapi", str(asyncapi)]
    done = finished(command, os.environ)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert {path.name: path.read_text() for path in schemas.iterdir()} == {
        path.name: path.read_text() for path in SCHEMAS.iterdir()
    }
    made, committed = (json.loads(path.read_text()) for path in (asyncapi, ROOT / "schemas/published/asyncapi.json"))
    made["info"]["version"] = RELEASE  # that of the installed package, which may be older than the source
    assert made == committed


def test_the_command_writes_nothing_beside_an_action(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "nearstream", "topics", "create", "--schemas", str(tmp_path / "made")]
    done = finished(command, os.environ)
    assert done.returncode == 2
    assert b"--schemas and --asyncapi go without an action" in done.stderr
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("name", MESSAGES)
def test_a_public_validator_accepts_every_schema_with_its_example_and_no_other(name: str) -> None:
    schema = json_schemas()[name]
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    validator.validate(payload(examples_of(EXAMPLES)[name]))
    accepted = {other for other, path in examples_of(EXAMPLES).items() if validator.is_valid(payload(path))}
    assert accepted == {name} or name == "document"  # which needs no field
    if name in ASYNCAPI["components"]["messages"]:
        embedded = {**ASYNCAPI["components"]["messages"][name]["payload"], "components": ASYNCAPI["components"]}
        assert Draft7Validator(embedded).is_valid(payload(examples_of(EXAMPLES)[name]))


def test_the_schema_of_a_document_has_its_bounds() -> None:
    validator = Draft202012Validator(json_schemas()["document"])
    for wrong in ({"id": ""}, {"collection": "A"}, {"url": "u" * 4097}, {"labels": {"A": "x"}}, {"text": 1}):
        assert not validator.is_valid({"text": "one", **wrong}), wrong
    assert validator.is_valid({"text": "one", "later": 1})


def test_every_field_has_a_description_and_every_schema_an_id() -> None:
    for name, schema in json_schemas().items():
        assert schema["$id"] == f"urn:nearstream:v1:{name}"
        for struct, definition in schema["$defs"].items():
            assert definition["description"], struct
            fields = definition.get("properties") or {each["title"]: each for each in definition["prefixItems"]}
            for field, described in fields.items():
                assert field == "type" or described["description"], (struct, field)


@pytest.mark.foreign
def test_the_asyncapi_document_validates_and_one_with_a_mistake_does_not() -> None:
    path = npm_packages() / "node_modules/@asyncapi/specs/schemas/3.0.0.json"
    official = Draft7Validator(json.loads(path.read_bytes()))
    official.validate(ASYNCAPI)
    for mistake in ("operations", "channels"):
        broken = copy.deepcopy(ASYNCAPI)
        next(iter(broken[mistake].values()))["unknown"] = 1
        assert not official.is_valid(broken)


def test_every_reference_of_the_asyncapi_document_leads_somewhere() -> None:
    def references(node: object) -> list[str]:
        if isinstance(node, list):
            return [found for each in node for found in references(each)]
        if not isinstance(node, dict):
            return []
        own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
        return own + [found for value in node.values() for found in references(value)]

    for reference in references(ASYNCAPI):
        target: Any = ASYNCAPI
        for part in reference.removeprefix("#/").split("/"):
            target = target[part]


def test_the_asyncapi_document_has_every_topic_with_its_messages() -> None:
    channels = {channel["address"]: channel for channel in ASYNCAPI["channels"].values()}
    assert list(channels) == [topic.name for topic in ALL]
    used = {name for channel in channels.values() for name in channel["messages"]}
    assert used == set(ASYNCAPI["components"]["messages"])
    assert used >= set(MESSAGES)
    for topic in ALL:
        assert channels[topic.name]["bindings"]["kafka"]["partitions"] == topic.partitions
    (prefixed, *_) = asyncapi_document(RELEASE, "test-")["channels"].values()
    assert prefixed["address"] == "test-nearstream.documents.v1"


@pytest.mark.parametrize("name", [*RELATIONS, "verdict", "retraction"])
def test_the_headers_of_events_are_those_that_are_sent(name: str) -> None:
    event = decode_event(examples_of(EXAMPLES)[name].read_bytes())
    of_page = page_headers(PageFacts(bytes(9), "https://a.example/", "A" * 32)) if name == "verdict" else []
    headers = [*event_headers(event, datetime.now(UTC), b"00-trace"), *of_page]
    assert header_names(name) == {header for header, _ in headers}


def test_the_headers_of_other_records_are_those_that_are_read_and_sent() -> None:
    alert = decode_json(Alert, examples_of(EXAMPLES)["alert"].read_bytes())
    assert header_names("alert") == {header for header, _ in event_headers(alert, datetime.now(UTC))}
    letter = DeadLetter(ConsumerRecord("documents", 0, 0, 0, None, b"{", []), "decode", Reason.NOT_JSON, "")
    dead = [header for header, _ in outgoing(letter, "dead-letters", "worker", "full", 1024).headers]
    assert header_names("dead_letter") == {header for header in dead if not header.startswith("__connect")}
    signature = decode_signature(examples_of(EXAMPLES)["signature"].read_bytes())
    signed = signature_record(
        "signatures",
        signature,
        [("traceparent", b"00-trace"), *page_headers(PageFacts(bytes(9), "https://a.example/", "A" * 32))],
    )
    assert header_names("signature") == {header for header, _ in signed.headers}
    of_all = {PRIVATE_HEADER, "traceparent"}
    of_values = {"content-type", "content-encoding", *of_all}
    assert header_names("document") == of_values
    for raw in ("plain_text", "html_page"):
        assert header_names(raw) == {*of_values, *_FIELD_HEADERS, *_LIST_HEADERS, "nearstream-degraded"}
    assert header_names("removal") == {*of_all, *_REMOVAL_HEADERS, ORIGIN_HEADER}


def header_names(message: str) -> set[str]:
    """Return the names of the headers that the AsyncAPI document gives a message."""
    headers: Json = ASYNCAPI["components"]["messages"][message]["headers"]
    return set(headers["properties"])


@pytest.mark.parametrize("role", ["sign", "match", "decide", "alert"])
def test_the_operations_are_those_that_a_worker_needs_permissions_for(role: str) -> None:
    addresses = {f"#/channels/{name}": channel["address"] for name, channel in ASYNCAPI["channels"].items()}
    told = {
        (operation["action"], addresses[operation["channel"]["$ref"]])
        for name, operation in ASYNCAPI["operations"].items()
        if name.startswith(f"{role}-")
    }
    actions = {"READ": "receive", "WRITE": "send"}
    topics = [permission for permission in needed(Settings(), role) if permission.kind == "topic"]
    assert told == {(actions[permission.operation], permission.name) for permission in topics}
