"""Messages become documents, whatever is in them."""

import time
from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from nearstream.schemas.documents.record import ConsumerRecord
from nearstream.schemas.topics.codec import InvalidMessageError
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.ingest.defaults import DocumentLimits
from nearstream.streams.ingest.parse import ParsedDocument, parse_record
from nearstream.workers.crawl.html_processes import HtmlProcesses
from nearstream.workers.files.mail import mail_record
from nearstream.workers.mail.body import TEXT_MAX_BYTES
from nearstream.workers.mail.headers import address_hash
from nearstream.workers.mail.message import MESSAGE_MAX_BYTES, Mail, MailRules, own_words, read_message

KEY = HashKey.public()
NO_HTML = HtmlProcesses(0, deadline_seconds=0)
RECEIVED = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
RUSSIAN = "Северные ворота порта будут закрыты во вторник из-за замены троса."
BODY = "The bridge over the river is closed from Monday until further notice.\n"
HEADERS = (
    'From: Anna <Anna@A.example>\r\nTo: b@b.example, "C, D" <c@c.example>\r\nCc: b@B.example\r\n'
    "Message-ID: <12@a.example>\r\nDate: Mon, 2 Mar 2026 09:15:00 +0100\r\nSubject: The bridge\r\n"
)


def plain(raw: bytes | str) -> Mail:
    """Read a message that has no HTML to parse."""
    data = raw if isinstance(raw, bytes) else raw.encode()
    return read_message(data, RECEIVED, KEY, NO_HTML)


def with_header(name: str, value: bytes, text: str = BODY) -> Mail:
    """Read a message whose one header of this name has the value."""
    lines = [line for line in HEADERS.encode().splitlines(keepends=True) if not line.startswith(name.encode())]
    return plain(b"".join((*lines, name.encode(), b": ", value, b"\r\n\r\n", text.encode())))


def multipart(*parts: str) -> str:
    inner = "".join(f"--x\r\n{part}\r\n" for part in parts)
    return f"Content-Type: multipart/mixed; boundary=x\r\n\r\n{inner}--x--\r\n"


def test_a_message_becomes_a_document() -> None:
    mail = plain(HEADERS + "\r\n" + BODY)
    document = mail.document
    assert (document.id, document.text, document.source) == ("<12@a.example>", BODY, "mail")
    assert document.observed_at == datetime(2026, 3, 2, 8, 15, tzinfo=UTC)
    assert document.lineage is None
    assert mail.subject == "The bridge"
    assert mail.degraded == ()


def test_addresses_are_known_as_keyed_hashes_only() -> None:
    secret = HashKey.from_secret(b"of this deployment")
    document = read_message((HEADERS + "\r\n" + BODY).encode(), RECEIVED, secret, NO_HTML).document
    assert document.sender_hash == address_hash("anna@a.example", secret)
    expected = sorted([address_hash("b@b.example", secret), address_hash("c@c.example", secret)])
    assert document.recipient_hashes == tuple(expected)
    assert address_hash("anna@a.example", HashKey.from_secret(b"another")) != document.sender_hash
    public = plain(HEADERS + "\r\n" + BODY).document
    assert (public.sender_hash, public.recipient_hashes) == (None, ())
    addresses = [f"r{number}@a.example" for number in range(100)]
    document = read_message(f"To: {', '.join(addresses)}\r\n\r\n{BODY}".encode(), RECEIVED, secret, NO_HTML).document
    assert document.recipient_hashes == tuple(sorted(address_hash(one, secret) for one in addresses[:64]))


