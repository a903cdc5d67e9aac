"""A text is read, however its structure is broken, and what is no text counts by its bytes."""

import time
from base64 import encodebytes
from collections.abc import Callable
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.workers.crawl.html_processes import HtmlProcesses
from nearstream.workers.mail import message as message_module
from nearstream.workers.mail.body import Body, read_body
from nearstream.workers.mail.headers import read_head
from nearstream.workers.mail.message import Mail, read_message
from nearstream.workers.mail.structure import Part
from tests.unit.workers.mail.test_message import RECEIVED

KEY = HashKey.public()
TEXT = "The harbour office will close its north gate on Tuesday because the crane needs a new cable."
HTML = f"<p>{TEXT}</p>"
PACKED = encodebytes(HTML.encode()).decode()


def read(header: str, content: str, processes: HtmlProcesses) -> Body:
    return read_body(f"From: a@x.example\nSubject: Hello\n{header}\n\n{content}\n".encode(), processes)


def parts(boundary: str, *inner: str, end: str = "--") -> str:
    return "".join(f"--{boundary}\n{part}\n" for part in inner) + f"--{boundary}{end}"


PLAIN_AND_RICH = f"Content-Type: text/plain\n\n{TEXT}", f"Content-Type: text/html\n\n{HTML}"
PARTED = parts("=_b.1", *PLAIN_AND_RICH)
BROKEN = {
    "html without a semicolon": ("Content-Type: text/html charset=utf-8", HTML),
    "quotes around it": ('Content-Type: "text/html"', HTML),
    "only one word": ("Content-Type: html", HTML),
    "a slash too many": ("Content-Type: text/plain/charset=utf-8", TEXT),
    "markdown": ("Content-Type: text/markdown", TEXT),
    "enriched": ("Content-Type: text/enriched", f"<bold>{TEXT}</bold><param>red</param>"),
    "html of an unknown kind": ("Content-Type: text/x-web; charset=utf-8", HTML),
    "a type that is none": ("Content-Type: x-unknown/text", TEXT),
    "a text that is said to be anything": ("Content-Type: application/octet-stream; name=body", TEXT),
    "a text of an unknown application": ("Content-Type: application/x-words", TEXT),
    "a part of a message": ("Content-Type: message/partial; id=1; number=1", f"Subject: inner\n\n{TEXT}"),
    "html of an application": ("Content-Type: application/html\nContent-Transfer-Encoding: base64", PACKED),
    "a boundary in wrong quotes": ("Content-Type: multipart/mixed; boundary='b'", parts("b", f"\n{TEXT}")),
    "no boundary and no headers": ("Content-Type: multipart/mixed", "-----\n\n" + parts("--b", f"\n{TEXT}")),
    "xhtml": ("Content-Type: application/xhtml+xml", HTML),
    "an attachment": ("Content-Type: text/plain\nContent-Disposition: attachment; filename=a.txt", TEXT),
    "a part that is an attachment": (
        "Content-Type: multipart/mixed; boundary=b",
        parts("b", f"Content-Type: text/plain\nContent-Disposition: attachment\n\n{TEXT}"),
    ),
    "a message of another kind": ("Content-Type: message/global", f"Subject: inner\n\n{TEXT}"),
    "no boundary": ("Content-Type: multipart/alternative", PARTED),
    "an empty boundary": ('Content-Type: multipart/alternative; boundary=""', PARTED),
    "a boundary in other case": ('Content-Type: multipart/alternative; boundary="=_B.1"', PARTED),
    "a boundary behind a blank line": ("Content-Type: multipart/alternative;\n\nboundary==_b.1", "\n" + PARTED),
    "a text in place of parts": ("Content-Type: multipart/mixed; boundary=b", TEXT),
    "html in place of parts": ("Content-Type: multipart/mixed; boundary=b", HTML),
    "a line that is no field": ("X of no field\nContent-Type: text/html", HTML),
    "html that is said to be mixed": ("Content-Type: mixed", HTML),
    "a broken part of a sound message": (
        "Content-Type: multipart/mixed; boundary=b",
        parts("b", f"Content-Type: multipart/alternative; boundary=other\n\n{PARTED}"),
    ),
    "one boundary of two multiparts": (
        "Content-Type: multipart/mixed; boundary=b",
        "--b\nContent-Type: multipart/alternative; boundary=b\n\n"
        + parts("b", "Content-Type: text/plain\n\n")
        + "\n\n"
        + parts("b", f"Content-Type: text/html\n\n{HTML}"),
    ),
    "base64 around the parts": (
        "Content-Type: multipart/alternative; boundary=other\nContent-Transfer-Encoding: base64",
        encodebytes(PARTED.encode()).decode(),
    ),
}
# What was sent wrongly, but is read as if it had not been.
SOUND = {
    "a boundary on a line of its own": ("Content-Type: multipart/alternative;\nboundary==_b.1", PARTED),
    "no end": ("Content-Type: multipart/alternative; boundary==_b.1", parts("=_b.1", *PLAIN_AND_RICH, end="")),
    "no end and no line": ("Content-Type: multipart/alternative; boundary==_b.1", PARTED[:-10]),
    "blanks behind the boundary": (
        "Content-Type: multipart/alternative; boundary==_b.1",
        parts("=_b.1 \t", *PLAIN_AND_RICH, end=""),
    ),
    "a part without a header": ("Content-Type: multipart/mixed; boundary=b", parts("b", f"\n{TEXT}")),
    "a part without a blank line": ("Content-Type: multipart/mixed; boundary=b", parts("b", TEXT)),
    "a forwarded message": ("Content-Type: message/rfc822", f"Subject: inner\n\n{TEXT}"),
    "a forwarded message in base64": (
        "Content-Type: message/rfc822\nContent-Transfer-Encoding: base64",
        encodebytes(f"Subject: inner\n\n{TEXT}".encode()).decode(),
    ),
    "a digest": ("Content-Type: multipart/digest; boundary=b", parts("b", f"\nSubject: inner\n\n{TEXT}")),
    "a boundary like another": (
        "Content-Type: multipart/mixed; boundary=b",
        parts("b", "Content-Type: multipart/alternative; boundary=bb\n\n" + parts("bb", *PLAIN_AND_RICH)),
    ),
}


