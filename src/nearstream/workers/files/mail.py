"""Read mail files: single messages, mboxes and Maildirs, as records of `documents`."""

import os
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import chain, pairwise

from nearstream.schemas.documents.document import Document
from nearstream.schemas.documents.record import Headers
from nearstream.schemas.topics.codec import InvalidMessageError
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.ingest.parse import field_headers
from nearstream.workers.crawl.html_processes import HtmlProcesses
from nearstream.workers.files.content import UnreadableFileError, lines_with_ends
from nearstream.workers.mail.message import MESSAGE_MAX_BYTES, MailRules, read_message

# A message of an mbox begins with such a line. Programs write `>From` where a line of a text begins so.
MBOX_START = re.compile(rb"From \S.{0,200}? (?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? [A-Za-z\d ]{1,16} \d\d?:\d\d")
_QUOTED_START = re.compile(rb"^>(>{0,64}From )", re.MULTILINE)
_FIELD = re.compile(rb"(?:delivered-to|from|message-id|received|return-path|x-[!-9;-~]{1,64}): ", re.IGNORECASE)
_MAILDIR = {"cur", "new", "tmp"}
_NO_TEXT = b"\n"  # a record with no bytes would be refused as such


# The text of a message, its other fields, and what was incomplete about reading it.
MailRecord = tuple[bytes, Headers, tuple[str, ...]]


def read_mail(raw: bytes, received_at: datetime, *, key: HashKey, html: HtmlProcesses, rules: MailRules) -> MailRecord:
    """Return a message as the value and headers of a record, unless it is empty or too large."""
    try:
        mail = read_message(raw, received_at, key, html, rules=rules)
    except InvalidMessageError as error:
        raise UnreadableFileError(error.detail) from None
    return mail_record(mail.document, mail.degraded)


def mail_record(document: Document, degraded: tuple[str, ...]) -> MailRecord:
    """Return the document of a message, as `read_message` returns it, as a record."""
    headers: Headers = [("content-type", b"text/plain; charset=utf-8"), *field_headers(document)]
    if degraded:
        headers.append(("nearstream-degraded", " ".join(degraded).encode()))
    return (document.text or "").encode("utf-8", "replace") or _NO_TEXT, headers, degraded


def whole_message(content: Iterable[bytes]) -> bytes:
    """Return the bytes of a message, at most one more than a message may have."""
    raw = bytearray()
    for piece in content:
        raw += piece[: MESSAGE_MAX_BYTES + 1 - len(raw)]
        if len(raw) > MESSAGE_MAX_BYTES:
            break
    return bytes(raw)


def split_mbox(content: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield each message of an mbox with the number of its first line.

    Of a message that is too large one byte more than allowed is yielded. What precedes the first message is left out.
    A message begins after a blank line, or where a field of a header follows.
    """
    first, raw, was_blank = 0, bytearray(), True
    for number, (line, following) in enumerate(pairwise(chain(lines_with_ends(content), [b""])), 1):
        if MBOX_START.match(line) and (was_blank or _FIELD.match(following)):
            if first:
                yield first, _unquoted(raw)
            first, raw = number, bytearray()
        elif first:
            raw += line[: MESSAGE_MAX_BYTES + 1 - len(raw)]
        was_blank = not line.strip()
    if first:
        yield first, _unquoted(raw)


def is_maildir(folder: str) -> bool:
    """Return whether a folder is a Maildir: it has the folders cur, new and tmp."""
    return all(os.path.isdir(os.path.join(folder, name)) for name in _MAILDIR)


def is_in_maildir(path: str) -> bool:
    """Return whether a file is a message of a Maildir."""
    folder, name = os.path.split(os.path.dirname(path))
    return name in ("cur", "new") and is_maildir(folder)


def maildir_folders(folder: str, names: Iterable[str]) -> list[str]:
    """Return what to read of a Maildir: its messages, and the Maildirs in it, whose names begin with a dot."""
    inner = (name for name in names if name.startswith(".") and is_maildir(os.path.join(folder, name)))
    return ["cur", "new", *sorted(inner)]


def _unquoted(raw: bytearray) -> bytes:
    return _QUOTED_START.sub(rb"\1", bytes(raw))
