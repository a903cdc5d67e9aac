"""Parsing of records of `documents`, with the ids of the list of bad input."""

import base64
import gzip
import json
import re
import tracemalloc
import zlib
from datetime import UTC, datetime, timedelta
from hashlib import blake2b

import pytest

from nearstream.schemas.documents.document import Document
from nearstream.schemas.documents.record import ConsumerRecord, Headers
from nearstream.schemas.topics.codec import InvalidMessageError
from nearstream.schemas.topics.dead_letter import Reason
from nearstream.streams.ingest.defaults import DocumentLimits, fill_defaults
from nearstream.streams.ingest.parse import INFLATED_MAX_BYTES, ParsedDocument, Removal, came_from, parse_record

TIMESTAMP_MS = 1_772_439_300_000
TIME = datetime(2026, 3, 2, 8, 15, tzinfo=UTC)
PLAIN: Headers = [("content-type", b"text/plain; charset=utf-8")]
PLANTED = "planted phrase 4711"


def record(value: bytes | None, headers: Headers | None = None, key: bytes | None = None) -> ConsumerRecord:
    return ConsumerRecord("nearstream.documents.v1", 3, 8812, TIMESTAMP_MS, key, value, headers or [])


def as_json(**fields: object) -> bytes:
    return json.dumps({"text": "some text", **fields}).encode()


def document(value: bytes, headers: Headers | None = None, key: bytes | None = None) -> Document:
    return received(value, headers, key).document


def received(value: bytes, headers: Headers | None = None, key: bytes | None = None) -> ParsedDocument:
    result = parse_record(record(value, headers, key), DocumentLimits())
    assert isinstance(result, ParsedDocument)
    return result


def removal(headers: Headers | None = None, key: bytes | None = None) -> Removal:
    result = parse_record(record(None, headers, key), DocumentLimits())
    assert isinstance(result, Removal)
    return result


def refusal(
    value: bytes | None, headers: Headers | None = None, key: bytes | None = None, bounds: DocumentLimits | None = None
) -> Reason:
    with pytest.raises(InvalidMessageError) as caught:
        parse_record(record(value, headers, key), bounds or DocumentLimits())
    assert caught.value.detail
    return caught.value.reason


@pytest.mark.parametrize(
    "value",
    [
        b"\x8f\x02\xd1\x00 nothing",
        as_json()[:1],
        as_json()[:-1],
        as_json() + b" and more",
        b" \n\t ",
        b'{"text":"a","later":' + b"[" * 100_000,
        b'{"text":' + b"[" * 100_000,
        b'{"text":NaN}',
        b'{"text":"a","later":Infinity}',
        rb'{"text":"\ud800 and"}',
        rb'{"text":"\udc00\ud800"}',
        b'{"text":"\xff\xfe"}',
        as_json().decode().encode("utf-16"),
        as_json().decode().encode("utf-16-le"),
    ],
    ids=lambda value: repr(value[:30]),
)
def test_b01_b02_b03_b07_b14_b16_b17_b19_b21_what_is_no_json_is_a_dead_letter(value: bytes) -> None:
    assert refusal(value) is Reason.NOT_JSON


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", Reason.EMPTY_VALUE),
        (b"[]", Reason.INVALID_MESSAGE),
        (b'"text"', Reason.INVALID_MESSAGE),
        (b"null", Reason.INVALID_MESSAGE),
        (b"{}", Reason.NO_CONTENT),
        (b'{"text":null,"raw":null,"html":null}', Reason.NO_CONTENT),
        (b'{"text":5}', Reason.INVALID_MESSAGE),
        (b'{"text":' + b"[" * 10_000, Reason.INVALID_MESSAGE),
        (as_json(html="<p>"), Reason.SEVERAL_CONTENTS),
        (as_json(raw="YQ==", content_type="text/plain"), Reason.SEVERAL_CONTENTS),
        (b'{"body":"a","id":"b"}', Reason.NO_CONTENT),
        (b'{"text":{"body":"a"}}', Reason.INVALID_MESSAGE),
    ],
    ids=lambda each: repr(each[:30]),
)
def test_b06_b08_b10_b11_b12_b13_b23_json_without_one_content_is_a_dead_letter(value: bytes, reason: Reason) -> None:
    assert refusal(value, key=b"p-0312") is reason


