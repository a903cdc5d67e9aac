"""Read files, folders and standard input as records of `documents`."""

import os
import sys
import time
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from io import BufferedReader
from itertools import chain, count, islice
from typing import NamedTuple

import msgspec

from nearstream.schemas.documents.document import Id
from nearstream.schemas.documents.record import INPUT, PAGE_PAYLOAD_HEADER, ConsumerRecord, Headers
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.ingest.defaults import name_of_page
from nearstream.workers.crawl.html_processes import HtmlProcesses
from nearstream.workers.crawl.warc import Broken, Redirect, Redirects, WarcPage, read_warc
from nearstream.workers.files.content import (
    DOCUMENT_MAX_BYTES,
    UnreadableFileError,
    read_pieces,
    split_lines,
    split_values,
    with_head,
)
from nearstream.workers.files.kind import HEAD_BYTES, Kind, kind_of, refuse_no_text
from nearstream.workers.files.mail import (
    MailRecord,
    is_maildir,
    maildir_folders,
    read_mail,
    split_mbox,
    whole_message,
)
from nearstream.workers.files.tables import Columns, Form, Row, Stored, csv_rows, json_document, parquet_rows
from nearstream.workers.mail.message import WHOLE_MAIL, MailRules

STDIN = "-"
ReadMail = Callable[[bytes, datetime], MailRecord]
FIELDS_OF_DOCUMENTS = Columns()
_LISTED, _JSON = Stored(Form("list")), Form("json")


class Item(NamedTuple):
    """One record as read."""

    source: str  # file and line that it was read from, for messages
    record: ConsumerRecord  # the record
    degraded: tuple[str, ...] = ()  # what was incomplete about reading a mail
    place: int = 0  # how many bytes of all paths were read up to its end, as they are stored
    stored: Stored | None = _LISTED  # The document in the form in which it came. None: it is too long to be held.


class Refused(NamedTuple):
    """A file that cannot be read, or not to its end, or a row without a document."""

    source: str  # the file, for messages
    reason: str  # why it cannot be read, and what to do
    stored: Stored | None = None  # the row


def read(
    paths: Iterable[str],
    key: HashKey | None = None,
    passed_over: Counter[str] | None = None,
    rules: MailRules = WHOLE_MAIL,
    columns: Columns = FIELDS_OF_DOCUMENTS,
) -> Iterator[Item | Refused]:
    """Yield every document of the paths as a record of `documents`.

    Of a folder, all files that are not hidden are read, in order of their names. `kind_of` decides how the documents of
    a file are found in it. A text or a web page has its path as id and its time of change as `observed_at`. A file or a
    message of an mbox that cannot be read is refused, and the others are read. No two documents are read at one time,
    so one without a time of its own is newer than those before it. `passed_over` counts, by reason, records of WARC
    files that hold no page to send.
    """
    passed_over = Counter() if passed_over is None else passed_over
    offsets, read_ms, before = count(), 0, 0
    with closing(HtmlProcesses()) as html:
        mail = partial(read_mail, key=key or HashKey.public(), html=html, rules=rules)
        for path in _files(paths):
            number = 0
            try:
                for found in _documents(path, mail, passed_over, columns):
                    number += 1
                    if isinstance(found, Item):
                        read_ms = max(read_ms + 1, found.record.timestamp_ms)
                        record = found.record._replace(offset=next(offsets), timestamp_ms=read_ms)
                        yield found._replace(record=record, place=before + found.place)
                    else:
                        yield found
            except (UnreadableFileError, OSError) as error:
                reason = (isinstance(error, OSError) and error.strerror) or str(error)
                after = f" (found before that: {number} document{'s' * (number > 1)})"
                yield Refused(_name(path), reason + after * bool(number))
            before += _size(path)


