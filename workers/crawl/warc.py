"""Read the pages of a WARC file, one record at a time.

What follows a broken record is read.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, NamedTuple

from nearstream.streams.ingest.media_type import HTML_START, PAGE_TYPES, media_type_of
from nearstream.workers.crawl.redirects import PERMANENT

if TYPE_CHECKING:
    from fastwarc.warc import WarcRecord

Decoding = Literal["all", "content", "transfer", "none"]

RECORD_MAX_BYTES = 8 * 1024 * 1024
PAGE_MAX_BYTES = 4 * 1024 * 1024  # after its transfer and content encodings are undone

_HEADER_MAX_BYTES = 64 * 1024
_START = re.compile(rb"WARC/[01]\.\d")
_HEADER_END = re.compile(rb"\r?\n\r?\n")
_NEXT = re.compile(rb"\n(?=WARC/[01]\.\d\r?\n)")
_LENGTH = re.compile(rb"^content-length[ \t]{0,8}:[ \t]{0,8}(\d{1,15})[ \t]{0,8}\r?$", re.IGNORECASE | re.MULTILINE)
_TYPE = re.compile(rb"^warc-type[ \t]{0,8}:[ \t]{0,8}([a-z]{1,20})", re.IGNORECASE | re.MULTILINE)
_END = b"\r\n\r\n"
# Many crawlers store a response without encodings that its headers still name. The second and later ones are tried for
# a response that is not encoded as its headers say.
_DECODINGS: tuple[Decoding, ...] = ("all", "content", "transfer", "none")


class WarcPage(NamedTuple):
    """A page as a crawler stored it.

    Attributes:
        offset: Byte of the unpacked file at which its record begins.
        url: The target URI.
        observed_at: The WARC-Date, with time zone.
        content_type: As the server sent it, or `text/html` if it sent none. For an extracted text (WET) `text/plain`.
        content: The page, without transfer and content encodings.
        is_cut_off: Whether the crawler says that it did not store the whole page.
    """

    offset: int
    url: str
    observed_at: datetime
    content_type: str
    content: bytes
    is_cut_off: bool = False


class Broken(NamedTuple):
    """A record that cannot be read.

    Attributes:
        offset: Byte of the unpacked file at which it begins.
        reason: What is wrong with it.
    """

    offset: int
    reason: str


class PassedOver(NamedTuple):
    """A record that holds no page to send.

    Attributes:
        reason: `revisit`, `no_response` (requests, metadata), `http_status`, `media_type`, `empty` or `too_large`.
    """

    reason: str


class Redirect(NamedTuple):
    """A response that leads to another URL for good.

    Attributes:
        url: The target URI.
        location: Where it leads, which may be relative to `url`.
    """

    url: str
    location: str


def is_available() -> bool:
    """Return whether the extra `crawl` is installed."""
    return find_spec("fastwarc") is not None


def read_warc(pieces: Iterator[bytes]) -> Iterator[WarcPage | Redirect | Broken | PassedOver]:
    """Yield what each record of a WARC file holds.

    Pages are responses with status 200 of type HTML or plain text, and extracted texts. At most one record is held.

    Args:
        pieces: The unpacked file.
    """
    for record in _split(pieces):
        yield _read(*record) if isinstance(record, _Record) else record


class _Record(NamedTuple):
    offset: int
    kind: bytes
    data: bytes


def _read(offset: int, kind: bytes, data: bytes) -> WarcPage | Redirect | Broken | PassedOver:
    if kind not in (b"response", b"conversion", b"revisit"):
        return PassedOver("no_response")
    from fastwarc.warc import WarcRecord

    for decoding in _DECODINGS:
        try:
            record = WarcRecord.from_bytes(data)
            if kind == b"revisit":
                return _revisited(record)
            found = _page(offset, record, None if kind == b"conversion" else decoding)
        except OSError:  # its message may quote the page
            continue
        if decoding == "all" or not isinstance(found, WarcPage) or HTML_START.match(found.content):
            return found
    return Broken(offset, "its HTTP header or its encodings cannot be read")


def _revisited(record: "WarcRecord") -> Redirect | PassedOver:
    """Return the redirect that a revisit found again, if it was one.

    The file does not store a page that was found again.
    """
    record.parse_http(auto_decode="all")
    return (_redirect(record) if record.is_http_parsed else None) or PassedOver("revisit")


def _redirect(record: "WarcRecord") -> Redirect | None:
    """Return the permanent redirect that a record with an HTTP response holds."""
    url, location = record.headers.get("WARC-Target-URI"), record.http_headers.get("Location")
    is_permanent = record.http_headers.status_code in PERMANENT
    return Redirect(url.strip("<>"), location) if is_permanent and url and location else None


def _page(offset: int, record: "WarcRecord", decoding: Decoding | None) -> WarcPage | Redirect | Broken | PassedOver:
    """Return what a record holds.

    Args:
        offset: Where the record begins.
        record: The record.
        decoding: Which encodings of its HTTP response are undone. None: it is an extracted text.

    Raises:
        OSError: An encoding cannot be undone.
    """
    url = (record.headers.get("WARC-Target-URI") or "").strip("<>")
    if not url or record.record_date is None:
        return Broken(offset, "expected WARC-Target-URI and WARC-Date")
    content_type = "text/plain; charset=utf-8"
    if decoding is not None:
        record.parse_http(auto_decode=decoding)
        if not record.is_http_parsed:
            return Broken(offset, "expected an HTTP response")
        if record.http_headers.status_code != 200:
            return _redirect(record) or PassedOver("http_status")
        content_type = record.http_headers.get("Content-Type") or ""
    content = _content(record)
    if len(content) > PAGE_MAX_BYTES:
        return PassedOver("too_large")
    media_type = media_type_of(content_type, content)
    if media_type not in PAGE_TYPES:
        return PassedOver("media_type")
    if not content:
        return PassedOver("empty")
    is_cut_off = record.headers.get("WARC-Truncated") is not None
    return WarcPage(offset, url, record.record_date, content_type or media_type, content, is_cut_off)


def _content(record: "WarcRecord") -> bytes:
    """Return the content of a record, cut off at one byte more than allowed."""
    content = bytearray()
    while piece := record.reader.read(PAGE_MAX_BYTES + 1 - len(content)):
        content += piece
        if len(content) > PAGE_MAX_BYTES:
            break
    return bytes(content)


class _Buffer:
    """The part of a file that has been read and is still needed.

    Attributes:
        offset: Byte of the file at which the part begins.
        data: The part.
    """

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self.offset = 0
        self.data = bytearray()
        self._pieces = pieces

    def fill(self, size: int) -> bool:
        """Read until the part has at least this many bytes.

        Returns:
            Whether the file has that many.
        """
        while len(self.data) < size:
            piece = next(self._pieces, None)
            if piece is None:
                return False
            self.data += piece
        return True

    def drop(self, size: int) -> None:
        """Forget the first bytes of the part."""
        del self.data[:size]
        self.offset += size


def _split(pieces: Iterator[bytes]) -> Iterator[_Record | Broken | PassedOver]:
    """Yield the records of a file.

    After a broken one the next line that begins a record is searched for.
    """
    buffer = _Buffer(pieces)
    while buffer.fill(1):
        while blank := len(buffer.data) - len(buffer.data.lstrip(b"\r\n")):
            buffer.drop(blank)
            buffer.fill(1)
        if not buffer.data:
            return
        offset = buffer.offset
        found = _next_record(buffer)
        if isinstance(found, str):
            yield Broken(offset, found)
            _drop_to_next(buffer)
        else:
            yield found


def _next_record(buffer: _Buffer) -> _Record | PassedOver | str:
    """Take the record from the start of the buffer.

    A broken record is left there.

    Returns:
        What is wrong with it, for a broken record.
    """
    end = None
    for size in (4_096, _HEADER_MAX_BYTES):
        buffer.fill(size)
        end = end or _HEADER_END.search(buffer.data, 0, size)
    if end is None or not _START.match(buffer.data):
        return "expected the header of a WARC record"
    header = bytes(buffer.data[: end.end()])
    length, kind = _LENGTH.search(header), _TYPE.search(header)
    if length is None or kind is None:
        return "expected Content-Length and WARC-Type"
    whole = len(header) + int(length[1])
    if int(length[1]) > RECORD_MAX_BYTES:
        _drop_to_next(buffer)  # the length may be wrong
        return PassedOver("too_large")
    if not buffer.fill(whole):
        return "the record is cut off"
    buffer.fill(whole + len(_END))
    after = bytes(buffer.data[whole : whole + len(_END)])
    if after.strip(b"\r\n") or not after:
        return "another Content-Length than its block has"
    record = _Record(buffer.offset, kind[1].lower(), bytes(buffer.data[:whole]) + _END)
    buffer.drop(whole)
    return record


def _drop_to_next(buffer: _Buffer) -> None:
    """Drop everything before the next line that begins a record, at least one byte."""
    start = 1
    while not (found := _NEXT.search(buffer.data, start - 1)):
        start = max(1, len(buffer.data) - 32)
        if start > RECORD_MAX_BYTES:
            buffer.drop(start)
            start = 1
        if not buffer.fill(len(buffer.data) + 1):
            buffer.drop(len(buffer.data))
            return
    buffer.drop(found.end())