HEADERS = {"id": "nearstream-id", "collection": "nearstream-collection", "observed_at": "nearstream-observed-at"}
REFUSED = {
    "id": (Reason.INVALID_ID, ["", "a" * 513, "a\n", "\x00", "a\x7f", "a\x85b", 5]),
    "collection": (Reason.INVALID_MESSAGE, ["", "News", "-a", "a" * 64, "a\n"]),
    "observed_at": (
        Reason.INVALID_TIME,
        [
            *("2026-03-02T08:15:00", "yesterday", "", 1_772_439_300),
            *("1969-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"),
        ],
    ),
    "labels": (Reason.INVALID_MESSAGE, [{"Lang": "x"}, {"a\n": "x"}, {"lang": "x" * 129}, {"lang": None}, ["lang"]]),
    "url": (Reason.INVALID_MESSAGE, ["https://a.example/" + "x" * 4079]),
}


@pytest.mark.parametrize("field", REFUSED)
def test_b24_b25_b27_b29_b30_b32_b33_a_field_out_of_its_bounds_is_a_dead_letter(field: str) -> None:
    reason, values = REFUSED[field]
    for value in values:
        assert refusal(as_json(**{field: value})) is reason, value
        if field in HEADERS and isinstance(value, str):
            named: Headers = [(HEADERS[field], value.encode())]
            assert refusal(b"text", [*PLAIN, *named]) is reason, value
            if field != "observed_at":
                assert refusal(None, named, key=b"p-0312") is reason, value


def test_b32_bad_labels_in_headers_are_a_dead_letter() -> None:
    for name, value in (("Lang", b"x"), ("", b"x"), ("lang", b"x" * 129)):
        assert refusal(b"text", [*PLAIN, (f"nearstream-label-{name}", value)]) is Reason.INVALID_MESSAGE
    nine: Headers = [(f"nearstream-label-l{number}", b"x") for number in range(9)]
    assert refusal(b"text", [*PLAIN, *nine]) is Reason.INVALID_MESSAGE


def test_b24_b28_b30_b31_what_just_fits_is_accepted() -> None:
    late = TIME + timedelta(days=1)
    assert document(as_json(id="é" * 512)).id == "é" * 512
    assert document(as_json(lineage="x" * 512)).lineage == "x" * 512
    assert document(as_json(observed_at=late.isoformat())).observed_at == late
    assert refusal(as_json(observed_at=(late + timedelta(milliseconds=1)).isoformat())) is Reason.INVALID_TIME
    near, hour = DocumentLimits(clock_skew_seconds=3_600), TIME + timedelta(hours=1, milliseconds=1)
    assert refusal(as_json(observed_at=hour.isoformat()), bounds=near) is Reason.INVALID_TIME
    far = datetime(2100, 1, 1, tzinfo=UTC)  # held against the record alone that brings it
    assert fill_defaults(Document(text="a", observed_at=far), DocumentLimits()).observed_at == far
    long, longer = (document(as_json(lineage="x" * length)).lineage or "" for length in (513, 514))
    assert (long, long != longer) == ("h:" + blake2b(b"x" * 513, digest_size=16).hexdigest(), True)


def test_b04_a_null_value_removes_the_document_that_a_header_or_else_its_key_names() -> None:
    assert removal(key=b"p-0312") == Removal("default", "p-0312", TIMESTAMP_MS)
    headers: Headers = [("nearstream-id", b"p-0312"), ("nearstream-collection", b"news")]
    assert removal(headers, key=b"https://a.example/flood").document_key == "news/p-0312"


def test_b09_the_id_of_a_document_without_one_is_the_hash_of_its_parts_each_behind_its_length() -> None:
    state = blake2b(digest_size=16)
    for part in (b"news", str(TIMESTAMP_MS).encode(), "Brücke".encode()):
        state.update(len(part).to_bytes(4, "big") + part)
    assert document(as_json(text="Brücke", collection="news")).id == state.hexdigest()
    assert document(as_json(url="")).lineage is None


def test_b15_b18_b20_b22_what_is_odd_but_clear_is_accepted() -> None:
    assert document(b'{"text":"first","text":"last"}').text == "last"
    assert document(rb'{"text":"a\u0000b\u0007\u001b[31m"}').text == "a\0b\a\x1b[31m"
    assert document(b"\xef\xbb\xbf" + as_json()) == document(as_json())
    assert document(as_json(later={"a": [1]}, published="today")) == document(as_json())


