"""No bytes break the reading of mail, and equal bytes give equal documents."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.workers.crawl.html_processes import HtmlProcesses
from nearstream.workers.crawl.html_text import _pieces_apart, _shortened, strip_tags
from nearstream.workers.mail.body import TEXT_MAX_BYTES
from nearstream.workers.mail.message import read_message

KEY = HashKey.public()
RECEIVED = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
NO_PROCESSES = HtmlProcesses(0, deadline_seconds=0)
PIECES = st.sampled_from(
    [
        *(
            b"From: ",
            b"To: a@b.example",
            b"Subject: ",
            b"=?utf-8?q?=C3?=",
            b"=?x?b?",
            b"?=",
            b"Date: ",
            b"Message-ID: <",
        ),
        *(
            b"Mon, 2 Mar 2026 09:15:00 +0100",
            b"-9999",
            b">",
            b"\r\n",
            b"\n",
            b"\r",
            b"\r\n\r\n",
            b" ",
            b"\t",
            b"\0",
            b"\xff",
        ),
        *(
            b"Content-Type: ",
            b"multipart/mixed; boundary=x",
            b"multipart/alternative; boundary*0=x",
            b"text/html",
            b"text/plain",
        ),
        *(
            b"; charset=",
            b"utf-16",
            b"utf-7",
            b"idna",
            b"undefined",
            b'"',
            b"--x",
            b"--x--",
            b"message/rfc822",
            b"begin 644 a",
        ),
        *(
            b"Content-Transfer-Encoding: ",
            b"base64",
            b"quoted-printable",
            b"x-uuencode",
            b"=3D",
            b"A",
            b"words of a text",
        ),
        *(
            b"<div style='display:none'>",
            b"</div>",
            b"<!--",
            b"<script",
            b"&#99999999;",
            b"&amp;",
            b"utf-8''%ff",
            b"*=",
            b"*1*=",
        ),
    ]
)


@given(st.lists(PIECES | st.binary(max_size=8), min_size=1, max_size=80).map(b"".join).filter(bool))
def test_any_bytes_are_read_and_alike_each_time(raw: bytes) -> None:
    mail = read_message(raw, RECEIVED, KEY, NO_PROCESSES)
    assert mail == read_message(raw, RECEIVED, KEY, NO_PROCESSES)
    assert mail.document.id
    assert mail.document.observed_at
    assert len((mail.document.text or "").encode()) <= TEXT_MAX_BYTES
    known = {"charset_replaced", "content_unread", "extraction_fallback", "parse_fallback", "structure_repaired"}
    assert set(mail.degraded) <= known | {"truncated"}


LONG = "x" * 4_096
# What a browser shows nothing of, whatever it looks like.
UNSEEN = st.sampled_from(
    [
        *(
            "<!---->",
            "<!-->",
            "<!--->",
            "<!-- <p> -- > --!>",
            "<!-- <!-- -->",
            "<script><!-- <p></script >",
            "<p id='>'>",
        ),
        *(
            "<style>p > a {}</style>",
            "<title><b></TITLE>",
            "<a title='<!--'>",
            '<a title="<script>">',
            "<br/>",
            "<p = x>",
        ),
        *(
            "<a b=it's>",
            "<?xml?>",
            "<!doctype a>",
            "</p x='>'>",
            f"<img src='data:,<p>{LONG}'>",
            f"<i id={LONG}>",
        ),
        *(
            f"<style>a {{src: url({LONG})}}</style>",
            "<script></scripts></script>",
            "<STYLE a='</style>'></style>",
            " " * 99,
        ),
    ]
)


@given(st.lists(UNSEEN, max_size=40))
def test_no_markup_hides_text(pieces: list[str]) -> None:
    source = "".join(f"{piece} w{number} " for number, piece in enumerate(pieces))
    words = [f"w{number}" for number in range(len(pieces))]
    assert strip_tags(source).split() == words
    short = "".join(_shortened(*piece) for piece in _pieces_apart(source))
    assert strip_tags(short).split() == words
    assert LONG not in short


@given(st.text(alphabet="<>/!-abc =script=\"'&#;12İ", max_size=200))
def test_any_html_can_be_stripped(source: str) -> None:
    assert "<script>" not in strip_tags(source)
    short = "".join(_shortened(*piece) for piece in _pieces_apart(source))
    assert strip_tags(short).split() == strip_tags(source).split()
