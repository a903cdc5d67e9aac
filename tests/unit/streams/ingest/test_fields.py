"""JSON of other programs is read by a map of fields."""

from datetime import UTC, datetime

import msgspec
import pytest

from nearstream.schemas.documents.document import Document
from nearstream.schemas.documents.record import ConsumerRecord, Headers
from nearstream.schemas.topics.codec import InvalidMessageError
from nearstream.schemas.topics.dead_letter import Reason
from nearstream.streams.ingest.defaults import DocumentLimits
from nearstream.streams.ingest.fields import parse_field_map
from nearstream.streams.ingest.parse import ParsedDocument, Removal, parse_record

URL = "https://a.example/flood?id=7"
TEXT = "The river rose over the old bridge."
AT = datetime(2026, 3, 2, 8, 15, tzinfo=UTC)
AT_MS = 1_772_439_300_000
# As the indexer of Nutch writes to Kafka: all values are lists of texts, and the time is that of Java.
NUTCH = {
    "id": [URL],
    "url": [URL],
    "host": ["a.example"],
    "title": ["Flood"],
    "content": [TEXT],
    "tstamp": ["Mon Mar 02 08:15:00 UTC 2026"],
    "digest": ["09f7e02f1290be211da707a266f153b3"],
    "boost": ["1.0"],
    "segment": ["20260302081400"],
}
# As Nutch and StormCrawler index to Solr and to OpenSearch.
NUTCH_IN_SOLR = {"id": URL, "url": URL, "content": TEXT, "tstamp": "2026-03-02T08:15:00Z", "boost": 1.0, "_version_": 1}
STORMCRAWLER = {"url": URL, "content": TEXT, "title": "Flood", "domain": "a.example", "format": "html"}


def parsed(fields: str, value: object, headers: Headers | None = None) -> Document:
    limits = DocumentLimits(fields=parse_field_map(fields))
    data = value if isinstance(value, bytes) else msgspec.json.encode(value)
    result = parse_record(ConsumerRecord("documents", 0, 0, AT_MS, None, data, headers or []), limits)
    assert isinstance(result, ParsedDocument)
    return result.document


def refusal(fields: str, value: object) -> InvalidMessageError:
    with pytest.raises(InvalidMessageError) as caught:
        parsed(fields, value)
    return caught.value


@pytest.mark.parametrize(
    ("fields", "value"),
    [
        ("id=id text=content url=url labels.host=host", NUTCH),
        ("id=id text=content url=url observed_at=tstamp", NUTCH_IN_SOLR),
        ("text=content url=url", STORMCRAWLER),
    ],
    ids=["Nutch", "Nutch in Solr", "StormCrawler"],
)
def test_documents_of_crawlers_are_read(fields: str, value: dict[str, object]) -> None:
    document = parsed(fields, value)
    assert (document.id, document.url, document.lineage, document.text) == (URL, URL, URL, TEXT)
    assert document.observed_at == AT
    assert document.labels == ({"host": "a.example"} if "labels" in fields else {})


@pytest.mark.parametrize(
    ("fields", "value"),
    [
        ("text=body_text observed_at=meta.fetched:epoch_ms", {"meta": {"fetched": str(AT_MS)}}),
        ("text=body_text observed_at=fetched:epoch_s", {"fetched": AT_MS / 1000}),
        ("text=body_text observed_at=a.b.c", {"a": {"b.c": AT.isoformat()}}),
        ("text=body_text observed_at=dc:date", {"dc:date": AT.isoformat()}),
    ],
)
def test_a_field_is_found_by_its_path_and_its_unit(fields: str, value: dict[str, object]) -> None:
    document = parsed(fields, {"body_text": TEXT, "text": "not ours", "price": 3, **value})
    assert (document.text, document.observed_at) == (TEXT, AT)


def test_what_the_map_does_not_name_is_dropped_and_what_is_missing_has_its_default() -> None:
    document = parsed("text=content url=url id=id", {"content": TEXT, "url": None, "labels": {"a": "b"}, "source": 7})
    assert (document.text, document.url, document.labels, document.source) == (TEXT, None, {}, None)
    assert len(document.id or "") == 32


def test_the_map_is_only_for_json() -> None:
    headers: Headers = [("content-type", b"text/plain"), ("nearstream-id", b"mine")]
    document = parsed("text=content", TEXT.encode(), headers)
    assert (document.id, document.text) == ("mine", TEXT)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"{", Reason.NOT_JSON),
        (b'{"content": "\\ud800"}', Reason.NOT_JSON),
        ([TEXT], Reason.INVALID_MESSAGE),
        ({}, Reason.NO_CONTENT),
        ({"content": 5}, Reason.INVALID_MESSAGE),
        ({"content": TEXT, "at": "soon"}, Reason.INVALID_TIME),
        ({"content": TEXT, "at": True}, Reason.INVALID_TIME),
        ({"content": TEXT, "at": "1e999999999"}, Reason.INVALID_TIME),
        ({"content": TEXT, "at": {"a": 1}}, Reason.INVALID_TIME),
    ],
)
def test_what_does_not_fit_is_refused_as_a_field_of_ours(value: object, reason: Reason) -> None:
    assert refusal("text=content observed_at=at:epoch_ms", value).reason is reason


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("text", "ours=theirs"),
        ("text=a=b", "ours=theirs"),
        ("title=title text=a", "got title"),
        ("labels=a text=b", "got labels"),
        ("text=a text=b", "each field once"),
        ("text=a id=b:epoch_s", "only with observed_at"),
        ("url=a", "one of text, html and raw"),
    ],
)
def test_a_wrong_map_is_refused_with_what_was_expected(text: str, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        parse_field_map(text)


def test_no_text_is_no_map() -> None:
    assert parse_field_map(" ") == ()


@pytest.mark.parametrize("way", ["", "payload."])
@pytest.mark.parametrize("key", [1004, -7, "row-7", "1004"])
def test_a_row_of_a_database_comes_and_goes_by_its_key(way: str, key: int | str) -> None:
    fields = f"id={way}after.id text={way}after.body collection={way}after.tenant"
    row = {"id": key, "body": TEXT, "tenant": "north"}

    def event(**change: object) -> object:
        return {"payload": {**change}} if way else {**change}

    assert parsed(fields, event(before=None, after=row, op="c")).id == str(key)
    limits = DocumentLimits(fields=parse_field_map(fields))
    deletion = msgspec.json.encode(event(before={"id": key, "tenant": "north"}, after=None, op="d"))
    record = ConsumerRecord("documents", 0, 0, AT_MS, b'{"id": 1004}', deletion, [])
    assert parse_record(record, limits) == Removal("north", str(key), AT_MS)
    as_text = parse_record(record._replace(headers=[("content-type", b"text/plain")]), limits)
    assert isinstance(as_text, ParsedDocument)


def test_a_deletion_without_its_key_is_refused() -> None:
    error = refusal("id=after.id text=after.body", {"before": None, "after": None, "op": "d"})
    assert (error.reason, error.detail) == (Reason.INVALID_ID, "expected the id of the deleted row in `before`")


@pytest.mark.parametrize("fields", ["id=after.id text=body", "id=key text=hereafter.body", "id=key text=a.b"])
def test_a_null_beside_the_row_deletes_nothing(fields: str) -> None:
    value = {"after": None, "hereafter": None, "a": None, "key": "k"}
    assert refusal(fields, value).reason == Reason.NO_CONTENT