def test_b19_the_detail_about_invalid_utf8_quotes_no_byte() -> None:
    with pytest.raises(InvalidMessageError) as caught:
        parse_record(record(b'{"text":"\xfe"}'), DocumentLimits())
    assert caught.value.detail == "expected UTF-8"


@pytest.mark.parametrize("document_id", ["{a}b", "a/b", 'say "so"', "💥"])
def test_b26_an_id_of_any_other_characters_is_accepted(document_id: str) -> None:
    assert document(as_json(id=document_id)).id == document_id
    assert document(b"text", [*PLAIN, ("nearstream-id", document_id.encode())]).id == document_id
    assert removal(key=document_id.encode()).id == document_id


def test_b39_a_text_over_the_limit_is_a_dead_letter() -> None:
    bounds = DocumentLimits(text_bytes=10)
    assert refusal(as_json(text="é" * 6), bounds=bounds) is Reason.TOO_LARGE
    assert refusal(b"x" * 11, PLAIN, bounds=bounds) is Reason.TOO_LARGE
    assert isinstance(parse_record(record(as_json(text="é" * 5)), bounds), ParsedDocument)


def test_b41_gzip_beyond_16_mib_or_ratio_100_is_a_dead_letter_and_never_unpacked_whole() -> None:
    padded = zlib.compressobj(level=0, wbits=31)
    stored = padded.compress(b"\0" * (INFLATED_MAX_BYTES + 1)) + padded.flush()
    packer, mebibyte = zlib.compressobj(wbits=31), b"\0" * 1024 * 1024
    bomb = b"".join(packer.compress(mebibyte) for _ in range(64)) + packer.flush()
    headers: Headers = [*PLAIN, ("content-encoding", b"gzip")]
    wide = DocumentLimits(value_bytes=64 * 1024 * 1024)
    assert refusal(stored, headers, bounds=wide) is Reason.DECOMPRESSION_LIMIT
    tracemalloc.start()
    try:
        assert refusal(bomb, headers) is Reason.DECOMPRESSION_LIMIT
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 32 * len(mebibyte)


def test_b42_damaged_gzip_is_a_dead_letter() -> None:
    whole = gzip.compress(b"some text of a page")
    headers: Headers = [*PLAIN, ("content-encoding", b"gzip")]
    assert document(whole, headers).text == "some text of a page"
    for damaged in (
        whole[:-1],
        whole[:12],
        b"\x1f\x8b",
        whole[:-8] + b"\0" * 8,
        b"no gzip",
        whole + b"tail",
        whole + whole,
    ):
        assert refusal(damaged, headers) is Reason.EXTRACTION_FAILED


def test_b43_b45_an_unknown_content_type_or_encoding_is_a_dead_letter() -> None:
    for content_type in (b"image/png", b"application/xml", b"text", b"\xff", b"application/+xml", b"message/rfc822"):
        assert refusal(as_json(), [("content-type", content_type)]) is Reason.UNSUPPORTED_CONTENT_TYPE
    assert refusal(as_json(), [("content-encoding", b"br")]) is Reason.UNSUPPORTED_CONTENT_TYPE
    for more in (
        b"",
        b',"content_type":null',
        b',"content_type":"application/pdf"',
        b',"content_type":"message/rfc822"',
    ):
        assert refusal(b'{"raw":"YQ=="' + more + b"}") is Reason.UNSUPPORTED_CONTENT_TYPE


def test_b46_invalid_base64_is_a_dead_letter() -> None:
    for raw in ("a", "YQ", "Y?==", 5):
        value = json.dumps({"raw": raw, "content_type": "text/plain"}).encode()
        assert refusal(value) is Reason.INVALID_MESSAGE


@pytest.mark.parametrize("content_type", ["text/html", "application/xhtml+xml; charset=iso-8859-1"])
def test_a_page_keeps_its_bytes_and_its_type_until_it_is_read(content_type: str) -> None:
    page = "<p>Brücke".encode("latin-1")
    headers = [("content-type", content_type.encode()), ("nearstream-url", b"https://a.example/x")]
    result = document(page, headers)
    assert (result.text, result.html, result.raw, result.content_type) == (None, None, page, content_type)
    assert result.id == result.lineage == "https://a.example/x"
    sent = {"raw": base64.b64encode(page).decode(), "content_type": content_type, "url": "https://a.example/x"}
    assert document(json.dumps(sent).encode()) == result