def _item(
    source: str, value: bytes, headers: Headers, key: bytes | None = None, degraded: tuple[str, ...] = ()
) -> Item:
    """Return one document of a file, whose record has no offset yet."""
    return Item(source, ConsumerRecord(INPUT, 0, 0, time.time_ns() // 1_000_000, key, value, headers), degraded)


def bytes_of(paths: Iterable[str]) -> int:
    """Return how many bytes files have, 0 if one is a pipe or missing."""
    paths = list(paths)
    return sum(map(_size, _files(paths))) if are_files(paths) else 0


def are_files(paths: Iterable[str]) -> bool:
    """Return whether all paths are files and folders, which need not be waited for."""
    return all(path != STDIN and (os.path.isfile(path) or os.path.isdir(path)) for path in paths)


def _size(path: str) -> int:
    try:
        return os.path.getsize(path) if path != STDIN else 0
    except OSError:
        return 0  # the file is refused when it is read


def _files(paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        if path == STDIN or not os.path.isdir(path):
            yield path
            continue
        errors: list[OSError] = []
        for folder, folders, names in os.walk(path, onerror=errors.append):
            if is_maildir(folder):
                folders[:] = maildir_folders(folder, folders)
                continue
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            found = (os.path.join(folder, name) for name in sorted(names) if not name.startswith("."))
            # A broken link is yielded too, to be refused, but a socket or pipe in a folder is no document.
            yield from (file for file in found if os.path.isfile(file) or not os.path.exists(file))
        yield from (str(error.filename) for error in errors)


def _documents(path: str, mail: ReadMail, passed_over: Counter[str], columns: Columns) -> Iterator[Item | Refused]:
    with _open(path) as stream:
        kind, content = _recognised(path, stream)
        if kind == "warc":
            found = _warc(_name(path), content, passed_over)
        elif kind == "mbox":
            found = _mbox(path, content, mail)
        elif kind in ("csv", "parquet"):
            rows = csv_rows(content, columns) if kind == "csv" else parquet_rows(stream, columns)
            found = (_of_row(_name(path), row) for row in rows)
        elif kind in ("text", "html", "mail"):
            found = iter([_file(path, kind, content, mail)])
        else:
            found = _values(path, kind, content)
        for each in found:
            yield each._replace(place=stream.tell()) if isinstance(each, Item) and stream.seekable() else each


def _file(path: str, kind: Kind, content: Iterator[bytes], mail: ReadMail) -> Item:
    if kind != "mail":
        return _text(path, content) if kind == "text" else _page(path, content)
    value, headers, degraded = mail(whole_message(content), _time_of_change(path))
    return _item(_name(path), value, headers, degraded=degraded)


def _values(path: str, kind: Kind, content: Iterator[bytes]) -> Iterator[Item]:
    name = _name(path)
    if kind == "json_lines":
        for line, value in split_lines(content):
            stored = Stored(_JSON, value) if len(value) < DOCUMENT_MAX_BYTES else None
            yield _item(f"{name}:{line}", value.strip(), [])._replace(stored=stored)
        return
    for number, (line, value) in enumerate(split_values(content), 1):
        is_whole = kind == "json_objects" and number == 1
        source = f"{name}:{line}" if is_whole else f"{name}:{line} (document {number})"
        item = _item(source, value, [], os.fsencode(path) if is_whole else None)
        yield item._replace(stored=Stored(_JSON, value.replace(b"\n", b" ")))


def as_row(item: Item | Refused, columns: Columns) -> Item | Refused:
    """Return an item, of which a JSON object with a text counts as a row of a dataset."""
    if isinstance(item, Refused) or item.stored is None or item.stored.form != _JSON:
        return item
    document = json_document(item.stored.raw, columns)
    if document is None and columns.text != FIELDS_OF_DOCUMENTS.text:
        return Refused(item.source, f"expected a JSON object with a text as {columns.text!r}", item.stored)
    return item if document is None else item._replace(record=item.record._replace(value=document))


def _of_row(name: str, row: Row) -> Item | Refused:
    number, document, stored, refusal = row
    source = f"{name}:{number}"
    return Refused(source, refusal, stored) if refusal else _item(source, document, [])._replace(stored=stored)


def _mbox(path: str, content: Iterator[bytes], mail: ReadMail) -> Iterator[Item | Refused]:
    number, received_at = 0, _time_of_change(path)
    for number, (line, raw) in enumerate(split_mbox(content), 1):
        source = f"{_name(path)}:{line} (message {number})"
        try:
            value, headers, degraded = mail(raw, received_at)
            yield _item(source, value, headers, degraded=degraded)
        except UnreadableFileError as error:
            yield Refused(source, str(error))
    if not number:
        raise UnreadableFileError("expected an mbox, as the name says: no line begins a message (`From ` and a date)")


def _warc(name: str, content: Iterator[bytes], passed_over: Counter[str]) -> Iterator[Item | Refused]:
    for found in read_documents(content, passed_over):
        if isinstance(found, Broken):
            yield Refused(f"{name} (record at byte {found.offset})", found.reason)
        else:
            offset, value, headers = found
            source = f"{name} (record at byte {offset})"
            yield _item(source, value, headers)


# The byte of the unpacked file at which the record of a page begins, the page, and the fields of its document.
WarcDocument = tuple[int, bytes, Headers]


def read_documents(content: Iterator[bytes], passed_over: Counter[str]) -> Iterator[WarcDocument | Broken]:
    """Yield the pages of a WARC file that is unpacked, and count its other records.

    A page to which URLs earlier in the file redirect for good is yielded once for each of them, as a crawler sends it
    that asks for these URLs. If the file breaks off, all records before that place are yielded.
    """
    redirects, failures = Redirects(), list[UnreadableFileError | OSError]()
    for found in read_warc(_until_failure(content, failures)):
        if isinstance(found, WarcPage):
            aliases = redirects.take(found.url)
            yield from (_document(found, asked) for asked in aliases or [found.url])
        elif isinstance(found, Broken):
            yield found
        else:
            passed_over["redirect" if isinstance(found, Redirect) else found] += 1
            if isinstance(found, Redirect):
                redirects.add(found.url, found.location)
    if failures:
        raise failures[0]


def _until_failure(content: Iterator[bytes], failures: list[UnreadableFileError | OSError]) -> Iterator[bytes]:
    """Yield a content as far as it can be read, because what was read may hold whole records."""
    try:
        yield from content
    except (UnreadableFileError, OSError) as failure:
        failures.append(failure)


def _document(page: WarcPage, asked: str) -> WarcDocument:
    fields = {"url": asked, "observed-at": page.observed_at.isoformat(), "source": "crawler"}
    if asked != page.url:
        fields |= {"id": name_of_page(page.url), "lineage": name_of_page(page.url)}
    headers: Headers = [("content-type", page.content_type.encode("latin-1", "replace"))]
    headers += [("nearstream-degraded", b"truncated")] * page.is_cut_off
    headers += [(PAGE_PAYLOAD_HEADER, page.payload.encode("ascii", "replace"))] * bool(page.payload)
    headers += [(f"nearstream-{name}", value.encode("utf-8", "replace")) for name, value in fields.items()]
    return page.offset, page.content, headers


def _open(path: str) -> BufferedReader:
    if path != STDIN:
        return open(path, "rb")
    if sys.stdin is None:
        raise UnreadableFileError("it is closed, redirect it from a file or a pipe")
    os.set_blocking(sys.stdin.fileno(), True)  # else an empty pipe would look like its end
    return open(sys.stdin.fileno(), "rb", closefd=False)


def _recognised(path: str, stream: BufferedReader) -> tuple[Kind, Iterator[bytes]]:
    """Return the kind of an open file, and its content. Only a table keeps a byte order mark."""
    is_pipe = path == STDIN or not os.path.isfile(path)
    # A pipe may be idle for long after its first line, which has to be read by then.
    pieces = read_pieces(stream, path)
    head, content = with_head(pieces, lambda head: len(head) >= HEAD_BYTES or (is_pipe and b"\n" in head.lstrip()))
    bare = head.removeprefix(BOM_UTF8)
    kind = kind_of(path, bare, is_pipe=is_pipe)
    return kind, content if kind == "csv" or bare == head else chain([bare], islice(content, 1, None))


def _text(path: str, content: Iterator[bytes]) -> Item:
    value = _whole(content)
    refuse_no_text(value)
    return _of_file(path, value, b"text/plain")


def _page(path: str, content: Iterator[bytes]) -> Item:
    value = _whole(content)
    if path != STDIN:
        return _of_file(path, value, b"text/html")
    observed_at = _time_of_change(path).isoformat().encode()
    return _item(_name(path), value, [("content-type", b"text/html"), ("nearstream-observed-at", observed_at)])


def _of_file(path: str, value: bytes, content_type: bytes) -> Item:
    _require_id(path)
    headers: Headers = [
        ("content-type", content_type),
        ("nearstream-id", os.fsencode(path)),
        ("nearstream-observed-at", _time_of_change(path).isoformat().encode()),
    ]
    return _item(path, value, headers)


def _whole(content: Iterator[bytes]) -> bytes:
    value = bytearray()
    for piece in content:
        value += piece[: DOCUMENT_MAX_BYTES - len(value)]
        if len(value) == DOCUMENT_MAX_BYTES:
            break
    if not value.strip():
        raise UnreadableFileError("the file is empty" if not value else "the file holds only white space")
    return bytes(value)


def _require_id(path: str) -> None:
    try:
        msgspec.convert(path.encode().decode(), Id)
    except (UnicodeEncodeError, msgspec.ValidationError):
        raise UnreadableFileError(
            "the path is the id of a text, so 1 to 512 characters in UTF-8 without control characters are expected:"
            " rename the file, or send its text as JSON with another id"
        ) from None


def _time_of_change(path: str) -> datetime:
    """Return when a file was changed last, or the time now for a pipe."""
    if path == STDIN:
        return datetime.now(UTC)
    try:
        return datetime.fromtimestamp(os.stat(path).st_mtime, UTC)
    except (ValueError, OverflowError):
        raise UnreadableFileError("its time of change lies outside the years 1 to 9999, change it with touch") from None


def _name(path: str) -> str:
    return "standard input" if path == STDIN else path
