"""The official CloudEvents SDK reads our events in Kafka binary mode."""

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import msgspec
import pytest
from cloudevents.core.bindings.kafka import KafkaMessage, from_kafka
from cloudevents.core.formats.json import JSONFormat

from nearstream.schemas.alerts.alert import Alert
from nearstream.schemas.documents.document import document_key
from nearstream.schemas.topics.codec import decode_event, decode_json, encode_json, event_headers
from nearstream.schemas.verdicts.events import RELATIONS, Event, Retraction
from nearstream.schemas.verdicts.verdict import DocumentVerdict

EXAMPLES = Path(__file__).parents[2] / "schemas" / "examples"
KINDS = ("verdict", *RELATIONS, "retraction", "alert")
SENT_AT = datetime(2026, 3, 2, 8, 16, 41, 250_000, UTC)
IDS = ["c-7730", "Wasserstände 日本語/№ 7", "<77@d.example>", "a:{b} \"c\" 'd' 100%"]


def renamed(kind: str, document_id: str) -> Event | Alert:
    """Return the example of this kind, about a document with this id. An alert has it as its subject."""
    if kind == "alert":
        return msgspec.structs.replace(decode_json(Alert, (EXAMPLES / "alert.json").read_bytes()), subject=document_id)
    event = decode_event((EXAMPLES / f"{kind}.json").read_bytes())
    if isinstance(event, Retraction):
        return msgspec.structs.replace(event, document_id=document_id)
    if isinstance(event, DocumentVerdict):
        return msgspec.structs.replace(event, id=document_id)
    return msgspec.structs.replace(event, newer=msgspec.structs.replace(event.newer, id=document_id))


@pytest.mark.parametrize("document_id", IDS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_cloudevents_sdk_parses_every_event(kind: str, document_id: str) -> None:
    event = renamed(kind, document_id)
    key = document_key(event.collection, document_id)
    headers = {name: value for name, value in event_headers(event, SENT_AT) if value is not None}
    read = from_kafka(KafkaMessage(headers, key.encode(), encode_json(event)), JSONFormat())
    assert read.get_specversion() == "1.0"
    assert read.get_id() == event.event_id
    assert read.get_source() == f"/nearstream/{event.collection}"
    assert read.get_type() == f"nearstream.{kind}.v1"
    assert read.get_subject() == document_id
    assert read.get_time() == SENT_AT
    assert read.get_datacontenttype() == "application/json"
    assert read.get_extension("scheme") == event.scheme
    assert read.get_extension("partitionkey") == key
    assert read.get_data() == json.loads(encode_json(event))


@pytest.mark.parametrize("kind", KINDS)
def test_each_header_is_there_once_with_a_value(kind: str) -> None:
    headers = event_headers(renamed(kind, "x"), SENT_AT, b"00-aa-bb-01")
    assert len(dict(headers)) == len(headers)
    assert all(isinstance(value, bytes) for _, value in headers)
    assert dict(headers)["traceparent"] == b"00-aa-bb-01"
    assert "traceparent" not in dict(event_headers(renamed(kind, "x"), SENT_AT))


def test_two_statements_of_one_event_differ_in_their_time_alone_which_is_told_in_utc() -> None:
    event = renamed("version", "x")
    first, second = (event_headers(event, SENT_AT + timedelta(hours=hours)) for hours in (0, 5))
    assert [pair for pair in first if pair not in second] == [("ce_time", b"2026-03-02T08:16:41.250000Z")]
    elsewhere = SENT_AT.astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert event_headers(event, elsewhere) == first