# Odd headers are read alike by every Python, because workers of two versions read one topic.
SUBJECTS = (
    (b"=?iso-8859-1?b?Y2Fm6Q==?=", "caf\xe9"),
    (b"=?utf-8?b?A?= text", "=?utf-8?b?A?= text"),
    (b"folded\r\n over two lines", "folded  over two lines"),
    (b"=?utf-8?q?a?==?utf-8?q?b?=", "ab"),
    (b"=?iso-2022-jp?B?GyRCRnxLXA==?=", "\u65e5\u672c"),
    (b"=?x-unknown?q?=E4?=", "\xe4"),
    (b"=?utf-8*en?q?a?=", "a"),
    (b"=?utf-8?q?=?=", "="),
    (b"caf\xc3\xa9 =?utf-8?q?a?=", "caf\xe9 a"),
    (b"a\r\n\tb", "a \tb"),
    (b"\x85a\x0bb\x0cc\x1cd\x1de\x1ef", "\u2026a\x0bb\x0cc\x1cd\x1de\x1ef"),
    (b"=?utf-8?B?8J+YgA==?= =?utf-8?B?8J+Y?= =?utf-8?B?gA==?=", "\U0001f600\U0001f600"),
)
# The time that is read, or None if the time is that of the arrival.
DATES = (
    (b"Mon, 2 Mar 26 08:15:00 EST", "02 13:15"),
    (b"Tue, 3 Mar 2026 08:00:00 -0000", "03 08:00"),
    (b"Mon Mar  2 08:15:00 2026", "02 08:15"),
    (b"02 Mar 2026 08:15:00 +01:00", "02 08:15"),
    (b"Mon, 2 Mar 2026 08:15:00 PM +0100", "02 08:15"),
    (b"Mon, 2 Mar 2026 08:15:00 -00:00", "02 08:15"),
    (b"Mon, 2 Mar 2026 08:15:00 +0_1_0", "02 08:05"),
    (b"Mon, 2 Mar 2026 08:15:00 +0100 (c (d) e", "02 07:15"),
    (b"Mon, 2-Mar-2026 08:15:00 +0100 (CET)", None),
    (b"Mon, 2 Mar 2026 08:15:60 +0100", None),
    (b"Mon, 2 Mar 2026 08:15:00.123 +0100", None),
    (b"Mon, 2 Mar 1969 09:15:00 +0100", None),
    (b"Mon, 5 Mar 2026 09:15:00 +0100", None),
    *((value, None) for value in (b"", b"yesterday", b"0 0 0", b"9" * 5000)),
)
NO_IDS = (b"", b"no brackets@a.example", b"<>", b"<" + b"a" * 600 + b">", b"<a b@c>", b"< 1@a >")
IDS = (
    (b"<1@a> <2@a>", "<1@a>"),
    (b"\r\n <1@a>", "<1@a>"),
    (b"<1@a>\r<2@a>", "<1@a>"),
    (b"<[1@a]@b>", "<[1@a]@b>"),
)


def test_a_subject_a_date_and_an_id_are_read_tolerantly() -> None:
    for value, subject in SUBJECTS:
        assert with_header("Subject", value).subject == subject
    for value, clock in DATES:
        sent_at = with_header("Date", value).document.observed_at
        assert sent_at is not None
        assert (None if sent_at == RECEIVED else sent_at.strftime("%d %H:%M")) == clock
    for value, name in IDS:
        assert with_header("Message-ID", value).document.id == name
    for value in NO_IDS:  # in place of which one is derived from the whole message
        found = [with_header("Message-ID", value, text).document.id for text in (BODY, BODY, f"{BODY}more")]
        assert found[0] == found[1] != found[2]
        assert len(found[0] or "") == 32


def test_texts_are_decoded_tolerantly() -> None:
    for headers, content, text, degraded in [
        ("Content-Type: text/plain; charset=iso-8859-1\r\n", b"caf\xe9", "café", ()),
        ("Content-Type: text/plain; charset=utf-8\r\n", b"caf\xff \xc3\xa9", "caf\ufffd é", ("charset_replaced",)),
        ("", b"ca\xc2\xadf\xe2\x80\x8be", "cafe", ()),
    ]:
        mail = plain(f"{HEADERS}{headers}\r\n".encode() + content + b"\n" + BODY.encode())
        assert (mail.document.text, mail.degraded) == (f"{text}\n{BODY}", degraded)


def test_without_the_parser_tags_are_stripped_and_the_document_says_so() -> None:
    russian = '<meta http-equiv="Content-Type" content="text/html; charset=windows-1251"><p>' + RUSSIAN
    for content_type, content, encoding, text in [
        ("text/html", russian, "cp1251", RUSSIAN),
        ("text/html; charset=koi8-r", russian, "koi8-r", RUSSIAN),
        ("text/html", f"<p>{BODY}", "ascii", BODY.strip()),
    ]:
        mail = plain(f"{HEADERS}Content-Type: {content_type}\r\n\r\n".encode() + content.encode(encoding))
        assert ((mail.document.text or "").strip(), mail.degraded) == (text, ("extraction_fallback",))