@pytest.mark.parametrize("content_type", ["html", "text/html, text/html", "unknown/unknown"])
def test_a_page_with_an_invalid_type_is_read(content_type: str) -> None:
    page = b"<!doctype html><p>text"
    assert document(page, [("content-type", content_type.encode())]).raw == page
    sent = {"raw": base64.b64encode(page).decode(), "content_type": content_type}
    assert document(json.dumps(sent).encode()).raw == page


def test_a_page_in_json_is_kept_until_it_is_read() -> None:
    assert document(b'{"html":"<p>some text"}').html == "<p>some text"
    assert document(b'{"html":"<p>a"}').id != document(b'{"html":"<p>b"}').id
    large = json.dumps({"html": "a" * (DocumentLimits().text_bytes + 1)}).encode()
    assert document(large).html


def test_b44_what_a_charset_cannot_read_is_replaced_and_said_to_be() -> None:
    for charset in ("nosuch", "base64", "ascii", "utf-32"):
        named: Headers = [("content-type", f"text/plain; charset={charset}".encode())]
        result = received("Größe, Brücke, Straße\\x".encode() + b"\xff", named)
        assert (result.document.text, result.degraded) == ("Größe, Brücke, Straße\\x\ufffd", ("charset_replaced",))
    for value, headers in (
        ('{"text":"Br\ufffdcke"}'.encode(), []),  # a replacement character that was sent
        ("Br\ufffdcke".encode(), PLAIN),
        (b'{"raw":"QnL8Y2tl","content_type":"text/plain"}', []),
    ):
        assert received(value, headers).degraded == ("charset_replaced",)


def test_b44_raw_content_in_json_has_a_charset_too() -> None:
    result = received(b'{"raw":"QnL8Y2tl","content_type":"text/plain; charset=latin-1"}')
    assert (result.document.text, result.document.raw, result.document.content_type) == ("Brücke", None, None)


@pytest.mark.parametrize(
    ("content_type", "encoding"),
    [
        ("TEXT/Plain;Charset=UTF-8", "utf-8"),
        ('text/plain; format=flowed; charset="windows-1252"; x=y', "cp1252"),
        ("text/plain ; charset = shift_jis", "shift_jis"),
    ],
)
def test_b44_a_known_charset_is_read(content_type: str, encoding: str) -> None:
    text = "日本語" if encoding == "shift_jis" else "Brücke"
    assert received(text.encode(encoding), [("content-type", content_type.encode())]) == ParsedDocument(
        document(text.encode(), PLAIN)
    )


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (gzip.compress(b"a text that is compressed twice", mtime=0), "content-encoding gzip"),
        (b"%PDF-1.7\n1 0 obj", "binary (PDF)"),
        (b"PK\x03\x04" + bytes(40), "zip archive"),
        (b"\x28\xb5\x2f\xfd" + bytes(40), "unpack it first"),
        (bytes(range(256)) * 4, "found binary"),
    ],
)
def test_b44_what_is_no_text_is_a_dead_letter_that_names_it(value: bytes, named: str) -> None:
    assert document(b"one\x01 and two\x02 in a text that is long enough to say that it is a text", PLAIN).text
    assert document("<p>Brücke".encode("utf-16"), [("content-type", b"text/html")]).raw
    for kind in ("text/plain", "text/html"):
        as_raw = as_json(text=None, raw=base64.b64encode(value).decode(), content_type=kind)
        typed: Headers = [("content-type", kind.encode())]
        for sent, headers in ((value, typed), (as_raw, [])):
            with pytest.raises(InvalidMessageError, match=re.escape(named)) as caught:
                parse_record(record(sent, headers), DocumentLimits())
            assert caught.value.reason is Reason.EXTRACTION_FAILED


