"""Junk of strangers never holds the interpreter for long, so that others get their answers meanwhile."""

import gzip
import random
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from functools import partial

import pytest

from nearstream.schemas.documents.document import Document
from nearstream.schemas.documents.record import ConsumerRecord
from nearstream.schemas.topics.codec import InvalidMessageError
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.ingest.charset import decode
from nearstream.streams.ingest.defaults import DocumentLimits
from nearstream.streams.ingest.fields import parse_field_map
from nearstream.streams.ingest.parse import parse_record
from nearstream.streams.signing.scheme import preset
from nearstream.streams.signing.signer import Signer
from nearstream.workers.crawl.html_processes import HtmlProcesses
from nearstream.workers.mail.message import MailRules, read_message
from tests.support.holding import longest_hold

KEY = HashKey.public()
HOLD_SECONDS = 0.15
MIB = 1024 * 1024
JUNK = {
    "folded types": b"content-type: a;\n b=c;\n",
    "boundaries": b"boundary",
    "parts": b"--x\ncontent-type: multipart/mixed; boundary=x\n\n",
    "lines of base64": b"QUJD" * 19 + b"\n",
    "short padded lines": b"A=\n",
    "ligatures": "\ufdfa".encode(),
    "undefined bytes": b"\x81",
    "escapes": b"=C3=A9=\n",
    "encoded words": b"=?utf-8?q?a?= ",
    "greetings": b"dear a b c, ",
    "urls": b"http://a/b ",
    "tags": b"<a href=",
    "entities": b"&amp;",
    "braces": b'{"a":',
    "no UTF-8": b"\xff\xfe",
}
HEADS = [
    b"",
    b"From: a@x.example\nMessage-ID: <1@x>\nContent-Type: text/plain\n\n",
    b"Content-Type: multipart/mixed; boundary=x\n\n--x\nContent-Transfer-Encoding: base64\n\n",
    b"Content-Type: image/png\nContent-Transfer-Encoding: base64\n\n",
    b"Content-Type: image/png\nContent-Transfer-Encoding: quoted-printable\n\n",
]
ENCODED = ("lines of base64", "short padded lines", "escapes")  # junk of an encoding of mail
CHARSETS = ("cp1252", "utf-7", "iso-2022-kr")
BROKEN = b"\n!"  # which is in no base64
# Fields that may hold few values of a pattern, with more of these than fit.
FIELDS = {
    "labels": (b'"labels":{', b'"a":"",', b'"b":""}'),
    "other labels": (b'"labels":{', b'"A":"",', b'"b":""}'),
    "hashes": (b'"recipient_hashes":[', b'"8c3f0d5be27a9146",', b'""]'),
    "small labels": (b"", b'"labels":{' + b'"a":"",' * 6_000 + b'"b":""},', b'"id":"x"'),
    "lineage": (b'"lineage":"', b"a", b'"'),
    "id": (b'"id":"', b"a", b'"'),
    "unknown": (b'"later":[', b"[],", b"[]]"),
}


@pytest.fixture(scope="module")
def html() -> Iterator[HtmlProcesses]:
    with closing(HtmlProcesses(deadline_seconds=1)) as processes:
        yield processes


def filled(junk: bytes, size: int) -> bytes:
    return (junk * (size // len(junk) + 1))[:size]


def tried(work: Callable[[], object]) -> Callable[[], None]:
    """Return work that may refuse its input."""

    def run() -> None:
        try:
            work()
        except (InvalidMessageError, ValueError):
            return

    return run


@pytest.mark.parametrize("junk", JUNK)
def test_a_mail_of_junk_lets_others_run(junk: str, html: HtmlProcesses) -> None:
    body = filled(JUNK[junk], 16 * MIB - 200) + BROKEN
    for head in HEADS[2:] if junk in ENCODED else HEADS[:3]:
        work = tried(partial(read_message, head + body, datetime.now(UTC), KEY, html))
        assert longest_hold(work, HOLD_SECONDS) <= HOLD_SECONDS, head


@pytest.mark.parametrize("charset", CHARSETS)
@pytest.mark.parametrize("junk", ["no UTF-8", "undefined bytes"])
def test_text_in_a_charset_that_it_has_not_lets_others_run(junk: str, charset: str, html: HtmlProcesses) -> None:
    raw = b"Content-Type: text/plain; charset=%b\n\n" % charset.encode() + filled(JUNK[junk], 9 * MIB)
    work = tried(lambda: read_message(raw, datetime.now(UTC), KEY, html))
    assert longest_hold(work, HOLD_SECONDS) <= HOLD_SECONDS


def test_many_headers_of_one_name_take_no_long_time(html: HtmlProcesses) -> None:
    for name in ["to", "message-id", "references", "date", "subject", "authentication-results"]:
        for content in ["whole", "thread"]:
            raw = filled(name.encode() + b":\xe9\n", 255 * 1024) + b"\n\nsome words\n"
            began = time.process_time()
            read_message(raw, datetime.now(UTC), KEY, html, rules=MailRules(content, "mx"))
            assert time.process_time() - began < 5  # it was 40 s, and 170 s with threads


def test_a_field_of_too_many_values_lets_others_run() -> None:
    for field in FIELDS:
        for fields in ["", "text=text id=later lineage=labels.a"]:
            begin, value, end = FIELDS[field]
            # Noise, so that the whole is not compressed too well.
            noise = b'"noise":"' + random.Random(1).randbytes(120_000).hex().encode() + b'",'
            body = b'{"text":"x",' + noise + begin + value * ((15 * MIB) // len(value)) + end + b"}"
            headers = [("content-type", b"application/json"), ("content-encoding", b"gzip")]
            record = ConsumerRecord("documents", 0, 0, 0, None, gzip.compress(body, 1), headers)
            limits = DocumentLimits(fields=parse_field_map(fields))
            assert longest_hold(tried(partial(parse_record, record, limits)), HOLD_SECONDS) <= HOLD_SECONDS


@pytest.mark.parametrize("junk", JUNK)
def test_a_record_of_junk_lets_others_run(junk: str) -> None:
    body = filled(JUNK[junk], 4 * MIB)
    for kind in ("application/json", "text/plain", "text/html"):
        declared = f"{kind}; charset=cp1252".encode()
        headers = [("content-type", declared), ("nearstream-url", b"https://a.example/1")]
        record = ConsumerRecord("documents", 0, 0, 0, None, body, headers)
        work = tried(partial(parse_record, record, DocumentLimits()))
        assert longest_hold(work, HOLD_SECONDS) <= HOLD_SECONDS, kind


@pytest.mark.parametrize("junk", JUNK)
def test_signing_junk_lets_others_run(junk: str) -> None:
    text = decode(filled(JUNK[junk], MIB)).text[:MIB]
    document = Document(id="junk", text=text, observed_at=datetime(2026, 3, 2, tzinfo=UTC))
    for label in ("fine", "mail"):
        work = tried(partial(Signer(preset(label, KEY), KEY).sign, document))
        assert longest_hold(work, HOLD_SECONDS) <= HOLD_SECONDS, label