def test_attachments_are_left_out_and_forwarded_messages_read() -> None:
    parts = (
        f"\r\n{BODY}",
        "Content-Type: text/plain\r\nContent-Disposition: attachment\r\n\r\nattached",
        "Content-Type: application/pdf\r\n\r\n%PDF",
        "Content-Type: message/rfc822\r\n\r\nSubject: inner\r\n\r\nforwarded",
        "Content-Type: message/delivery-status\r\n\r\nReporting-MTA: x\r\n\r\nAction: failed",
    )
    assert plain(HEADERS + multipart(*parts)).document.text == f"{BODY}\nforwarded"


def test_short_messages_are_copies_only_under_one_subject() -> None:
    def short(subject: str, content: str) -> str:
        return plain(f"Subject: {subject}\r\n\r\n{content}").document.text or ""

    thanks = short("Re: the bridge", "Thank you!")
    assert thanks == short("re: The Bridge", "thank you")
    assert thanks not in (short("Re: the ferry", "Thank you!"), short("Re: the bridge", "No, thank you!"))
    assert "bridge" not in thanks
    assert short("a b", "c") != short("a", "b c")
    assert short("Your code", "It is 123456.") == short("Your code", "It is 98765.")
    assert short("Re: the bridge", "Yes\n-- \nAnna Bell") == short("Re: the bridge", "yes\n-- \nAnna Bell")
    # A message with nothing but its subject has no text, and notices are no reason to compare nothing.
    notice = "If you are not the intended recipient, delete this e-mail."
    alone = [short(subject, each) for each in ("-- \nAnna Bell, Long Quay 14", notice) for subject in ("a", "b", "A")]
    assert (short("Re: the bridge", "  "), len({*alone})) == ("", 4)


def test_messages_without_bytes_or_with_too_many_are_refused() -> None:
    for raw, reason in ((b"", "empty_value"), (bytes(MESSAGE_MAX_BYTES + 1), "too_large")):
        with pytest.raises(InvalidMessageError) as refusal:
            plain(raw)
        assert refusal.value.reason == reason


def nested(levels: int) -> bytes:
    heads = (f"Content-Type: multipart/mixed; boundary=b{level}\r\n\r\n--b{level}\r\n" for level in range(levels))
    return (HEADERS + "".join(heads) + "\r\n" + BODY).encode()


_MIXED = (HEADERS + "Content-Type: multipart/mixed; boundary=x\r\n\r\n").encode()
_IN_BASE64 = b"Content-Type: message/rfc822\r\nContent-Transfer-Encoding: base64\r\n\r\n"
BOMBS: dict[str, tuple[Callable[[], bytes], tuple[str, ...] | None]] = {  # made by the test, because some are large
    "20,000 parts": (lambda: _MIXED + b"--x\r\n\r\npart of many words\r\n" * 20_000, ("truncated",)),
    "2,000 levels": (lambda: nested(2_000), ("parse_fallback",)),
    "3,000 messages in messages": (lambda: HEADERS.encode() + b"Content-Type: message/rfc822\r\n\r\n" * 3_000, None),
    "lines": (lambda: HEADERS.encode() + b"\r\n" + b"\n" * 16_000_000, ("truncated",)),
    "long headers": (lambda: b"a: b\r\n" * 50_000 + b"\r\n" + BODY.encode(), ("parse_fallback",)),
    "boundaries that are none": (lambda: _MIXED + b"--xx\r\n" * 2_000_000, ("structure_repaired", "truncated")),
    "delimiters in levels": (lambda: nested(90) + b"\r\n--b1x" * 1_500_000, ("structure_repaired", "truncated")),
    "messages in base64": (lambda: _IN_BASE64 * 20_000 + b"QQ==" * 3_000_000, None),
    "headers of a part": (lambda: _MIXED + b"--x\r\n" + b"a:b\r\n" * 290_000 + b"\r\nbody", None),
    "addresses": (lambda: b"To: " + b"a@b.example, " * 18_000 + b"(" * 20_000 + b"\r\n\r\n" + BODY.encode(), ()),
    "base64": (
        lambda: HEADERS.encode() + b"Content-Transfer-Encoding: base64\r\n\r\n" + b"A" * 15_000_000,
        ("truncated",),  # control characters are no text
    ),
}


