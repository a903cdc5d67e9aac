"""Signing of records of `documents`."""

import json
import struct
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest

from nearstream.schemas.documents.record import ConsumerRecord, Headers, ProducerRecord, header
from nearstream.schemas.documents.signature import Origin, Signature
from nearstream.schemas.topics.codec import InvalidMessageError, decode_signature
from nearstream.schemas.topics.dead_letter import DETAIL_HEADER
from nearstream.streams.signing.signer import Signer, Unsigned
from nearstream.workers.pipeline import sign
from tests.support.made_up import KEY
from tests.support.made_up import STANDARD as SCHEME
from tests.support.signing import TIMESTAMP_MS, record, signer

TEXT = "Water levels at the old bridge rose overnight and stood at three metres forty in the morning. " * 3

ORIGIN = ("nearstream-origin", b"nearstream.documents.v1/2/4410")


def document(document_id: str = "p-0312", text: str = TEXT, **fields: object) -> bytes:
    return json.dumps({"id": document_id, "text": text, "collection": "news", **fields}).encode()


async def decided(*records: ConsumerRecord) -> list[ProducerRecord]:
    return await signer().decide(records)


async def signature(value: bytes, headers: Headers | None = None) -> Signature:
    (sent,) = await decided(record(value, headers))
    assert sent.value is not None
    return decode_signature(sent.value)


async def test_a_document_becomes_its_signature_under_its_document_key() -> None:
    (sent,) = await decided(record(document(url="https://a.example/x", source="crawler", labels={"lang": "en"})))
    assert (sent.topic, sent.key) == ("p.nearstream.signatures.v1", b"news/p-0312")
    assert sent.headers == [("content-type", b"application/msgpack")]
    assert sent.value is not None
    made = decode_signature(sent.value)
    SCHEME.check(made)
    assert (made.scheme, made.document_key) == (SCHEME.name, "news/p-0312")
    assert (made.url, made.lineage, made.source, made.labels) == (
        "https://a.example/x",
        "https://a.example/x",
        "crawler",
        {"lang": "en"},
    )
    assert made.origin == Origin("nearstream.documents.v1", 2, 4410, TIMESTAMP_MS)
    assert made.observed_at_ms == TIMESTAMP_MS
    assert made.n_bytes > 0
    assert sent.timestamp_ms == TIMESTAMP_MS
    assert not any(word.encode() in sent.value for word in ("Water", "water", "bridge", "metres", "morning"))


async def test_a_removal_is_passed_on_as_null_with_its_origin() -> None:
    named: Headers = [("nearstream-id", b"p-0312"), ("nearstream-collection", b"news")]
    (sent,) = await decided(record(None, named, b"https://a.example/x")._replace(timestamp_ms=5))
    assert sent == ProducerRecord("p.nearstream.signatures.v1", b"news/p-0312", None, [ORIGIN], 5)


async def test_a_document_and_its_removal_have_one_key_and_pass_their_trace_on() -> None:
    trace: Headers = [("traceparent", b"00-1"), ("x", b"y"), ("traceparent", b"00-2")]
    sent, removed = await decided(record(b'{"text":"some text"}', trace, b"k"), record(None, trace, b"k"))
    assert sent.key == removed.key == b"default/k"
    assert sent.headers == [("content-type", b"application/msgpack"), ("traceparent", b"00-2")]
    assert removed.headers == [ORIGIN, ("traceparent", b"00-2")]


@pytest.mark.parametrize("text", ["", " \n\t", "\u200b\u00ad"])
async def test_b34_an_empty_text_makes_nothing(text: str) -> None:
    assert await decided(record(document(text=text))) == []
    assert await decided(record(f"<script>no</script>{text}".encode(), [("content-type", b"text/html")])) == []


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("one word", {"n_bytes": 8}),
        (f"\0\x1b[31m {TEXT}", {"spaceless": False}),
        ("v" * 1024 * 1024, {"n_bytes": 1024 * 1024}),
        ("日本語のテキスト、" * 20, {"spaceless": True}),
    ],
    ids=["short", "control characters", "one character", "no spaces"],
)
async def test_b18_b34_b35_b36_a_strange_text_is_signed_within_its_bounds(text: str, fields: dict[str, object]) -> None:
    made = await signature(document(text=text))
    SCHEME.check(made)
    assert {name: getattr(made, name) for name in fields} == fields