def test_a_text_is_read_whatever_is_broken_and_the_document_says_so(processes: HtmlProcesses) -> None:
    for messages, degraded in ((BROKEN, {"structure_repaired"}), (SOUND, set())):
        for name, (header, content) in messages.items():
            for end in ["\n", "\r\n", "\r"]:
                found = read(header.replace("\n", end), content.replace("\n", end), processes)
                assert (name, found.text.split()) == (name, TEXT.split())
                assert (name, found.degraded, found.unread) == (name, degraded, ())


def test_of_alternatives_the_last_with_a_text_is_read(processes: HtmlProcesses) -> None:
    for last, text in ((HTML, TEXT), ("<img src=x>", "plain")):
        content = parts("b", "\nplain", f"Content-Type: text/html\n\n{last}")
        assert read("Content-Type: multipart/alternative; boundary=b", content, processes).text == text


def mail(header: str, content: str, processes: HtmlProcesses, subject: str = "Hello", number: int = 1) -> Mail:
    raw = f"From: a@x.example\nMessage-ID: <{number}@x>\nSubject: {subject}\n{header}\n\n{content}\n"
    return read_message(raw.encode(), RECEIVED, KEY, processes)


WORDLESS = {
    "encrypted": ("Content-Type: application/pkcs7-mime; name=smime.p7m\nContent-Transfer-Encoding: base64", "{}"),
    "a scan": (
        "Content-Type: multipart/mixed; boundary=b",
        "--b\nContent-Type: text/plain\n\n\n--b\nContent-Type: application/pdf; name=a.pdf\n"
        "Content-Disposition: attachment\nContent-Transfer-Encoding: base64\n\n{}\n--b--",
    ),
    "encrypted by PGP": (
        "Content-Type: multipart/encrypted; boundary=b",
        "--b\nContent-Type: application/pgp-encrypted\n\nVersion: 1\n--b\nContent-Type: application/octet-stream\n\n"
        "-----BEGIN PGP MESSAGE-----\nVersion: GnuPG v2 (GNU/Linux)\nComment: Using GnuPG with a mail program - x\n\n"
        "{}\n-----END PGP MESSAGE-----\n--b--",
    ),
    "a photo in html": (
        "Content-Type: multipart/related; boundary=b",
        "--b\nContent-Type: text/html\n\n<img src=cid:1>\n--b\nContent-Type: image/png\nContent-ID: <1>\n"
        "Content-Transfer-Encoding: base64\n\n{}\n--b--",
    ),
    "a message for a machine": (
        "Content-Type: multipart/mixed; boundary=b",
        "--b\nContent-Type: message/delivery-status\n\nStatus: 5.1.1\nFinal-Recipient: {}\n--b--",
    ),
}


def test_messages_without_words_are_copies_only_with_equal_contents(processes: HtmlProcesses) -> None:
    one, two = (encodebytes(byte * 200).decode() for byte in (b"\1", b"\2"))
    for header, content in WORDLESS.values():
        first = mail(header, content.format(one), processes)
        assert first.degraded == ("content_unread",)
        again = mail(header, content.format(one.replace("\n", "\r\n")), processes, number=2)
        assert again.document.text == first.document.text
        for other in (
            mail(header, content.format(two), processes),
            mail(header, content.format(one), processes, "Other"),
            mail("X: y", "", processes),
        ):
            assert other.document.text != first.document.text


