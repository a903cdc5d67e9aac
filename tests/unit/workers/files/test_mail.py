"""Messages, mboxes and Maildirs as records of `documents`."""

import gzip
import os
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nearstream.schemas.documents.record import header
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.workers.cli.main import main
from nearstream.workers.files.source import Item, Refused, read
from nearstream.workers.mail.message import MESSAGE_MAX_BYTES
from tests.unit.workers.files.test_source import file, only, received

ROOT = Path(__file__).parents[4]
RECEIVED = b"Return-Path: <a@b.example>\r\nReceived: from x\r\n by y\r\nFrom: a\r\nSubject: s\r\n\r\n"
SENT = b"From: A <a@b.example>\nTo: c\nSubject: s\nDate: Mon, 5 Jan 2026 10:11:12 +0100\n\n"
TEXT = b"The bridge over the river is closed from Monday until further notice."
START = b"From a@b.example Mon Jan  5 10:11:12 2026\n"


def ids(path: Path) -> list[str | None]:
    """Return the id of each message in a file or folder, none of which may be refused."""
    return [received(item).document.id for item in read([str(path)])]


def message(number: int, text: bytes = TEXT) -> bytes:
    return b"Message-ID: <%d@a.example>\n" % number + SENT + text + b"\n"


# What Apple Mail writes behind a message.
NOTES = b'<?xml version="1.0" encoding="UTF-8"?>\n<plist version="1.0"><dict><key>flags</key></dict></plist>\n'
MESSAGES = (
    ("a.eml", RECEIVED + TEXT),
    ("a.eml", b"\n" + TEXT),
    ("a", RECEIVED + TEXT),
    ("a.txt", RECEIVED.replace(b"\r", b"") + TEXT),
    ("a.gz", gzip.compress(RECEIVED + TEXT, mtime=0)),
    ("a.eml.gz", gzip.compress(SENT + TEXT, mtime=0)),
    ("a.txt", SENT + TEXT),
    ("a.txt", b"date: 5 Jan 26 10:11\r\nfrom: a@b.example\r\n\r\n" + TEXT),
    ("1.emlx", b"%d      \n" % len(message(1)) + message(1) + NOTES),
)


def test_a_message_is_recognised_and_read(tmp_path: Path) -> None:
    for name, content in MESSAGES:
        path = file(tmp_path, name, content)
        (item,) = read([str(path)])
        document = received(item).document
        assert (document.text or "").strip() == TEXT.decode()
        assert (document.source, document.lineage, item.source) == ("mail", None, str(path))


def test_without_a_date_the_time_of_change_counts(tmp_path: Path) -> None:
    path = file(tmp_path, "a.eml", b"Subject: s\n\n" + TEXT)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    first, again = (only(path).document for _ in range(2))
    assert first.observed_at == datetime.fromtimestamp(1_700_000_000, UTC)
    assert first.id == again.id


def test_an_mbox_is_split_into_its_messages(tmp_path: Path) -> None:
    for name in ("inbox", "inbox.mbox", "inbox.mbox.gz"):
        messages = [message(1), message(2, b"He wrote:\n>From here on\n>>From there\n" + TEXT), message(3)]
        content = b"".join(START + each + b"\n" for each in messages)
        path = file(tmp_path, name, gzip.compress(content) if name.endswith("gz") else content)
        items = list(read([str(path)]))
        documents = [received(item).document for item in items]
        assert [document.id for document in documents] == ["<1@a.example>", "<2@a.example>", "<3@a.example>"]
        assert (documents[1].text or "").startswith("He wrote:\nFrom here on\n>From there\n")
        assert [item.source for item in items] == [
            f"{path}:{line} (message {n})" for n, line in ((1, 1), (2, 10), (3, 22))
        ]


def test_a_message_begins_where_a_header_follows_and_at_no_line_of_a_text(tmp_path: Path) -> None:
    content = b"".join(START + b"Received: by a\n" + message(number) for number in (1, 2, 3))
    assert ids(file(tmp_path, "inbox.mbox", content)) == ["<1@a.example>", "<2@a.example>", "<3@a.example>"]
    text = b"a line\n\nFrom Monday on the bridge is closed until further notice.\n" + START.strip() + b"\nthe end"
    assert (only(file(tmp_path, "a.mbox", START + message(1, text))).document.text or "").endswith("the end\n")


