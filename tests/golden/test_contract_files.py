"""The published schemas are those of the structs, public validators accept them, and releases stay readable."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

from nearstream.schemas.alerts.alert import Alert
from nearstream.schemas.documents.record import ConsumerRecord, PageFacts, page_headers
from nearstream.schemas.published.json_schema import MESSAGES, json_schemas
from nearstream.schemas.topics.codec import (
    ORIGIN_HEADER,
    decode_event,
    decode_json,
    decode_signature,
    event_headers,
)
from nearstream.schemas.topics.dead_letter import PRIVATE_HEADER, DeadLetter, Reason, outgoing
from nearstream.streams.ingest.parse import _FIELD_HEADERS, _LIST_HEADERS, _REMOVAL_HEADERS
from nearstream.workers.pipeline.sign import signature_record

ROOT = Path(__file__).parents[2]
SCHEMAS, EXAMPLES = (ROOT / "schemas" / name for name in ("published/v1", "examples"))

Json = dict[str, Any]


def payload(path: Path) -> Any:  # noqa: ANN401 - a JSON value
    """Return an example as JSON shows it."""
    if path.suffix == ".msgpack":
        return json.loads(msgspec.json.encode(decode_signature(path.read_bytes())))
    return json.loads(path.read_bytes())


def examples_of(folder: Path) -> dict[str, Path]:
    return {path.stem: path for path in sorted(folder.iterdir())}


def test_the_published_schemas_are_those_of_the_structs() -> None:
    assert {path.stem: json.loads(path.read_text()) for path in SCHEMAS.iterdir()} == json_schemas()


@pytest.mark.parametrize("name", MESSAGES)
def test_a_public_validator_accepts_every_schema_with_its_example_and_no_other(name: str) -> None:
    schema = json_schemas()[name]
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    validator.validate(payload(examples_of(EXAMPLES)[name]))
    accepted = {other for other, path in examples_of(EXAMPLES).items() if validator.is_valid(payload(path))}
    assert accepted == {name} or name == "document"  # which needs no field


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


def test_the_page_of_events_names_every_header_that_is_read_or_sent() -> None:
    page = (ROOT / "docs/events.md").read_text()
    of_page = page_headers(PageFacts(bytes(9), "https://a.example/", "A" * 32))
    event = decode_event((EXAMPLES / "verdict.json").read_bytes())
    alert = decode_json(Alert, (EXAMPLES / "alert.json").read_bytes())
    signature = decode_signature((EXAMPLES / "signature.msgpack").read_bytes())
    letter = DeadLetter(ConsumerRecord("documents", 0, 0, 0, None, b"{", []), "decode", Reason.NOT_JSON, "")
    sent = [
        *event_headers(event, datetime.now(UTC), b"00-trace"),
        *event_headers(alert, datetime.now(UTC)),
        *signature_record("signatures", signature, [("traceparent", b"00-trace"), *of_page]).headers,
        *outgoing(letter, "dead-letters", "worker", "full", 1024).headers,
    ]
    names = {name for name, _ in sent}
    for name in names | {PRIVATE_HEADER, ORIGIN_HEADER, *_FIELD_HEADERS, *_LIST_HEADERS, *_REMOVAL_HEADERS}:
        assert f"`{name}`" in page, name
