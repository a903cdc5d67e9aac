"""Parsing of records of `documents`, with the ids of the list of bad input."""

import base64
import gzip
import json
import re
import tracemalloc
import zlib
from datetime import UTC, datetime, timedelta

import pytest

from nearstream.schemas.documents.document import Document
from nearstream.schemas.documents.record import ConsumerRecord, Headers
from nearstream.schemas.topics.codec import InvalidMessageError
from nearstream.schemas.topics.dead_letter import Reason
from nearstream.streams.ingest.defaults import DocumentLimits
from nearstream.streams.ingest.parse import INFLATED_MAX_BYTES, ParsedDocument, Removal, parse_record

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


def test_b01_random_bytes_are_a_dead_letter() -> None:
    assert refusal(b"\x8f\x02\xd1\x00 nothing") is Reason.NOT_JSON


@pytest.mark.parametrize("cut", [1, -1])
def test_b02_truncated_json_is_a_dead_letter(cut: int) -> None:
    assert refusal(as_json()[:cut]) is Reason.NOT_JSON


def test_b03_text_after_the_object_is_a_dead_letter() -> None:
    assert refusal(as_json() + b" and more") is Reason.NOT_JSON


def test_b04_a_null_value_with_a_key_is_a_removal() -> None:
    assert removal(key=b"p-0312") == Removal("default", "p-0312", TIMESTAMP_MS)


def test_b04_a_header_names_the_removed_document_before_the_key_does() -> None:
    headers: Headers = [("nearstream-id", b"p-0312"), ("nearstream-collection", b"news")]
    assert removal(headers, key=b"https://a.example/flood").document_key == "news/p-0312"


def test_b05_a_null_value_that_names_no_document_is_a_dead_letter() -> None:
    assert refusal(None) is Reason.INVALID_ID


def test_b06_an_empty_value_is_not_a_removal() -> None:
    assert refusal(b"", key=b"p-0312") is Reason.EMPTY_VALUE


def test_b07_only_white_space_is_a_dead_letter() -> None:
    assert refusal(b" \n\t ") is Reason.NOT_JSON


@pytest.mark.parametrize("value", [b"[]", b'"text"', b"null"])
def test_b08_json_that_is_no_object_is_a_dead_letter(value: bytes) -> None:
    assert refusal(value) is Reason.INVALID_MESSAGE


def test_b09_a_document_without_an_id_gets_one() -> None:
    derived = document(as_json()).id
    assert derived is not None
    assert len(derived) == 32
    assert document(as_json()).id == derived


@pytest.mark.parametrize("value", [b"{}", b'{"id":"a"}', b'{"text":null}', b'{"text":null,"raw":null,"html":null}'])
def test_b10_b11_a_document_without_content_is_a_dead_letter(value: bytes) -> None:
    assert refusal(value) is Reason.NO_CONTENT


@pytest.mark.parametrize("text", [5, ["a"]])
def test_b12_a_text_of_another_type_is_a_dead_letter(text: object) -> None:
    assert refusal(as_json(text=text)) is Reason.INVALID_MESSAGE


@pytest.mark.parametrize("other", [{"html": "<p>"}, {"raw": "YQ==", "content_type": "text/plain"}])
def test_b13_two_contents_are_a_dead_letter(other: dict[str, str]) -> None:
    assert refusal(as_json(**other)) is Reason.SEVERAL_CONTENTS


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_b14_nesting_without_end_is_a_dead_letter(opening: bytes) -> None:
    assert refusal(opening * 100_000) in (Reason.NOT_JSON, Reason.INVALID_MESSAGE)
    assert refusal(b'{"text":"a","later":' + opening * 100_000) is Reason.NOT_JSON
    assert refusal(b'{"text":' + opening * 10_000) is Reason.INVALID_MESSAGE
    assert refusal(b'{"text":' + opening * 100_000) is Reason.NOT_JSON


def test_b15_of_a_key_written_twice_the_last_one_wins() -> None:
    assert document(b'{"text":"first","text":"last"}').text == "last"


@pytest.mark.parametrize("value", [b'{"text":NaN}', b'{"text":"a","later":Infinity}', b'{"text":"a","later":NaN}'])
def test_b16_nan_and_infinity_are_a_dead_letter(value: bytes) -> None:
    assert refusal(value) is Reason.NOT_JSON


