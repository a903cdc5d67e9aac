"""Decoding survives any bytes, and encoding loses nothing."""

import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import inspect

from nearstream.schemas.documents.document import Document, to_milliseconds
from nearstream.schemas.documents.evidence import (
    DocumentState,
    event_id,
)
from nearstream.schemas.documents.record import ConsumerRecord, Headers
from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.topics.codec import (
    InvalidMessageError,
    decode_document,
    decode_event,
    decode_signature,
    encode_json,
    encode_signature,
)
from nearstream.schemas.topics.dead_letter import DeadLetter, outgoing
from nearstream.schemas.topics.table import DEAD_LETTERS
from nearstream.schemas.verdicts.events import Event
from nearstream.streams.ingest.defaults import DocumentLimits, fill_defaults
from nearstream.streams.ingest.lineage import canonical_url
from nearstream.streams.ingest.parse import ParsedDocument, parse_record

EXAMPLES = Path(__file__).parents[2] / "schemas" / "examples"
TIMESTAMP_MS = 1_772_439_300_000
RANGES = DocumentLimits(text_bytes=4096, value_bytes=64 * 1024)

PLAIN = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
PRINTED = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=40)
NAMES = st.from_regex(r"[a-z0-9][a-z0-9-]{0,20}", fullmatch=True)
LABELS = st.dictionaries(NAMES, PLAIN, max_size=8)
ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
TIMES = st.datetimes(datetime(1970, 1, 2), datetime(9000, 1, 1), timezones=ZONES)  # noqa: DTZ001 - zones are drawn

DOCUMENTS = st.builds(
    Document,
    id=st.none() | PRINTED,
    text=PLAIN,
    url=st.none() | PLAIN,
    lineage=st.none() | PRINTED,
    collection=NAMES,
    observed_at=st.none() | TIMES,
    source=st.none() | NAMES,
    labels=LABELS,
)


def values(kind: inspect.Type) -> st.SearchStrategy[Any]:
    """Return a strategy for the values that a type of a message allows."""
    return STRATEGIES[type(kind)](kind)


def structs(kind: inspect.StructType) -> st.SearchStrategy[Any]:
    """Return a strategy for messages with all fields that they need, and some of the others."""
    needed, optional = ({each.name: values(each.type) for each in kind.fields if each.required == is_needed}
                        for is_needed in (True, False))  # fmt: skip
    return st.fixed_dictionaries(needed, optional=optional).map(lambda drawn: kind.cls(**drawn))


STRATEGIES: dict[type, Callable[[Any], st.SearchStrategy[Any]]] = {
    inspect.StrType: lambda kind: st.from_regex(kind.pattern.replace(r"(?!\n)$", r"\Z")) if kind.pattern else PLAIN,
    inspect.BytesType: lambda kind: st.binary(min_size=kind.min_length or 0, max_size=min(kind.max_length, 100)),
    inspect.IntType: lambda kind: st.integers(kind.ge, kind.le),
    inspect.FloatType: lambda kind: st.floats(kind.ge, kind.le, allow_nan=False, allow_infinity=False),
    inspect.BoolType: lambda _: st.booleans(),
    inspect.NoneType: lambda _: st.none(),
    inspect.DateTimeType: lambda _: TIMES,
    inspect.LiteralType: lambda kind: st.sampled_from(kind.values),
    inspect.UnionType: lambda kind: st.one_of(map(values, kind.types)),
    inspect.TupleType: lambda kind: st.tuples(*map(values, kind.item_types)),
    inspect.VarTupleType: lambda kind: st.lists(values(kind.item_type), max_size=3).map(tuple),
    inspect.DictType: lambda kind: st.dictionaries(values(kind.key_type), values(kind.value_type), max_size=3),
    inspect.StructType: structs,
}
EVENTS: st.SearchStrategy[Event] = values(inspect.type_info(Event))
SIGNATURES: st.SearchStrategy[Signature] = values(inspect.type_info(Signature))


def spoiled(whole: bytes) -> st.SearchStrategy[bytes]:
    """Return a strategy for damaged payloads, with a piece replaced, cut out or doubled."""
    places = st.integers(0, len(whole))
    return st.builds(lambda start, end, put: whole[:start] + put + whole[end:], places, places, st.binary(max_size=12))


def any_json() -> st.SearchStrategy[bytes]:
    """Return a strategy for values of every JSON type under our field names and others."""
    fields = st.sampled_from([*Document.__struct_fields__, "type", "newer", "evidence", "later"])
    scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | PLAIN
    values = st.recursive(scalars, lambda some: st.lists(some, max_size=4) | st.dictionaries(fields, some, max_size=6))
    return values.map(lambda value: json.dumps(value).encode())