def test_texts_that_nobody_reads_make_no_two_mails_equal() -> None:
    sent = [b64encode(bytes(f"{word} and other words of a mail " * 12, "ascii")).decode() for word in ("tea", "war")]
    quoted = ["\n".join(f"> {one[at : at + 76]}" for at in range(0, len(one), 76)) for one in sent]
    first, second = (plain(f"{HEADERS}\n{one}\n".encode()) for one in quoted)
    assert first.document.text != second.document.text
    assert first.degraded == second.degraded == ("content_unread",)
    assert first.document.text == plain(f"{HEADERS}\n{quoted[0]}\n".encode()).document.text


def test_links_and_pictures_alone_are_no_text() -> None:
    content = "Content-Type: text/html\n\n<a href='https://a.example/1'><img src='https://a.example/1.png'></a>"
    assert not (plain(f"{HEADERS}Subject: Re: Offer\n{content}\n\n".encode()).document.text or "").strip()


@pytest.mark.parametrize("name", BOMBS)
def test_b48_bombs_are_read_within_bounds(name: str) -> None:
    make, degraded = BOMBS[name]
    raw, started = make(), time.process_time()
    mail = plain(raw)
    assert time.process_time() - started < 20  # measured: at most 2 s
    assert len((mail.document.text or "").encode()) <= TEXT_MAX_BYTES
    if degraded is not None:
        assert mail.degraded == degraded


WORDS = "We can meet on Tuesday at ten o'clock, in the small room on the second floor.\n"
REPLY = f"{WORDS}\n> Shall we meet on Tuesday?\n>> When do you have time?\n >quoted\nUntil then\n-- \nAnna\n+49 123\n"
OWN = f"{WORDS}\nUntil then\n"
THREADS = (
    ("Message-ID: <3@a>\nIn-Reply-To: <2@a>\nReferences: <1@a> <2@a>\n", "thread", ("<1@a>", OWN)),
    ("Message-ID: <3@a>\nIn-Reply-To: <2@a>\n", "thread", ("<2@a>", OWN)),
    ("Message-ID: <3@a>\nReferences: none\n", "thread", ("<3@a>", OWN)),
    ("References: <>\n", "thread", (None, OWN)),
    ("Message-ID: <3@a>\nReferences: <1@a>\n", "whole", (None, REPLY)),
)


def test_n22_control_characters_are_no_part_of_a_text_and_its_record_is_one_that_a_worker_takes() -> None:
    controls = "".join(map(chr, (*range(1, 9), *range(14, 32), *range(127, 133), *range(134, 160))))
    text = f"{controls} {BODY[:10]}{controls}{BODY[10:]}"
    mail = plain(f"{HEADERS}Content-Type: text/plain; charset=utf-8\r\n\r\n{text}")
    assert (mail.document.text or "").strip() == BODY.strip()
    value, headers, _ = mail_record(mail.document, mail.degraded)
    parsed = parse_record(ConsumerRecord("documents", 0, 0, 1_772_439_300_000, None, value, headers), DocumentLimits())
    assert isinstance(parsed, ParsedDocument)
    assert parsed.document.text == mail.document.text


def test_of_a_thread_own_words_are_read_and_the_lineage_is_its_first_message() -> None:
    for headers, content, told in THREADS:
        raw = f"From: a@a.example\n{headers}\n{REPLY}".encode()
        found = read_message(raw, RECEIVED, KEY, NO_HTML, rules=MailRules(content)).document
        assert (found.lineage, found.text) == told
    assert own_words(REPLY.replace("\n", "\r\n")).split() == OWN.split()
    assert own_words("a -- b > c\n--\n") == "a -- b > c\n"
    assert own_words("") == ""


def test_a_header_is_found_behind_what_does_not_belong_to_it() -> None:
    lines = (b"Message-ID: <1@a>", b"a line of no field", b"Content-Type: text/html", b"", f"<p>{BODY}".encode(), b"")
    for end in [b"\r\n", b"\r\r\n", b"\n"]:
        for before in [b"\r\n\r\n", b"\xef\xbb\xbf", b">From a@b Mon Mar  2 08:15:00 2026\r\n", b"\nFrom: a@x\n"]:
            found = plain(before + end.join(lines))
            assert (found.document.id, (found.document.text or "").strip()) == ("<1@a>", BODY.strip())
            assert "structure_repaired" in found.degraded
