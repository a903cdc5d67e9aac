"""Read the pages of a WARC file, one record at a time."""

import re
from collections.abc import Iterator
from datetime import datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import urljoin

from nearstream.streams.ingest.defaults import name_of_page
from nearstream.streams.ingest.media_type import PAGE_TYPES, is_binary, media_type_of
from nearstream.workers.crawl.http_body import Body, undo

if TYPE_CHECKING:
    from fastwarc.warc import WarcRecord

RECORD_MAX_BYTES = 8 * 1024 * 1024
END = b"\r\n\r\n"
LENGTH = re.compile(rb"^content-length[ \t]{0,8}:[ \t]{0,8}(\d{1,15})[ \t]{0,8}\r?$", re.IGNORECASE | re.MULTILINE)

_HEADER_MAX_BYTES = 64 * 1024
_START = re.compile(rb"WARC/[01]\.\d")
_HEADER_END = re.compile(rb"\r?\n\r?\n")
_NEXT = re.compile(rb"[\n\x00](?=WARC/[01]\.\d\r?\n)")  # files that were allotted in blocks have NUL between records
_NEXT_BYTES = 32  # the most bytes that `_NEXT` looks at
_TYPE = re.compile(rb"^warc-type[ \t]{0,8}:[ \t]{0,8}([a-z]{1,20})", re.IGNORECASE | re.MULTILINE)
PERMANENT = frozenset({301, 308})
_TARGETS_MAX = 10_000  # about 300 bytes each
_SOURCES_MAX = 8  # of one target
PAGE_MAX_BYTES = 4 * 1024 * 1024  # after its transfer and content encodings are undone
_OF_A_PART = ("WARC-Truncated", "WARC-Segment-Number")  # the other segments follow as records of another type
_BARE_HEAD = re.compile(rb"HTTP/[^\r\n]{1,1024}\n(?>(?:[^\r\n]{1,16384}\n){0,256})\n")
_PAGE_KINDS = frozenset({b"response", b"resource", b"conversion"})


class Record(NamedTuple):
    """A record as WARC stores it."""

    offset: int  # byte of the unpacked file at which it begins
    kind: bytes  # its type, in lower case
    data: bytes  # its header and its block


class Broken(NamedTuple):
    """A record that cannot be read."""

    offset: int  # byte of the unpacked file at which it begins
    reason: str  # what is wrong with it


# Why a record holds no page to send. Requests and metadata are `no_response`.
PassedOver = Literal["revisit", "no_response", "http_status", "media_type", "empty", "too_large"]


class _Buffer:
    def __init__(self, pieces: Iterator[bytes]) -> None:
        self.offset = 0  # byte of the file at which the part begins
        self.data = bytearray()
        self._pieces = pieces

    def fill(self, size: int) -> bool:
        """Read until the part has at least this many bytes. Return whether the file has that many."""
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


def split(pieces: Iterator[bytes]) -> Iterator[Record | Broken | PassedOver]:
    """Yield the records of an unpacked file. After a broken one the next line that begins a record is searched for."""
    buffer = _Buffer(pieces)
    while buffer.fill(1):
        while blank := len(buffer.data) - len(buffer.data.lstrip(b"\r\n")):
            buffer.drop(blank)
            buffer.fill(1)
        if not buffer.data:
            return
        found = _next_record(buffer)
        yield found
        if isinstance(found, Broken):
            _drop_to_next(buffer)


def _next_record(buffer: _Buffer) -> Record | Broken | PassedOver:
    """Take the record from the start of the buffer, or leave a broken one there and return what is wrong with it."""
    found = _header(buffer)
    if isinstance(found, Broken):
        return found
    header, length, kind = found
    if length > RECORD_MAX_BYTES:
        _drop_to_next(buffer)  # the length may be wrong
        return "too_large"
    whole = len(header) + length
    if not buffer.fill(whole):
        return Broken(buffer.offset, "the record is cut off")
    buffer.fill(whole + len(END))
    if buffer.data[whole : whole + len(END)].strip(b"\r\n"):
        return Broken(buffer.offset, "another Content-Length than its block has")
    usual = header.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    record = Record(buffer.offset, kind, usual + bytes(buffer.data[len(header) : whole]) + END)
    buffer.drop(whole)
    return record


def _drop_to_next(buffer: _Buffer) -> None:
    """Drop everything before the next line that begins a record, at least one byte."""
    start = 1
    while not (found := _NEXT.search(buffer.data, start - 1)):
        start = max(1, len(buffer.data) - _NEXT_BYTES)
        if start > RECORD_MAX_BYTES:
            buffer.drop(start)
            start = 1
        if not buffer.fill(len(buffer.data) + 1):
            buffer.drop(len(buffer.data))
            return
    buffer.drop(found.end())


def _header(buffer: _Buffer) -> tuple[bytes, int, bytes] | Broken:
    """Return the header of a record, the length of its block and its type, or what is wrong with it."""
    end = None
    for size in (4_096, _HEADER_MAX_BYTES):
        buffer.fill(size)
        end = end or _HEADER_END.search(buffer.data, 0, size)
    if end is None or not _START.match(buffer.data):
        return Broken(buffer.offset, "expected the header of a WARC record")
    header = bytes(buffer.data[: end.end()])
    length, kind = LENGTH.search(header), _TYPE.search(header)
    if length is None or kind is None:
        return Broken(buffer.offset, "expected Content-Length and WARC-Type")
    return header, int(length[1]), kind[1].lower()