PAYLOADS = st.one_of(
    st.binary(max_size=300),
    any_json(),
    *[spoiled(path.read_bytes()) for path in sorted(EXAMPLES.iterdir())],
)
OUR_HEADERS = [
    "content-type",
    "content-encoding",
    "nearstream-id",
    "nearstream-url",
    "nearstream-lineage",
    "nearstream-collection",
    "nearstream-observed-at",
    "nearstream-source",
    "nearstream-degraded",
    "nearstream-label-lang",
    "nearstream-label-",
    "nearstream-label-\n",
    "nearstream-private",
    "nearstream-dead-replays",
    "traceparent",
]
CHARSETS = [
    "utf-8",
    "latin-1",
    "utf-16",
    "utf-7",
    "idna",
    "punycode",
    "undefined",
    "base64",
    "rot13",
    "hz",
    "..",
    "x" * 40,
]
HEADER_VALUES = st.one_of(
    st.none(),
    st.binary(max_size=40),
    st.sampled_from([b"text/plain", b"application/json", b"application/ld+json", b"text/html", b"gzip", b"identity"]),
    st.sampled_from([f"text/plain; charset={name}".encode() for name in CHARSETS]),
    st.from_regex(rb'text/plain; charset="?[a-z0-9._:-]{1,20}', fullmatch=True),
)
HEADERS = st.lists(st.tuples(st.sampled_from(OUR_HEADERS) | PLAIN, HEADER_VALUES), max_size=6)
KEYS = st.none() | st.binary(max_size=40) | st.binary(min_size=500, max_size=600)


@pytest.mark.parametrize("decode", [decode_document, decode_event, decode_signature])
@given(data=PAYLOADS)
@example(data=b"[" * 100_000)
@example(data=b'{"later":' + b"[" * 100_000)
@example(data=b"\x91" * 100_000)
@example(data=b"\xdc\xff\xff")
@settings(max_examples=200)
def test_no_bytes_raise_anything_but_invalid_message(decode: Callable[[bytes], object], data: bytes) -> None:
    try:
        decode(data)
    except InvalidMessageError as error:
        assert error.detail  # noqa: PT017 - either outcome is right


@given(value=st.none() | PAYLOADS | PAYLOADS.map(gzip.compress), key=KEYS, headers=HEADERS)
@settings(max_examples=500)
def test_no_bytes_of_a_record_raise_anything_but_invalid_message(
    value: bytes | None, key: bytes | None, headers: Headers
) -> None:
    record = ConsumerRecord("nearstream.documents.v1", 3, 8812, TIMESTAMP_MS, key, value, headers)
    try:
        parse_record(record, RANGES)
    except InvalidMessageError as error:
        letter = DeadLetter(record, "decode", error.reason, error.detail)
        sent = outgoing(letter, "dead", "nearstream/0 sign", "full", DEAD_LETTERS.max_message_bytes)
        assert sent.value is not None


@given(timestamp_ms=st.integers(-(2**63), 2**63 - 1))
def test_no_timestamp_raises_anything_but_invalid_message(timestamp_ms: int) -> None:
    for value in (b'{"text":"a"}', b'{"text":"a","observed_at":"2026-03-02T08:15:00Z"}'):
        try:
            parse_record(ConsumerRecord("nearstream.documents.v1", 0, 0, timestamp_ms, None, value, []), RANGES)
        except InvalidMessageError as error:
            assert error.reason == "invalid_time"  # noqa: PT017 - either outcome is right


@given(document=DOCUMENTS)
def test_a_document_survives_encode_and_decode(document: Document) -> None:
    assert decode_document(encode_json(document)) == document


@given(event=EVENTS)
def test_an_event_survives_encode_and_decode(event: Event) -> None:
    said = encode_json(event)
    assert decode_event(said) == event
    assert encode_json(decode_event(said)) == said


@given(signature=SIGNATURES)
def test_a_signature_survives_encode_and_decode(signature: Signature) -> None:
    assert decode_signature(encode_signature(signature)) == signature


@given(document=DOCUMENTS, key=KEYS)
def test_completion_is_a_function_of_its_record(document: Document, key: bytes | None) -> None:
    value = encode_json(msgspec.structs.replace(document, observed_at=None))
    record = ConsumerRecord("nearstream.documents.v1", 3, 8812, TIMESTAMP_MS, key, value, [])
    once, elsewhere = parse_record(record, RANGES), parse_record(record._replace(partition=0, offset=9), RANGES)
    assert once == elsewhere


