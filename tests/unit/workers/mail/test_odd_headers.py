"""Odd headers are read alike by every Python, because workers of two versions read one topic."""

from datetime import UTC, datetime

from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.workers.crawl.html_processes import HtmlProcesses
from nearstream.workers.mail.message import Mail, read_message

RECEIVED = datetime(2026, 3, 2, 9, tzinfo=UTC)


def read(header: bytes) -> Mail:
    raw = header + b"\r\n\r\nThe bridge over the river is closed from Monday until further notice.\r\n"
    return read_message(raw, RECEIVED, HashKey.public(), HtmlProcesses(0, deadline_seconds=0))


SUBJECTS = (
    (b"=?utf-8?q?a?==?utf-8?q?b?=", "ab"),
    (b"=?utf-8?B?w7w=?= x", "\xfc x"),
    (b"=?iso-2022-jp?B?GyRCRnxLXA==?=", "\u65e5\u672c"),
    (b"=?x-unknown?q?=E4?=", "\xe4"),
    (b"=?utf-8*en?q?a?=", "a"),
    (b"=?utf-8?q?a b?=", "a b"),
    (b"=?utf-8?q?=?=", "="),
    (b"=?utf-8?B?a?=", "=?utf-8?B?a?="),
    (b"\xe4\xf6\xfc", "\xe4\xf6\xfc"),
    (b"caf\xc3\xa9 =?utf-8?q?a?=", "caf\xe9 a"),
    (b"a\r\n\tb", "a \tb"),
    (b"a\x00b", "a\x00b"),
    (b"\x85a\x0bb\x0cc\x1cd\x1de\x1ef", "\u2026a\x0bb\x0cc\x1cd\x1de\x1ef"),
    (b"=?utf-8?B?8J+YgA==?= =?utf-8?B?8J+Y?= =?utf-8?B?gA==?=", "\U0001f600\U0001f600"),
)
# The hour and minute on 2 March 2026, or None if the time is that of the arrival.
DATES = (
    (b"2 Mar 2026 08:15 GMT", "08:15"),
    (b"Mon, 2 Mar 26 08:15:00 EST", "13:15"),
    (b"Mon Mar  2 08:15:00 2026", "08:15"),
    (b"Mon, 2-Mar-2026 08:15:00 +0100 (CET)", None),
    (b"02 Mar 2026 08:15:00 +01:00", "08:15"),
    (b"Mon, 2 Mar 2026 08:15:60 +0100", None),
    (b"Mon, 31 Feb 2026 08:15:00 +0000", None),
    (b"Mon, 2 Mar 2026 08:15:00 PM +0100", "08:15"),
    (b"Mon, 2 Mar 2026 -8:15:00 +0000", None),
    (b"Mon, 2 Mar 2026 08:15:00 -00:00", "08:15"),
    (b"Mon, 2 Mar 2026 08:15:00.123 +0100", None),
    (b"Mon, 2 Mar 2026 08:15:00 +0_1_0", "08:05"),
    (b"Mon, 2 Mar 2026 08:15:00 +0100 (c (d) e", "07:15"),
)
IDS = (
    (b"< 1@a >", ""),
    (b"<1@a> <2@a>", "<1@a>"),
    (b"\r\n <1@a>", "<1@a>"),
    (b"<1@a>\r<2@a>", "<1@a>"),
    (b"<[1@a]@b>", "<[1@a]@b>"),
)


def test_an_odd_subject_is_read_alike() -> None:
    for value, subject in SUBJECTS:
        assert read(b"Subject: " + value).subject == subject


def test_an_odd_date_is_read_alike() -> None:
    for value, time in DATES:
        sent_at = read(b"Date: " + value).document.observed_at
        assert sent_at is not None
        assert (None if sent_at == RECEIVED else sent_at.strftime("%H:%M")) == time


def test_an_odd_message_id_is_read_alike() -> None:
    for value, name in IDS:
        found = read(b"Message-ID: " + value).document.id
        assert found is not None
        assert (found if found.startswith("<") else "") == name


def test_a_header_is_found_behind_what_does_not_belong_to_it() -> None:
    for ends in [b"\r\n", b"\r\r\n", b"\n"]:
        for before in [b"\r\n\r\n", b"\xef\xbb\xbf", b">From a@b Mon Mar  2 08:15:00 2026\r\n", b"\nFrom: a@x\n"]:
            text = "The bridge over the river is closed from Monday until further notice."
            lines = (
                b"Message-ID: <1@a>",
                b"a line of no field",
                b"Content-Type: text/html",
                b"",
                f"<p>{text}</p>".encode(),
                b"",
            )
            found = read_message(
                before + ends.join(lines), RECEIVED, HashKey.public(), HtmlProcesses(0, deadline_seconds=0)
            )
            assert (found.document.id, (found.document.text or "").strip()) == ("<1@a>", text)
            assert "structure_repaired" in found.degraded