@pytest.mark.parametrize(
    ("value", "headers", "place"),
    [
        (b"\xff\xfe", [], "collection default"),
        (b"{", [("nearstream-collection", b"news")], "collection news"),
        (b'{"collection": "mail", "text": 5}', [], "collection mail"),
        (b'{"url": 5}', [], "collection default"),
        (b'{"url": "https:\\/\\/www.a.evil.example\\/x", "text"', [], "site evil.example"),
        (b'{"url": "https://evil.example/%s"' % (b"a" * 999), [], "site evil.example"),
        (b'{"url": "https://evil.example/\\u00e9"', [], "site evil.example"),
        (b'{"labels": {"sender-domain": "0a1b"}, "text": 5}', [], "sender-domain 0a1b"),
        (b"\0" * 999, [("nearstream-url", b"http://EVIL.example:81/"), *PLAIN], "site evil.example"),
        (
            b"\0",
            [("nearstream-label-sender-domain", b"0a1b"), ("nearstream-url", b"http://a.b/")],
            "sender-domain 0a1b",
        ),
        (b"", [("nearstream-url", b"nowhere")], "collection default"),
        (None, [("nearstream-collection", b"\xff" * 500)], "collection " + "\ufffd" * 53),
        (b"[" * 100_000, [("nearstream-url", None)], "collection default"),
    ],
)
def test_a_record_says_where_it_came_from_whatever_it_holds(value: bytes | None, headers: Headers, place: str) -> None:
    assert came_from(record(value, headers)) == place


@pytest.mark.parametrize("text", ["GIF89a is a format", "%PDF-1.7 was attached", "\x01" * 99 + "hello " * 40])
def test_a_text_that_was_read_from_a_mail_is_not_asked_whether_it_is_one(text: str) -> None:
    assert document(text.encode(), [*PLAIN, ("nearstream-source", b"mail")]).text == text


def test_b50_b51_b52_a_key_that_can_be_no_id_is_never_used_as_one() -> None:
    for key in (None, b"\xff\xfe", b"k" * 513, b"", b"a\nb"):
        assert document(as_json(), key=key).id == document(as_json()).id
    for key in (None, b"\xff\xfe", b"", b"a\nb"):
        assert refusal(None, key=key) is Reason.INVALID_ID


def test_b50_a_key_is_the_id_of_a_document_that_names_nothing_else() -> None:
    assert document(as_json(), key="schlüssel".encode()).id == "schlüssel"
    assert document(as_json(id="own"), key=b"key").id == "own"
    for named in ({"url": "https://a.example/x"}, {"lineage": "thread-1"}):
        sent = document(as_json(**named), key=b"key")
        assert sent.id == sent.lineage == document(as_json(**named)).id


def test_b05_a_null_value_removes_what_its_key_named_and_one_that_names_nothing_is_a_dead_letter() -> None:
    assert refusal(None) is Reason.INVALID_ID
    for named in ({"id": "p-0312"}, {"url": "https://a.example/x?b=1&a=2#part"}, {"lineage": "l" * 600}):
        sent = document(as_json(**named))
        assert sent.id is not None
        for key in {sent.id, named.get("lineage", sent.id)}:
            assert removal(headers=[], key=key.encode()).document_key == f"default/{sent.id}"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("nearstream-id", Reason.INVALID_ID),
        ("nearstream-observed-at", Reason.INVALID_TIME),
        ("nearstream-url", Reason.INVALID_MESSAGE),
        ("nearstream-collection", Reason.INVALID_MESSAGE),
        ("nearstream-recipient-hashes", Reason.INVALID_MESSAGE),
        ("nearstream-label-lang", Reason.INVALID_MESSAGE),
    ],
)
def test_b53_a_header_of_ours_without_a_text_has_the_reason_of_its_field(name: str, reason: Reason) -> None:
    for value in (None, b"\xff"):
        assert refusal(b"text", [*PLAIN, (name, value)]) is reason
        if name == "nearstream-id":
            assert refusal(None, [(name, value)], key=b"p-0312") is reason


def test_b53_foreign_headers_of_any_value_are_no_fault() -> None:
    foreign: Headers = [("x-trace", None), ("x-trace", b"\xff"), ("", b""), ("nearstream-later", None)]
    assert document(as_json(), foreign) == document(as_json())
    assert document(b"some text", [*foreign, *PLAIN]) == document(as_json())


def test_b55_of_repeated_headers_of_ours_the_last_one_wins() -> None:
    headers: Headers = [*PLAIN, ("nearstream-id", b"\xff"), ("nearstream-id", b"last"), ("content-type", b"text/plain")]
    assert document(b"text", [("content-type", b"image/png"), *headers]).id == "last"
    removed: Headers = [("nearstream-id", b"first"), ("nearstream-id", b"last")]
    assert removal(removed).id == "last"


def test_b57_a_record_unpacked_beyond_the_limit_is_a_dead_letter() -> None:
    bounds = DocumentLimits(value_bytes=100)
    assert refusal(b"x" * 101, PLAIN, bounds=bounds) is Reason.TOO_LARGE
    assert isinstance(parse_record(record(b"x" * 100, PLAIN), bounds), ParsedDocument)