class Redirects:
    """The URLs that redirect to pages which have not come yet."""

    def __init__(self) -> None:
        self._sources: dict[str, list[str]] = {}

    def add(self, url: str, location: str) -> None:
        """Remember where a URL leads, which may be relative to it, in place of the oldest one if there are too many.

        Redirects to this URL lead to the new target from now on.
        """
        try:
            name, target = name_of_page(url), name_of_page(urljoin(url, location))
        except ValueError:
            return
        if name == target:
            return
        sources = [*self._sources.pop(target, []), *self._sources.pop(name, []), url]
        self._sources[target] = list(dict.fromkeys(sources))[:_SOURCES_MAX]
        if len(self._sources) > _TARGETS_MAX:
            del self._sources[next(iter(self._sources))]

    def take(self, url: str) -> list[str]:
        """Return the URLs that redirect to a page, at most 8, and forget them."""
        return self._sources.pop(name_of_page(url), [])


class WarcPage(NamedTuple):
    """A page as a crawler stored it."""

    offset: int  # byte of the unpacked file at which its record begins
    url: str  # the target URI
    observed_at: datetime  # the WARC-Date, with time zone
    content_type: str  # As the server sent it, or `text/html` if it sent none. Without a response, that of the record.
    content: bytes  # the page, without transfer and content encodings
    # Whether the crawler says that it did not store the whole page, or an encoding ends too early.
    is_cut_off: bool = False
    payload: str = ""  # The digest of the payload in base32 and the id of the record. Empty: the crawler gave none.


class Redirect(NamedTuple):
    """A response that leads to another URL for good."""

    url: str  # the target URI
    location: str  # where it leads, which may be relative to `url`


def is_available() -> bool:
    """Return whether the extra `crawl` is installed."""
    return find_spec("fastwarc") is not None


def read_warc(pieces: Iterator[bytes]) -> Iterator[WarcPage | Redirect | Broken | PassedOver]:
    """Yield what each record of an unpacked WARC file holds, of which at most one record is held.

    Pages are responses with status 200, resources and conversions of type HTML or plain text.
    """
    for record in split(pieces):
        yield _read(record) if isinstance(record, Record) else record


def _read(found: Record) -> WarcPage | Redirect | Broken | PassedOver:
    if found.kind not in _PAGE_KINDS and found.kind != b"revisit":
        return "no_response"
    from fastwarc.warc import WarcRecord

    try:
        record = WarcRecord.from_bytes(_with_usual_ends(found.data))
        record.parse_http(auto_decode="none")
        return _revisited(record) if found.kind == b"revisit" else _page(found, record)
    except OSError:  # its message may quote the page
        return Broken(found.offset, "its HTTP header or its encodings cannot be read")


def _with_usual_ends(data: bytes) -> bytes:
    """Return a record with the line ends that HTTP has, where its response has others."""
    start = data.index(b"\r\n\r\n") + 4
    head = _BARE_HEAD.match(data, start)
    if head is None:
        return data
    usual = head[0].replace(b"\n", b"\r\n")
    length = len(data) - start - len(END) + len(usual) - len(head[0])
    header = LENGTH.sub(b"Content-Length: %d\r" % length, data[:start], count=1)
    return header + usual + data[head.end() :]


def _revisited(record: "WarcRecord") -> Redirect | PassedOver:
    """Return the redirect that a revisit found again, if it was one.

    The file does not store a page that was found again.
    """
    return (_redirect(record) if record.is_http_parsed else None) or "revisit"


def _redirect(record: "WarcRecord") -> Redirect | None:
    url, location = _target(record), record.http_headers.get("Location")
    is_permanent = record.http_headers.status_code in PERMANENT
    return Redirect(url, location) if is_permanent and url and location else None


def _target(record: "WarcRecord") -> str:
    return (record.headers.get("WARC-Target-URI") or "").strip("<>").replace(" ", "%20")


def _page(found: Record, record: "WarcRecord") -> WarcPage | Redirect | Broken | PassedOver:
    url = _target(record)
    if not url or record.record_date is None:
        return Broken(found.offset, "expected WARC-Target-URI and WARC-Date")
    if url.startswith("metadata:"):  # what a crawler says of itself
        return "no_response"
    if found.kind == b"response" and url.startswith(("http:", "https:")) and not record.is_http_parsed:
        return Broken(found.offset, "expected an HTTP response")
    if record.is_http_parsed and record.http_headers.status_code != 200:
        return _redirect(record) or "http_status"
    headers = record.http_headers if record.is_http_parsed else record.headers
    content_type, body = headers.get("Content-Type") or "", _body(record)
    media_type = media_type_of(content_type, body.content)
    if len(body.content) > PAGE_MAX_BYTES:
        return "too_large"
    if media_type not in PAGE_TYPES or is_binary(body.content):
        return "media_type"
    if not body.content:
        return "empty"
    is_cut_off = body.is_cut_off or any(record.headers.get(name) is not None for name in _OF_A_PART)
    page = WarcPage(found.offset, url, record.record_date, content_type or media_type, body.content, is_cut_off)
    return page._replace(payload=_payload(record))


def _payload(record: "WarcRecord") -> str:
    digest, name = (record.headers.get(f"WARC-{field}") or "" for field in ("Payload-Digest", "Record-ID"))
    return f"{digest.removeprefix('sha1:')} {name}" if digest.startswith("sha1:") else ""


def _body(record: "WarcRecord") -> Body:
    stored = bytearray()
    while piece := record.reader.read():
        stored += piece
    if not record.is_http_parsed:
        return undo(bytes(stored), "identity", "identity", PAGE_MAX_BYTES)
    transfer, content = (_all(record, name) for name in ("transfer-encoding", "content-encoding"))
    return undo(bytes(stored), transfer, content, PAGE_MAX_BYTES)


def _all(record: "WarcRecord", name: str) -> str:
    """Return the values of a header that may be there several times."""
    return ",".join(value for each, value in record.http_headers.items() if each.lower() == name)