@pytest.mark.parametrize("text", [rb"\ud800", rb"\ud800 and", rb"\udc00\ud800"])
def test_b17_a_lone_surrogate_is_a_dead_letter(text: bytes) -> None:
    assert refusal(b'{"text":"' + text + b'"}') is Reason.NOT_JSON


def test_b18_control_characters_in_the_text_are_accepted() -> None:
    assert document(rb'{"text":"a\u0000b\u0007\u001b[31m"}').text == "a\0b\a\x1b[31m"


def test_b19_invalid_utf8_is_a_dead_letter() -> None:
    assert refusal(b'{"text":"\xff\xfe"}') is Reason.NOT_JSON


def test_b19_the_detail_about_invalid_utf8_quotes_no_byte() -> None:
    with pytest.raises(InvalidMessageError) as caught:
        parse_record(record(b'{"text":"\xfe"}'), DocumentLimits())
    assert caught.value.detail == "expected UTF-8"


def test_b20_a_byte_order_mark_before_json_is_ignored() -> None:
    assert document(b"\xef\xbb\xbf" + as_json()) == document(as_json())


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le"])
def test_b21_json_in_utf16_is_a_dead_letter(encoding: str) -> None:
    assert refusal(as_json().decode().encode(encoding)) is Reason.NOT_JSON


def test_b22_unknown_fields_are_ignored() -> None:
    assert document(as_json(later={"a": [1]}, published="today")) == document(as_json())


@pytest.mark.parametrize(
    ("value", "reason"),
    [(b'{"body":"a","id":"b"}', Reason.NO_CONTENT), (b'{"text":{"body":"a"}}', Reason.INVALID_MESSAGE)],
)
def test_b23_a_document_for_a_later_major_is_a_dead_letter(value: bytes, reason: Reason) -> None:
    assert refusal(value) is reason


@pytest.mark.parametrize("document_id", ["", "a" * 513])
def test_b24_an_empty_or_overlong_id_is_a_dead_letter(document_id: str) -> None:
    assert refusal(as_json(id=document_id)) is Reason.INVALID_ID
    assert refusal(b"text", [*PLAIN, ("nearstream-id", document_id.encode())]) is Reason.INVALID_ID
    assert refusal(None, [("nearstream-id", document_id.encode())], key=b"p-0312") is Reason.INVALID_ID


def test_b24_an_id_of_512_characters_is_accepted() -> None:
    assert document(as_json(id="é" * 512)).id == "é" * 512


@pytest.mark.parametrize("document_id", ["a\n", "\x00", "a\x7f", "a\x85b"])
def test_b25_an_id_with_control_characters_is_a_dead_letter(document_id: str) -> None:
    assert refusal(as_json(id=document_id)) is Reason.INVALID_ID
    assert refusal(None, key=document_id.encode()) is Reason.INVALID_ID


def test_b25_an_id_that_is_no_string_is_a_dead_letter() -> None:
    assert refusal(as_json(id=5)) is Reason.INVALID_ID


@pytest.mark.parametrize("document_id", ["{a}b", "a/b", 'say "so"', "💥"])
def test_b26_an_id_of_any_other_characters_is_accepted(document_id: str) -> None:
    assert document(as_json(id=document_id)).id == document_id
    assert document(b"text", [*PLAIN, ("nearstream-id", document_id.encode())]).id == document_id
    assert removal(key=document_id.encode()).id == document_id


@pytest.mark.parametrize("collection", ["", "News", "-a", "a" * 64, "a\n"])
def test_b27_a_collection_outside_its_pattern_is_a_dead_letter(collection: str) -> None:
    assert refusal(as_json(collection=collection)) is Reason.INVALID_MESSAGE
    named: Headers = [("nearstream-collection", collection.encode())]
    assert refusal(b"text", [*PLAIN, *named]) is Reason.INVALID_MESSAGE
    assert refusal(None, named, key=b"p-0312") is Reason.INVALID_MESSAGE


def test_b28_a_lineage_over_512_characters_is_hashed() -> None:
    long, longer = (document(as_json(lineage="x" * length)).lineage or "" for length in (513, 514))
    assert len(long) == 34
    assert long.startswith("h:")
    assert long != longer
    assert document(as_json(lineage="x" * 512)).lineage == "x" * 512


