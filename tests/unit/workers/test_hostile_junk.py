"""Junk of strangers never holds the interpreter for long, so that others get their answers meanwhile."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from nearstream.schemas.codec import InvalidMessageError
from nearstream.schemas.document import Document
from nearstream.schemas.record import ConsumerRecord
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.ingest.defaults import DocumentLimits
from nearstream.streams.ingest.parse import parse_record
from nearstream.streams.signing.scheme import preset
from nearstream.streams.signing.signer import Signer
from nearstream.workers.crawl.html_processes import HtmlProcesses
from nearstream.workers.mail.message import read_message
from tests.support.holding import longest_hold

KEY = HashKey.public()
HOLD_SECONDS = 0.15
MIB = 1024 * 1024
JUNK = {
    "types of content": b"content-type:" * 19 + b"\n",
    "folded types": b"content-type: a;\n b=c;\n",
    "dispositions": b"content-disposition : ",
    "boundaries": b"boundary",
    "declared boundaries": b"boundary*0 = ",
    "parts": b"--x\ncontent-type: multipart/mixed; boundary=x\n\n",
    "parameters": b"; a=b",
    "delimiters": b"\n--xy",
    "lines of base64": b"QUJD" * 19 + b"\n",
    "padding": b"=A",
    "escapes": b"=C3=A9=\n",
    "encoded words": b"=?utf-8?q?a?= ",
    "ends of lines": b"\n\r",
    "fields": b"x: y\n",
    "digits": b"1 ",
    "tokens": b"a1b2c3d4-",
    "greetings": b"dear a b c, ",
    "hosts": b"www.",
    "urls": b"http://a/b ",
    "addresses": b"a@",
    "tags": b"<a href=",
    "open brackets": b"<",
    "entities": b"&amp;",
    "links": b"<link rel=",
    "braces": b'{"a":',
    "brackets": b"[",
    "backslashes": b"\\u0041",
    "no UTF-8": b"\xff\xfe",
    "zeros": b"\0",
}
HEADS = [
    b"",
    b"From: a@x.example\nMessage-ID: <1@x>\nContent-Type: text/plain\n\n",
    b"Content-Type: multipart/mixed; boundary=x\n\n--x\nContent-Transfer-Encoding: base64\n\n",
    b"Content-Type: image/png\nContent-Transfer-Encoding: quoted-printable\n\n",
]


@pytest.fixture(scope="module")
def html() -> Iterator[HtmlProcesses]:
    with HtmlProcesses(deadline_seconds=1, start_seconds=60) as processes:
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


@pytest.mark.parametrize("size", [MIB, 16 * MIB - 200])
@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("junk", JUNK)
def test_a_mail_of_junk_lets_others_run(junk: str, head: bytes, size: int, html: HtmlProcesses) -> None:
    raw = head + filled(JUNK[junk], size)
    work = tried(lambda: read_message(raw, datetime.now(UTC), KEY, html))
    assert longest_hold(work, HOLD_SECONDS) <= HOLD_SECONDS


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "text/html"])
@pytest.mark.parametrize("junk", JUNK)
def test_a_record_of_junk_lets_others_run(junk: str, kind: str) -> None:
    headers = [("content-type", kind.encode()), ("nearstream-url", b"https://a.example/1")]
    record = ConsumerRecord("documents", 0, 0, 0, None, filled(JUNK[junk], 4 * MIB), headers)
    assert longest_hold(tried(lambda: parse_record(record, DocumentLimits())), HOLD_SECONDS) <= HOLD_SECONDS


@pytest.mark.parametrize("label", ["dense", "mail", "noise"])
@pytest.mark.parametrize("junk", JUNK)
def test_signing_junk_lets_others_run(junk: str, label: str) -> None:
    signer = Signer(preset(label, KEY), KEY)
    text = filled(JUNK[junk], MIB).decode("latin-1")
    document = Document(id="junk", text=text, observed_at=datetime(2026, 3, 2, tzinfo=UTC))
    assert longest_hold(tried(lambda: signer.sign(document)), HOLD_SECONDS) <= HOLD_SECONDS