@given(document=DOCUMENTS, key=KEYS)
def test_a_completed_document_is_whole_and_completing_it_again_changes_nothing(
    document: Document, key: bytes | None
) -> None:
    document = msgspec.structs.replace(document, observed_at=None)
    whole = fill_defaults(document, RANGES, TIMESTAMP_MS, key)
    assert whole.id
    assert whole.observed_at is not None
    assert to_milliseconds(whole.observed_at) == TIMESTAMP_MS
    assert len(whole.lineage or "") <= 512
    assert fill_defaults(whole, RANGES, TIMESTAMP_MS, key) == whole
    assert decode_document(encode_json(whole)).id == whole.id


@given(document=DOCUMENTS, other=DOCUMENTS)
def test_the_lineage_is_the_id_of_a_document_without_one(document: Document, other: Document) -> None:
    named = msgspec.structs.replace(other, id=None, lineage="thread-1", observed_at=None)
    for text, key in ((document.text, None), (other.text, b"key")):
        assert fill_defaults(msgspec.structs.replace(named, text=text), RANGES, TIMESTAMP_MS, key).id == "thread-1"


@given(document=DOCUMENTS, other=DOCUMENTS)
def test_a_derived_id_depends_only_on_collection_time_and_text(document: Document, other: Document) -> None:
    changes = {"id": None, "url": None, "lineage": None, "observed_at": datetime(2026, 3, 2, 8, 15, tzinfo=UTC)}
    document = msgspec.structs.replace(document, **changes)
    rest = {"source": other.source, "labels": other.labels}
    derived = fill_defaults(document, RANGES, TIMESTAMP_MS).id
    assert fill_defaults(msgspec.structs.replace(document, **rest), RANGES, TIMESTAMP_MS + 5).id == derived
    for changed in (
        {"collection": f"{document.collection}x"},
        {"text": f"{document.text}."},
        {"observed_at": datetime(2026, 3, 2, 8, 15, 0, 1000, UTC)},
    ):
        assert fill_defaults(msgspec.structs.replace(document, **changed), RANGES, TIMESTAMP_MS).id != derived


STATES = st.builds(DocumentState, PLAIN, PLAIN, PLAIN)
NAMED = st.tuples(PLAIN, STATES, STATES, PLAIN)


@given(fields=NAMED, others=NAMED)
def test_an_event_id_depends_only_on_its_eight_fields(fields: tuple[object, ...], others: tuple[object, ...]) -> None:
    assert event_id(*fields) == event_id(*fields)
    assert (event_id(*fields) == event_id(*others)) == (fields == others)


URL_PARTS = ["a", "/", ";jsessionid=1", ";PHPSESSID=", "?", "&", "utm_a=1", "utm_%61", "gclid", "=", "..", ".", "#"]
MORE_URL_PARTS = [":80", "%2e", "+", ";", "http://", "A.example", "%"]
HOSTILE_URLS = st.lists(st.sampled_from(URL_PARTS + MORE_URL_PARTS), max_size=12)


@given(
    url=PLAIN
    | PLAIN.map(lambda rest: f"https://a.example/{rest}")
    | HOSTILE_URLS.map(lambda parts: "http://a" + "".join(parts))
)
def test_every_url_has_a_canonical_form_that_is_its_own(url: str) -> None:
    assert canonical_url(canonical_url(url)) == canonical_url(url)


NAMED_BY_HEADERS = {
    "id": st.none() | PRINTED,
    "url": st.none() | PLAIN,
    "lineage": st.none() | PRINTED,
    "source": st.none() | NAMES,
    "sender_hash": st.sampled_from([None, "8c3f0d5be27a9146"]),
}


@given(text=PRINTED, labels=LABELS, named=st.fixed_dictionaries(NAMED_BY_HEADERS))
def test_raw_bytes_and_json_give_the_same_document(text: str, labels: dict[str, str], named: dict[str, Any]) -> None:
    hashes = ("1b7e90a2c4d65f83", "57a9e3b1c0d2f486")
    seen = datetime(2026, 3, 2, 8, 10, tzinfo=UTC)
    document = Document(text=text, labels=labels, collection="news", observed_at=seen, recipient_hashes=hashes, **named)
    headers: Headers = [("content-type", b"text/plain; charset=utf-8"), ("nearstream-collection", b"news")]
    headers += [("nearstream-observed-at", b"2026-03-02T08:10:00Z")]
    for name, value in {**named, "recipient_hashes": "  ".join(hashes)}.items():
        headers += [] if value is None else [(f"nearstream-{name.replace('_', '-')}", value.encode())]
    headers += [(f"nearstream-label-{name}", value.encode()) for name, value in labels.items()]
    as_json = ConsumerRecord("nearstream.documents.v1", 3, 8812, TIMESTAMP_MS, b"key", encode_json(document), [])
    received = parse_record(as_json, RANGES)
    assert isinstance(received, ParsedDocument)
    assert received.document.recipient_hashes == hashes
    assert parse_record(as_json._replace(value=text.encode(), headers=headers), RANGES) == received
