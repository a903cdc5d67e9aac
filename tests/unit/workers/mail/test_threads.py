"""Threads: the own words of a mail, and the first message of its thread."""

from datetime import UTC, datetime

import pytest

from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.workers.crawl.html_processes import HtmlProcesses
from nearstream.workers.mail.message import Mail, own_words, read_message

NO_HTML = HtmlProcesses(0, deadline_seconds=0)
WORDS = "We can meet on Tuesday at ten o'clock, in the small room on the second floor.\n"
REPLY = f"{WORDS}\n> Shall we meet on Tuesday?\n>> When do you have time?\n >quoted\nUntil then\n-- \nAnna\n+49 123\n"


def read(headers: str, body: str = REPLY, content: str = "thread") -> Mail:
    raw = f"From: a@a.example\n{headers}\n{body}".encode()
    return read_message(raw, datetime(2026, 3, 2, tzinfo=UTC), HashKey.public(), NO_HTML, content=content)


def test_quotes_and_the_signature_are_left_out() -> None:
    assert own_words(REPLY) == f"{WORDS}\nUntil then\n"
    assert own_words(REPLY.replace("\n", "\r\n")).split() == own_words(REPLY).split()
    assert own_words("a -- b > c\n--\n") == "a -- b > c\n"
    assert own_words("") == ""


@pytest.mark.parametrize(
    ("headers", "lineage"),
    [
        ("Message-ID: <3@a>\nIn-Reply-To: <2@a>\nReferences: <1@a> <2@a>\n", "<1@a>"),
        ("Message-ID: <3@a>\nIn-Reply-To: <2@a>\n", "<2@a>"),
        ("Message-ID: <3@a>\nReferences: none\n", "<3@a>"),
        ("References: <>\n", None),
    ],
)
def test_the_lineage_is_the_first_message_of_the_thread(headers: str, lineage: str | None) -> None:
    found = read(headers).document
    assert (found.lineage, found.text) == (lineage, f"{WORDS}\nUntil then\n")


def test_a_whole_mail_has_its_quotes_and_no_lineage() -> None:
    found = read("Message-ID: <3@a>\nReferences: <1@a>\n", content="whole").document
    assert (found.lineage, found.text) == (None, REPLY)