def test_the_order_of_attachments_and_signatures_of_a_message_do_not_count(processes: HtmlProcesses) -> None:
    def message(*contents: str) -> str | None:
        inner = [f"Content-Type: image/png\n\n{content}" for content in contents]
        signature = f"Content-Type: application/pgp-signature\n\n{''.join(contents)}"
        return mail("Content-Type: multipart/mixed; boundary=b", parts("b", *inner, signature), processes).document.text

    assert message("one", "two") == message("two", "one") != message("one")
    elsewhere = 'Content-Type: message/external-body; access-type=URL; URL="https://a.example"'
    assert not mail(elsewhere, "X: y", processes).document.text
    assert message(*map(str, range(100))) != message(*map(str, range(1, 101)))


def test_attachments_are_told_apart_by_each_byte_and_read_in_time_or_not_at_all(processes: HtmlProcesses) -> None:
    def found(content: bytes, until: float = inf, text: str = TEXT) -> Mail:
        packed = encodebytes(content).decode()
        pdf = f"Content-Type: application/pdf\nContent-Transfer-Encoding: base64\n\n{packed}"
        raw = f"Subject: Hello\nContent-Type: multipart/mixed; boundary=b\n\n{parts('b', chr(10) + text, pdf)}".encode()
        return read_message(raw, RECEIVED, KEY, processes, until=until)

    def label(mail: Mail) -> str | None:
        return mail.document.labels.get("attachments")

    large = bytes(range(256)) * 8_000
    other = large[:1_000_000] + b"x" + large[1_000_001:]
    assert found(large).degraded == ()  # beside words nobody misses an attachment
    assert label(found(large)) == label(found(large)) != label(found(other))
    assert label(found(large, until=0)) == "unread"
    assert label(found(large, until=0, text="short")) == label(found(large))


def test_headers_say_what_programs_mean() -> None:
    for header, kind, label in [
        (b"Content-Type: text/html;charset=utf-8", "text/html", "utf-8"),
        (b"content-type : TEXT/HTML; x=y; Charset = 'koi8-r'", "text/html", "koi8-r"),
        (b"Content-Type: text/plain; charset*=us-ascii'en'utf-8", "text/plain", "utf-8"),
        (b"X-Content-Type: text/html\nSubject: content-type: image/png", "text/plain", ""),
        (b"Content-Type:", "text/plain", ""),
        (b"Content-Type: application; x=y", "application/octet-stream", ""),
        (b"Content-Type: text/plain\r\n ;charset=utf-8\r\nContent-Type: text/html", "text/plain", "utf-8"),
    ]:
        head = read_head(header)
        assert (head.kind, head.label) == (kind, label)


SCAN = bytes(range(256)) * (25 * 4096)  # 25 MiB


def part(content: bytes, encoding: bytes = b"") -> Part:
    head = b"Content-Type: application/pdf\nContent-Transfer-Encoding: " + encoding + b"\n\n"
    return Part(read_head(head, "text/plain"), content)


@given(
    st.binary(max_size=60).map(lambda content: content.translate(bytes(b"\r\n\nab"[each % 5] for each in range(256))))
)
def test_line_ends_of_an_attachment_count_alike_wherever_its_blocks_end(content: bytes) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(message_module, "_BLOCK_BYTES", 3)
        in_blocks = message_module.digests([part(content)], KEY)
    assert in_blocks == message_module.digests([part(content)], KEY)
    assert bool(in_blocks) == bool(content.replace(b"\r", b"").strip(b"\n"))


LONG: dict[str, tuple[Callable[[], bytes], bytes]] = {  # made by the test, because they are large
    "junk behind it": (lambda: encodebytes(SCAN) + b"\0\xff", b"base64"),  # no block of it can be decoded alone
    "no base64": (lambda: SCAN, b"base64"),
    "quoted": (lambda: SCAN, b"quoted-printable"),
    "line ends": (lambda: b"\r\n" * 12_000_000, b"8bit"),
}


@pytest.mark.parametrize("name", LONG)
def test_no_attachment_is_read_for_longer_than_there_is_time(name: str) -> None:
    make, encoding = LONG[name]
    attached, began = part(make(), encoding), time.thread_time()
    message_module.digests([attached], KEY, time.monotonic() + 0.01)
    assert time.thread_time() - began < 0.1
    assert message_module.digests([attached], KEY, inf) is not None