@pytest.mark.parametrize("timestamp_ms", [-1, 2**62])
def test_b58_without_any_time_of_a_calendar_a_document_is_a_dead_letter(timestamp_ms: int) -> None:
    with pytest.raises(InvalidMessageError) as caught:
        parse_record(record(as_json())._replace(timestamp_ms=timestamp_ms), DocumentLimits())
    assert caught.value.reason is Reason.INVALID_TIME


@pytest.mark.parametrize(
    "content_type", [None, b"application/json", b"Application/JSON; charset=utf-8", b"application/ld+json"]
)
def test_json_is_read_under_each_of_its_names(content_type: bytes | None) -> None:
    assert document(as_json(), [("content-type", content_type)]) == document(as_json())


def test_packed_and_plain_bytes_give_the_same_document() -> None:
    packed: Headers = [("content-encoding", b"GZIP")]
    assert document(gzip.compress(as_json()), packed) == document(as_json())
    assert document(as_json(), [("content-encoding", b"identity")]) == document(as_json())


def test_headers_add_no_field_to_a_json_document() -> None:
    assert document(as_json(), [("nearstream-id", b"x"), ("nearstream-source", b"mail")]) == document(as_json())


def broken_documents() -> list[tuple[bytes, Headers]]:
    """Return records that are refused, with a planted phrase at a different point in each."""
    planted = PLANTED.encode()
    values = [planted, b'{"text":"' + planted, b'{"' + planted + b'":1}', as_json(id=PLANTED) + planted]
    values += [b'{"text":"' + planted + b'\xff"}', b"[" * 2000 + planted, as_json(html=PLANTED), as_json(raw=PLANTED)]
    broken: list[tuple[bytes, Headers]] = [(value, []) for value in values]
    broken += [(as_json(), [(name, planted)]) for name in ("content-type", "content-encoding")]
    ours = ("nearstream-observed-at", "nearstream-collection", "nearstream-source", f"nearstream-label-{PLANTED}")
    broken += [(planted, [*PLAIN, (name, planted + b"\n")]) for name in ours]
    return [*broken, (planted * 9, [*PLAIN, ("content-encoding", b"gzip")])]


def test_no_detail_holds_payload_text() -> None:
    for value, headers in broken_documents():
        with pytest.raises(InvalidMessageError) as caught:
            parse_record(record(value, headers, PLANTED.encode()), DocumentLimits())
        for word in PLANTED.split():
            assert word not in caught.value.detail, value
            assert word not in str(caught.value), value


def test_a_page_belongs_to_the_lineage_of_its_own_url_whatever_it_declares() -> None:
    page = b"<head><link rel=canonical href='/x'></head><p>text"
    url: Headers = [("content-type", b"text/html"), ("nearstream-url", b"https://a.example/x?print=1")]
    parsed = received(page, url)
    assert parsed.document.lineage == parsed.document.id == parsed.record_key == "https://a.example/x?print=1"
    named = received(page, [*url, ("nearstream-lineage", b"mine")])
    assert (named.document.lineage, named.document.id, named.record_key) == ("mine", "mine", "mine")


def test_a_password_in_a_url_is_no_part_of_a_document() -> None:
    page, secret = "https://a.example/x", "https://user:secret@a.example/x"
    headers: Headers = [*PLAIN, ("nearstream-url", secret.encode()), ("nearstream-lineage", secret.encode())]
    ftp = {"id": "ftp://user:secret@a.example/f", "url": "\thttps:\\\\user:secret@a.example/x"}
    for found, names in (
        (received(as_json(url=secret)), (page, page)),
        (received(as_json(id=secret, lineage=secret)), (page, None)),
        (received(b"some text", headers), (page, page)),
        (received(b"some text", PLAIN, secret.encode()), (page, None)),
        (received(as_json(**ftp)), ("ftp://a.example/f", "\thttps:\\\\a.example/x")),
    ):
        sent = found.document
        assert "secret" not in repr((sent, found.record_key))
        assert (sent.id, sent.url) == names
    assert removal(key=secret.encode()) == removal([("nearstream-id", page.encode())])
    for name in ("<a:b@c>", "https://a.example/@b", "mailto:a@b.example", "a/b//c@d", "user:secret@b"):
        assert document(as_json(id=name)).id == name