def test_a_broken_message_of_an_mbox_is_reported_and_the_others_are_read(tmp_path: Path) -> None:
    large = b"X: y\n\n" + (b"word " * 200 + b"\n") * (MESSAGE_MAX_BYTES // 1000 + 1)
    deep = b"".join(b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (level, level) for level in range(200))
    path = file(tmp_path, "a.mbox", b"\n".join(START + each for each in (message(1), large, deep, b"", message(5))))
    first, too_large, degraded, empty, last = read([str(path)])
    assert received(first).document.id == "<1@a.example>"
    assert isinstance(too_large, Refused)
    assert too_large == Refused(f"{path}:10 (message 2)", f"expected a message of at most {MESSAGE_MAX_BYTES} bytes")
    assert isinstance(degraded, Item)
    assert degraded.degraded == received(degraded).degraded == ("parse_fallback",)
    assert isinstance(empty, Item | Refused)
    assert received(last).document.id == "<5@a.example>"


def test_a_maildir_is_read_with_those_in_it(tmp_path: Path) -> None:
    for number, name in enumerate(("new/1.a.host", "cur/2.b.host:2,S", ".Sent/cur/3.c.host:2,S", "tmp/4.d.host"), 1):
        file(tmp_path, name, message(number))
    file(tmp_path, "new/5.e.host", b"Subject: s\n\n" + TEXT)  # its place alone says that it is mail
    file(tmp_path, "dovecot-uidlist", b"3 V1")
    file(tmp_path, ".Notes/x.txt", b"no Maildir")
    for name in ("cur", "new", "tmp"):
        (tmp_path / ".Sent" / name).mkdir(exist_ok=True)
    documents = [received(item).document for item in read([str(tmp_path)])]
    named = [document.id for document in documents if (document.id or "").startswith("<")]
    assert (named, len(documents)) == (["<2@a.example>", "<1@a.example>", "<3@a.example>"], 4)
    assert {document.source for document in documents} == {"mail"}
    assert documents[0].observed_at == datetime(2026, 1, 5, 9, 11, 12, tzinfo=UTC)


def test_what_is_hashed_of_a_message_is_hashed_under_the_key(tmp_path: Path) -> None:
    inner = b"--b\n\nThank you!\n--b\nContent-Type: image/png\n\npicture\n--b--\n"
    path = file(tmp_path, "a.eml", b"Content-Type: multipart/mixed; boundary=b\n" + SENT + inner)
    keys = (None, HashKey.public(), HashKey.from_secret(b"another"))
    documents = [received(next(iter(read([str(path)], key)))).document for key in keys]
    for hashed in ([each.text for each in documents], [each.labels["attachments"] for each in documents]):
        assert hashed[0] == hashed[1] != hashed[2]
    assert "thank" not in (documents[0].text or "").lower()
    assert re.fullmatch("[0-9a-f]{32}", documents[0].labels["attachments"])


def test_what_a_header_says_to_be_degraded_is_known_or_ignored(tmp_path: Path) -> None:
    (item,) = read([str(file(tmp_path, "a.eml", message(1)))])
    assert isinstance(item, Item)
    assert header(item.record.headers, "nearstream-degraded") is None
    said = [*item.record.headers, ("nearstream-degraded", b"truncated nonsense truncated parse_fallback \xff")]
    record = item.record._replace(headers=said)
    assert received(Item("x", record)).degraded == ("parse_fallback", "truncated")
    said[-1] = ("nearstream-degraded", b"charset_replaced")
    replaced = record._replace(headers=said, value=(record.value or b"") + b" \xef\xbf\xbd")
    assert received(Item("x", replaced)).degraded == ("charset_replaced",)


def test_the_page_about_mail_shows_what_a_scan_of_the_example_prints(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs/mail.md").read_text()
    blocks = re.findall(r"```\n(.*?)```\n", page, re.DOTALL)
    assert main(["scan", str(ROOT / blocks[0].split()[-1]), "--quiet"]) == 0
    assert capsys.readouterr().out == blocks[1]
