"""Read the pages of a WARC file, one record at a time."""

import re
from collections.abc import Iterator
from datetime import datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from nearstream.streams.ingest.media_type import PAGE_TYPES, is_binary, media_type_of
from nearstream.workers.crawl.http_body import Body, EncodingError, undo
from nearstream.workers.crawl.records import END, LENGTH, Broken, PassedOver, Record, split
from nearstream.workers.crawl.redirects import PERMANENT

if TYPE_CHECKING:
    from fastwarc.warc import WarcRecord

PAGE_MAX_BYTES = 4 * 1024 * 1024  # after its transfer and content encodings are undone

_OF_A_PART = ("WARC-Truncated", "WARC-Segment-Number")  # the other segments follow as records of another type
_BARE_HEAD = re.compile(rb"HTTP/[^\r\n]{1,1024}\n(?>(?:[^\r\n]{1,16384}\n){0,256})\n")
_PAGE_KINDS = frozenset({b"response", b"resource", b"conversion"})


class WarcPage(NamedTuple):
    """A page as a crawler stored it.

    Attributes:
        offset: Byte of the unpacked file at which its record begins.
        url: The target URI.
        observed_at: The WARC-Date, with time zone.
        content_type: As the server sent it, or `text/html` if it sent none. Without a response, that of the record.
        content: The page, without transfer and content encodings.
        is_cut_off: Whether the crawler says that it did not store the whole page, or an encoding ends too early.
        payload: The digest of the payload in base32 and the id of the record. Empty: the crawler gave none.
    """

    offset: int
    url: str
    observed_at: datetime
    content_type: str
    content: bytes
    is_cut_off: bool = False
    payload: str = ""


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

    Pages are responses with status 200, resources and conversions of type HTML or plain text. At most one record is
    held.

    Args:
        pieces: The unpacked file.
    """
    for record in split(pieces):
        yield _read(record) if isinstance(record, Record) else record


def _read(found: Record) -> WarcPage | Redirect | Broken | PassedOver:
    if found.kind not in _PAGE_KINDS and found.kind != b"revisit":
        return PassedOver("no_response")
    from fastwarc.warc import WarcRecord

    try:
        record = WarcRecord.from_bytes(_with_usual_ends(found.data))
        record.parse_http(auto_decode="none")
        return _revisited(record) if found.kind == b"revisit" else _page(found, record)
    except (OSError, EncodingError):  # its message may quote the page
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
    return (_redirect(record) if record.is_http_parsed else None) or PassedOver("revisit")


def _redirect(record: "WarcRecord") -> Redirect | None:
    """Return the permanent redirect that a record with an HTTP response holds."""
    url, location = _target(record), record.http_headers.get("Location")
    is_permanent = record.http_headers.status_code in PERMANENT
    return Redirect(url, location) if is_permanent and url and location else None


def _target(record: "WarcRecord") -> str:
    return (record.headers.get("WARC-Target-URI") or "").strip("<>").replace(" ", "%20")


def _page(found: Record, record: "WarcRecord") -> WarcPage | Redirect | Broken | PassedOver:
    """Return what a record holds.

    Raises:
        EncodingError: The encodings of a response cannot be undone.
    """
    url = _target(record)
    if not url or record.record_date is None:
        return Broken(found.offset, "expected WARC-Target-URI and WARC-Date")
    if url.startswith("metadata:"):  # what a crawler says of itself
        return PassedOver("no_response")
    if found.kind == b"response" and url.startswith(("http:", "https:")) and not record.is_http_parsed:
        return Broken(found.offset, "expected an HTTP response")
    if record.is_http_parsed and record.http_headers.status_code != 200:
        return _redirect(record) or PassedOver("http_status")
    headers = record.http_headers if record.is_http_parsed else record.headers
    content_type, body = headers.get("Content-Type") or "", _body(record)
    media_type = media_type_of(content_type, body.content)
    if len(body.content) > PAGE_MAX_BYTES:
        return PassedOver("too_large")
    if media_type not in PAGE_TYPES or is_binary(body.content):
        return PassedOver("media_type")
    if not body.content:
        return PassedOver("empty")
    is_cut_off = body.is_cut_off or any(record.headers.get(name) is not None for name in _OF_A_PART)
    page = WarcPage(found.offset, url, record.record_date, content_type or media_type, body.content, is_cut_off)
    return page._replace(payload=_payload(record))


def _payload(record: "WarcRecord") -> str:
    digest, name = (record.headers.get(f"WARC-{field}") or "" for field in ("Payload-Digest", "Record-ID"))
    return f"{digest.removeprefix('sha1:')} {name}" if digest.startswith("sha1:") else ""


def _body(record: "WarcRecord") -> Body:
    """Return the content of a record, cut off at one byte more than allowed."""
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
