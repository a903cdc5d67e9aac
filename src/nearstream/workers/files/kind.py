"""Recognise by name and content what a file holds."""

import re
from pathlib import PurePath
from typing import Literal

import msgspec

from nearstream.streams.ingest.charset import REPLACEMENT, decode
from nearstream.streams.ingest.media_type import HTML_START, binary_format, is_binary
from nearstream.workers.crawl import warc
from nearstream.workers.files.content import PACKED_SUFFIXES, UnreadableFileError
from nearstream.workers.files.mail import MBOX_START, is_in_maildir

HEAD_BYTES = 64 * 1024
_LINE_SUFFIXES = (".jsonl", ".ndjson")
_CSV_SUFFIXES = (".csv", ".tsv")
_PARQUET_START = b"PAR1"
_HTML_SUFFIXES = (".html", ".htm", ".xhtml")
_ARC_START = b"filedesc://"  # of the first record of a file in ARC, the format before WARC
_WARC_START = re.compile(rb"WARC/[01]\.\d")
_MAIL_HEADER = re.compile(rb"\A(?:([!-9;-~]+):(.*)|[ \t])")
_MAIL_DATE = re.compile(rb"\A\s*+(?:[A-Za-z]{3},)?\s*+\d\d?\s++[A-Za-z]{3,9}\s++\d{2,4}\s++\d\d?:\d\d")
_MAIL_MARKS = {b"date", b"delivered-to", b"message-id", b"mime-version", b"received", b"return-path"}
_OBJECT_START = re.compile(rb'\A\s*+(?:\[\s*+)?\{\s*+"')
_CONTENT_FIELD = re.compile(rb'"(?:text|html|raw)"\s*+:')
_UNREADABLE_MAX_RATIO = 0.1


# How documents are found in a file. `html` is one web page, `mail` one message, `warc` what a crawler has stored, and
# `json_objects` are usually one, over several lines.
Kind = Literal["text", "json_lines", "json_array", "json_objects", "html", "mail", "mbox", "warc", "csv", "parquet"]


def kind_of(name: str, head: bytes, *, is_pipe: bool) -> Kind:
    """Return how documents are found in a file, by the suffix of its name and the beginning of its content.

    The beginning is `HEAD_BYTES`, or all of the content, or of a pipe at least a line. A pipe holds JSON, because most
    have more than one document.
    """
    suffix = _suffix(name)
    _refuse_unread(suffix, head)
    if suffix == ".warc" or _WARC_START.match(head):
        return _crawl()
    if suffix in _HTML_SUFFIXES or HTML_START.match(head):
        return _page(suffix, head)
    if other := _kind_of_table(suffix, head, is_pipe=is_pipe) or _kind_of_mail(name, suffix, head):
        return other
    start = head.lstrip()
    is_lines = is_pipe or suffix in _LINE_SUFFIXES
    if not is_lines and suffix != ".json" and not _looks_like_documents(head):
        return "text"
    if not start.startswith((b"{", b"[")) or b"\0" in start[:2]:
        _refuse_no_json(head, is_lines=is_lines)
    if start.startswith(b"["):
        return "json_array"
    return "json_lines" if is_lines or _has_lines(start) else "json_objects"


def refuse_no_text(content: bytes) -> None:
    """Refuse a content that is no text in any charset.

    A few characters that cannot be read are accepted, because they are replaced, and the events of the document say so.
    """
    text = decode(content).text
    looks_binary = b"\0" not in content and is_binary(content)  # of a wide text, the charset is known by now
    if "\0" in text or looks_binary or text.count(REPLACEMENT) > _UNREADABLE_MAX_RATIO * len(text):
        raise UnreadableFileError("binary, or a text in an unknown charset: convert a text to UTF-8 with iconv")


def _refuse_no_json(head: bytes, *, is_lines: bool) -> None:
    """Refuse what does not begin like JSON, except lines of text, which are refused later."""
    if b"\0" in head or is_binary(head):
        raise UnreadableFileError("binary, or JSON that is not UTF-8: convert JSON with iconv")
    if not is_lines:
        raise UnreadableFileError("expected a JSON object or array, as the name says")


def _suffix(name: str) -> str:
    path = PurePath(name.lower())
    return (path.with_suffix("") if path.suffix in PACKED_SUFFIXES else path).suffix


def _refuse_unread(suffix: str, head: bytes) -> None:
    if suffix == ".arc" or head.startswith(_ARC_START):
        raise UnreadableFileError("ARC is not read: make WARC of it with `warcio recompress FILE.arc.gz FILE.warc.gz`")
    if suffix == ".wacz":
        raise UnreadableFileError("WACZ is not read: `unzip` it, and read the WARC files in its folder archive")
    if reason := binary_format(head):
        raise UnreadableFileError(reason)


def _crawl() -> Kind:
    if not warc.is_available():
        raise UnreadableFileError("WARC is read with the extra `crawl`: pip install 'nearstream[crawl]'")
    return "warc"


def _kind_of_table(suffix: str, head: bytes, *, is_pipe: bool) -> Kind | None:
    if suffix in _CSV_SUFFIXES:
        refuse_no_text(head)
        return "csv"
    is_parquet = head.startswith(_PARQUET_START)
    if suffix == ".parquet" and (is_pipe or not is_parquet):
        raise UnreadableFileError("expected a Parquet file, as the name says, that is no pipe")
    return "parquet" if is_parquet and not is_pipe else None


def _page(suffix: str, head: bytes) -> Kind:
    if suffix in (*_LINE_SUFFIXES, ".json"):
        raise UnreadableFileError("HTML, but JSON is expected, as the name says")
    if is_binary(head):
        raise UnreadableFileError("binary, but HTML is expected, as the name says")
    return "html"


def _kind_of_mail(name: str, suffix: str, head: bytes) -> Kind | None:
    if MBOX_START.match(head) or suffix == ".mbox":
        return "mbox"
    return "mail" if suffix in (".eml", ".emlx") or is_in_maildir(name) or _is_mail(head) else None


def _is_mail(head: bytes) -> bool:
    """Return whether a text begins with the headers of a mail, and not only with a name and a colon."""
    headers: dict[bytes, bytes] = {}
    for line in head.partition(b"\n\n")[0].partition(b"\r\n\r\n")[0].splitlines():
        match = _MAIL_HEADER.match(line)
        if match is None:
            return False
        if match[1]:
            headers.setdefault(match[1].lower(), match[2])
    is_sent = b"@" in headers.get(b"from", b"") and _MAIL_DATE.match(headers.get(b"date", b""))
    return b"from" in headers and bool(is_sent or len(headers.keys() & _MAIL_MARKS) >= 2)


def _looks_like_documents(head: bytes) -> bool:
    """Return whether a file that is not named so holds JSON documents.

    Prose does not begin with an object, and without a content an object is no document.
    """
    return bool(_OBJECT_START.match(head) and _CONTENT_FIELD.search(head))


def _has_lines(start: bytes) -> bool:
    """Return whether the first line is a whole JSON value, and another object follows."""
    first, _, rest = start.partition(b"\n")
    if not rest.lstrip().startswith(b"{"):
        return False
    try:
        msgspec.json.decode(first)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True