async def test_b37_b38_invisible_marks_and_compositions_change_nothing() -> None:
    marked = "\u202b" + TEXT.replace(" ", " \u200b\u200f").replace(".", "\u2060.\ufeff")
    composed, decomposed = (unicodedata.normalize(form, "Brücken über große Flüsse " * 5) for form in ("NFC", "NFD"))
    for one, other in ((marked, TEXT), (composed, decomposed)):
        assert (await signature(document(text=one))).digest == (await signature(document(text=other))).digest


async def test_a_text_that_grows_too_large_leaves_those_signed_beside_it_as_they_are() -> None:
    worker = replace(signer(), signer=Signer(SCHEME, KEY, 3_000))
    records = [
        record(document(str(number), text), offset=number)
        for number, text in enumerate([TEXT, "\ufdfa" * 300, "", "é" * 20, "語 " * 40, TEXT[:40]])
    ]
    records[2:2] = [record(None, key=b"gone", offset=9), record(b"{broken", offset=10)]
    alone = [sent for each in records for sent in await worker.decide([each])]
    assert [header(sent.headers, "nearstream-dead-reason") for sent in alone] == [
        *(None, b"too_large", None, b"not_json", None, None, None)
    ]
    assert [header(sent.headers, "nearstream-dead-stage") for sent in alone] == [
        *(None, b"sign", None, b"decode", None, None, None)
    ]
    assert await worker.decide(records) == alone


async def test_a_page_is_signed_as_its_text() -> None:
    text = " ".join([TEXT] * 20)
    page = f"<html><nav><a href=/>Menu</a></nav><article><p>{text}</p></article></html>"
    of_text = await signature(document(text=text))
    for made in (
        await signature(document(text=None, html=page)),
        await signature(page.encode("utf-16"), [("content-type", b"text/html; charset=utf-16")]),
    ):
        assert made.digest == of_text.digest
        assert made.degraded == ()


async def test_a_batch_of_pages_is_signed_in_groups_of_bounded_size_and_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bomb = document("b", text=None, html="<div>" * 50_000 + TEXT)
    values = [document("a"), bomb, b"{broken", document("c", text=None, html=f"<p>{TEXT}"), document("d")]
    records = [record(value, offset=offset) for offset, value in enumerate(values)]
    at_once = await decided(*records)
    assert [each.key for each in at_once] == [b"news/a", b"news/b", None, b"news/c", b"news/d"]
    assert decode_signature(at_once[1].value or b"").degraded == ("extraction_fallback",)
    monkeypatch.setattr(sign, "GROUP_BYTES", len(TEXT))
    assert await decided(*records) == at_once


class Failing(Signer):
    """Fails at one document."""

    def __init__(self, error: Exception) -> None:
        super().__init__(SCHEME, KEY)
        self.error = error

    def sign_many(self, unsigned: Iterable[Unsigned]) -> Iterator[Signature | InvalidMessageError]:
        for each in unsigned:
            if each.document.id == "p-5":
                raise self.error
            yield from super().sign_many([each])


@pytest.mark.parametrize(
    "error",
    [ValueError("planted"), OverflowError(), KeyError("planted"), struct.error(), RecursionError(), UnicodeError()],
)
async def test_a_record_whose_data_a_step_cannot_take_gets_a_dead_letter(error: Exception) -> None:
    records = [record(document(f"p-{number}")) for number in range(8)]
    sent = await replace(signer(), signer=Failing(error)).decide(records)
    assert [each.key for each in sent if each.topic.endswith("signatures.v1")] == [
        f"news/p-{number}".encode() for number in range(8) if number != 5
    ]
    (letter,) = (each for each in sent if each.topic.endswith("dead-letters.v1"))
    detail = header(letter.headers, DETAIL_HEADER) or b""
    assert type(error).__name__.encode() in detail
    assert b"planted" not in detail


async def test_an_error_that_is_none_of_data_is_raised() -> None:
    broken = replace(signer(), signer=Failing(RuntimeError("the bug")))
    with pytest.raises(RuntimeError, match="the bug"):
        await broken.decide([record(document("p-4")), record(document("p-5"))])