@pytest.mark.parametrize("observed_at", ["2026-03-02T08:15:00", "yesterday", "", 1_772_439_300])
def test_b29_a_naive_time_or_a_bare_number_is_a_dead_letter(observed_at: object) -> None:
    assert refusal(as_json(observed_at=observed_at)) is Reason.INVALID_TIME
    named: Headers = [("nearstream-observed-at", str(observed_at).encode())]
    assert refusal(b"text", [*PLAIN, *named]) is Reason.INVALID_TIME


@pytest.mark.parametrize("observed_at", ["1969-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
def test_b30_a_time_before_1970_or_far_ahead_is_a_dead_letter(observed_at: str) -> None:
    assert refusal(as_json(observed_at=observed_at)) is Reason.INVALID_TIME


def test_b30_the_bound_is_a_day_after_the_record() -> None:
    late = TIME + timedelta(days=1)
    assert document(as_json(observed_at=late.isoformat())).observed_at == late
    assert refusal(as_json(observed_at=(late + timedelta(milliseconds=1)).isoformat())) is Reason.INVALID_TIME


def test_b31_a_time_a_few_minutes_ahead_is_accepted() -> None:
    ahead = TIME + timedelta(minutes=5)
    assert document(as_json(observed_at=ahead.isoformat())).observed_at == ahead


@pytest.mark.parametrize(
    "labels",
    [
        {f"l{number}": "x" for number in range(9)},
        {"": "x"},
        {"Lang": "x"},
        {"a b": "x"},
        {"a" * 32: "x"},
        {"a\n": "x"},
        {"lang": "x" * 129},
        {"lang": 5},
        {"lang": None},
        ["lang"],
    ],
)
def test_b32_too_many_or_bad_labels_are_a_dead_letter(labels: object) -> None:
    assert refusal(as_json(labels=labels)) is Reason.INVALID_MESSAGE


def test_b32_bad_labels_in_headers_are_a_dead_letter() -> None:
    for name, value in (("Lang", b"x"), ("", b"x"), ("lang", b"x" * 129), ("lang", b"\xff"), ("lang", None)):
        assert refusal(b"text", [*PLAIN, (f"nearstream-label-{name}", value)]) is Reason.INVALID_MESSAGE
    nine: Headers = [(f"nearstream-label-l{number}", b"x") for number in range(9)]
    assert refusal(b"text", [*PLAIN, *nine]) is Reason.INVALID_MESSAGE


def test_b33_a_url_over_4096_characters_is_a_dead_letter() -> None:
    url = "https://a.example/" + "x" * 4096
    assert refusal(as_json(url=url)) is Reason.INVALID_MESSAGE
    assert document(as_json(url=url[:4096])).url == url[:4096]


def test_b39_a_text_over_the_limit_is_a_dead_letter() -> None:
    bounds = DocumentLimits(text_bytes=10)
    assert refusal(as_json(text="é" * 6), bounds=bounds) is Reason.TOO_LARGE
    assert refusal(b"x" * 11, PLAIN, bounds=bounds) is Reason.TOO_LARGE
    assert isinstance(parse_record(record(as_json(text="é" * 5)), bounds), ParsedDocument)


def test_b41_gzip_beyond_ratio_100_is_a_dead_letter() -> None:
    bomb = gzip.compress(b"a" * 1024 * 1024)
    assert len(bomb) * 100 < 1024 * 1024
    assert refusal(bomb, [*PLAIN, ("content-encoding", b"gzip")]) is Reason.DECOMPRESSION_LIMIT


def test_b41_gzip_beyond_16_mib_is_a_dead_letter() -> None:
    half = bytes(range(256)) * 2048 + b"\0" * 1024 * 1024  # about ratio 3
    packed = gzip.compress(half * (INFLATED_MAX_BYTES // len(half) + 1), compresslevel=1)
    padded = zlib.compressobj(level=0, wbits=31)
    stored = padded.compress(b"\0" * (INFLATED_MAX_BYTES + 1)) + padded.flush()
    wide = DocumentLimits(value_bytes=64 * 1024 * 1024)
    for bomb in (packed, stored):
        reason = refusal(bomb, [*PLAIN, ("content-encoding", b"gzip")], bounds=wide)
        assert reason is Reason.DECOMPRESSION_LIMIT


def test_b41_a_gzip_bomb_is_never_unpacked_whole() -> None:
    packer = zlib.compressobj(wbits=31)
    mebibyte = b"\0" * 1024 * 1024
    bomb = b"".join(packer.compress(mebibyte) for _ in range(64)) + packer.flush()
    tracemalloc.start()
    try:
        assert refusal(bomb, [*PLAIN, ("content-encoding", b"gzip")]) is Reason.DECOMPRESSION_LIMIT
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 32 * len(mebibyte)


def test_b42_damaged_gzip_is_a_dead_letter() -> None:
    whole = gzip.compress(b"some text of a page")
    headers: Headers = [*PLAIN, ("content-encoding", b"gzip")]
    assert document(whole, headers).text == "some text of a page"
    for damaged in (whole[:-1], whole[:12], b"\x1f\x8b", whole[:-8] + b"\0" * 8, b"no gzip", whole + b"tail"):
        assert refusal(damaged, headers) is Reason.INVALID_MESSAGE


def test_b42_a_second_gzip_member_is_not_dropped_without_a_word() -> None:
    two = gzip.compress(b"some text") + gzip.compress(b" and more")
    assert refusal(two, [*PLAIN, ("content-encoding", b"gzip")]) is Reason.INVALID_MESSAGE


@pytest.mark.parametrize("content_type", [b"image/png", b"application/xml", b"text", b"\xff", b"application/+xml"])
def test_b43_an_unknown_content_type_is_a_dead_letter(content_type: bytes) -> None:
    assert refusal(as_json(), [("content-type", content_type)]) is Reason.UNSUPPORTED_CONTENT_TYPE


def test_b43_mail_is_refused() -> None:
    assert refusal(b"Subject: one", [("content-type", b"message/rfc822")]) is Reason.UNSUPPORTED_CONTENT_TYPE
    with_type = b'{"raw":"YQ==","content_type":"message/rfc822"}'
    assert refusal(with_type) is Reason.UNSUPPORTED_CONTENT_TYPE


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


def test_b43_an_unknown_content_encoding_is_a_dead_letter() -> None:
    assert refusal(as_json(), [("content-encoding", b"br")]) is Reason.UNSUPPORTED_CONTENT_TYPE


@pytest.mark.parametrize("charset", ["nosuch", "base64", "unicode_escape", "ascii", "utf-32"])
def test_b44_what_a_charset_cannot_read_is_replaced_and_said_to_be(charset: str) -> None:
    result = received(
        "Größe, Brücke, Straße\\x".encode() + b"\xff", [("content-type", f"text/plain; charset={charset}".encode())]
    )
    assert result.document.text == "Größe, Brücke, Straße\\x\ufffd"
    assert result.degraded == ("charset_replaced",)


@pytest.mark.parametrize(
    ("content_type", "encoding"),
    [
        ("text/plain", "utf-8"),
        ("TEXT/Plain;Charset=UTF-8", "utf-8"),
        ('text/plain; charset="latin-1"', "latin-1"),
        ("text/plain; format=flowed; charset=windows-1252; x=y", "cp1252"),
        ("text/plain ; charset = shift_jis", "shift_jis"),
        ("text/plain; charset=utf-16", "utf-16"),
    ],
)
def test_b44_a_known_charset_is_read(content_type: str, encoding: str) -> None:
    text = "日本語" if encoding == "shift_jis" else "Brücke"
    assert received(text.encode(encoding), [("content-type", content_type.encode())]) == ParsedDocument(
        document(text.encode(), PLAIN)
    )


@pytest.mark.parametrize("charset", ["cp1252", "cp1250", "utf-16-le"])
@pytest.mark.parametrize("named", ["", "; charset=utf-8"])
def test_b44_a_text_is_read_in_the_charset_that_it_has(charset: str, named: str) -> None:
    text = "Die alte Brücke über den Fluss ist gesperrt, weil das Lager für Möbel gestern früh gebrannt hat."
    content_type = f"text/plain{named}".encode()
    of_record = received(text.encode(charset), [("content-type", content_type)])
    raw = base64.b64encode(text.encode(charset)).decode()
    of_json = received(json.dumps({"raw": raw, "content_type": content_type.decode()}).encode())
    for found in (of_record, of_json):
        assert (found.document.text, found.degraded) == (text, ())


def test_b44_replacement_characters_that_were_sent_are_said_to_be_there() -> None:
    assert received('{"text":"Br\ufffdcke"}'.encode()).degraded == ("charset_replaced",)
    assert received("Br\ufffdcke".encode(), [("content-type", b"text/plain")]).degraded == ("charset_replaced",)


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
    as_raw = as_json(text=None, raw=base64.b64encode(value).decode(), content_type="text/plain")
    for sent, headers in ((value, PLAIN), (as_raw, [])):
        with pytest.raises(InvalidMessageError, match=re.escape(named)) as caught:
            parse_record(record(sent, headers), DocumentLimits())
        assert caught.value.reason is Reason.UNSUPPORTED_CONTENT_TYPE


def test_b44_a_text_may_have_control_characters() -> None:
    for text in ("a\0b", "one\x01 and two\x02 in a text that is long enough to say that it is a text, with words"):
        assert document(text.encode(), PLAIN).text == text


def test_b44_raw_content_in_json_has_a_charset_too() -> None:
    result = received(b'{"raw":"QnL8Y2tl","content_type":"text/plain; charset=latin-1"}')
    assert (result.document.text, result.document.raw, result.document.content_type) == ("Brücke", None, None)
    assert received(b'{"raw":"QnL8Y2tl","content_type":"text/plain"}').degraded == ("charset_replaced",)


@pytest.mark.parametrize("more", [b"", b',"content_type":null', b',"content_type":"application/pdf"'])
def test_b45_raw_content_without_a_readable_type_is_a_dead_letter(more: bytes) -> None:
    assert refusal(b'{"raw":"YQ=="' + more + b"}") is Reason.UNSUPPORTED_CONTENT_TYPE


@pytest.mark.parametrize("raw", ["a", "YQ", "Y?==", 5])
def test_b46_invalid_base64_is_a_dead_letter(raw: object) -> None:
    value = json.dumps({"raw": raw, "content_type": "text/plain"}).encode()
    assert refusal(value) is Reason.INVALID_MESSAGE


@pytest.mark.parametrize("key", [None, b"\xff\xfe", b"k" * 513, b"", b"a\nb"])
def test_b50_b51_b52_a_key_that_can_be_no_id_is_never_used_as_one(key: bytes | None) -> None:
    assert document(as_json(), key=key).id == document(as_json()).id


@pytest.mark.parametrize("key", [None, b"\xff\xfe", b"", b"a\nb"])
def test_b50_b51_b52_a_removal_under_a_key_that_can_be_no_id_is_a_dead_letter(key: bytes | None) -> None:
    assert refusal(None, key=key) is Reason.INVALID_ID


@pytest.mark.parametrize(
    "named", [{"id": "p-0312"}, {"url": "https://a.example/x?b=1&a=2#part"}, {"lineage": "l" * 600}]
)
def test_a_null_value_under_the_key_of_a_document_removes_it(named: dict[str, str]) -> None:
    sent = document(as_json(**named))
    assert sent.id is not None
    for key in {sent.id, named.get("lineage", sent.id)}:
        assert removal(headers=[], key=key.encode()).document_key == f"default/{sent.id}"


def test_b50_a_key_is_the_id_of_a_document_that_names_nothing_else() -> None:
    assert document(as_json(), key="schlüssel".encode()).id == "schlüssel"
    assert document(as_json(id="own"), key=b"key").id == "own"


@pytest.mark.parametrize("named", [{"url": "https://a.example/x"}, {"lineage": "thread-1"}])
def test_b50_a_document_without_an_id_is_named_by_its_lineage_not_by_its_key(named: dict[str, str]) -> None:
    sent = document(as_json(**named), key=b"key")
    assert sent.id == sent.lineage == document(as_json(**named)).id


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("nearstream-id", Reason.INVALID_ID),
        ("nearstream-observed-at", Reason.INVALID_TIME),
        ("nearstream-url", Reason.INVALID_MESSAGE),
        ("nearstream-lineage", Reason.INVALID_MESSAGE),
        ("nearstream-collection", Reason.INVALID_MESSAGE),
        ("nearstream-source", Reason.INVALID_MESSAGE),
        ("nearstream-sender-hash", Reason.INVALID_MESSAGE),
        ("nearstream-recipient-hashes", Reason.INVALID_MESSAGE),
        ("nearstream-label-lang", Reason.INVALID_MESSAGE),
    ],
)
def test_b53_a_header_of_ours_without_a_text_has_the_reason_of_its_field(name: str, reason: Reason) -> None:
    for value in (None, b"\xff"):
        assert refusal(b"text", [*PLAIN, (name, value)]) is reason


def test_b53_a_removal_with_a_null_id_header_removes_nothing_else() -> None:
    for value in (None, b"\xff"):
        assert refusal(None, [("nearstream-id", value)], key=b"p-0312") is Reason.INVALID_ID


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


def test_raw_bytes_and_json_give_the_same_document() -> None:
    fields = {
        "id": "p-0312",
        "text": "Wasserstände",
        "url": "https://a.example/flood",
        "lineage": "flood",
        "collection": "news",
        "observed_at": "2026-03-02T08:10:00Z",
        "source": "crawler",
        "labels": {"lang": "de", "host": "a.example"},
        "sender_hash": "8c3f0d5be27a9146",
        "recipient_hashes": ["1b7e90a2c4d65f83", "57a9e3b1c0d2f486"],
    }
    headers: Headers = [
        ("content-type", b"text/plain; charset=utf-8"),
        ("nearstream-id", b"p-0312"),
        ("nearstream-url", b"https://a.example/flood"),
        ("nearstream-lineage", b"flood"),
        ("nearstream-collection", b"news"),
        ("nearstream-observed-at", b"2026-03-02T08:10:00Z"),
        ("nearstream-source", b"crawler"),
        ("nearstream-sender-hash", b"8c3f0d5be27a9146"),
        ("nearstream-recipient-hashes", b"1b7e90a2c4d65f83  57a9e3b1c0d2f486"),
        ("nearstream-label-lang", b"de"),
        ("nearstream-label-host", b"a.example"),
    ]
    assert document("Wasserstände".encode(), headers) == document(json.dumps(fields).encode())


def test_packed_and_plain_bytes_give_the_same_document() -> None:
    packed: Headers = [("content-encoding", b"GZIP")]
    assert document(gzip.compress(as_json()), packed) == document(as_json())
    assert document(as_json(), [("content-encoding", b"identity")]) == document(as_json())


def test_headers_add_no_field_to_a_json_document() -> None:
    assert document(as_json(), [("nearstream-id", b"x"), ("nearstream-source", b"mail")]) == document(as_json())


def broken_documents() -> list[tuple[bytes, Headers]]:
    """Return records that are refused, with a planted phrase at a different point in each."""
    wrong: list[dict[str, object]] = [
        *[dict[str, object]({name: {PLANTED: PLANTED}}) for name in Document.__struct_fields__],
        *[dict[str, object]({name: [PLANTED]}) for name in Document.__struct_fields__],
        *[
            dict[str, object]({name: PLANTED + "\n"})
            for name in ("id", "lineage", "collection", "source", "observed_at")
        ],
        {"url": PLANTED * 300},
        {"content_type": PLANTED * 20},
        {"labels": {PLANTED: "x"}},
        {"labels": {"lang": PLANTED * 10}},
        {"html": PLANTED},
        {"raw": PLANTED},
        {"id": PLANTED * 40},
    ]
    planted = PLANTED.encode()
    values = [as_json(**fields) for fields in wrong]
    values += [planted, b'{"text":"' + planted, b'{"' + planted + b'":1}', as_json(id=PLANTED) + planted]
    values += [b'{"text":"' + planted + b'\xff"}', b"[" * 2000 + planted]
    broken: list[tuple[bytes, Headers]] = [(value, []) for value in values]
    names = ["content-type", "content-encoding", "nearstream-observed-at", "nearstream-collection", "nearstream-source"]
    broken += [(as_json(), [(name, planted)]) for name in names[:2]]
    broken += [(planted, [*PLAIN, (name, planted + b"\n")]) for name in names[2:]]
    broken += [
        (planted, [*PLAIN, (f"nearstream-label-{PLANTED}", planted)]),
        (planted * 9, [*PLAIN, ("content-encoding", b"gzip")]),
    ]
    return broken


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
