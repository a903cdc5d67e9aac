"""Kafka records as plain values, consumed and to be produced."""

import re
from typing import NamedTuple

Headers = list[tuple[str, bytes | None]]
INPUT = "input"  # the topic of a record that came from no topic
TRACEPARENT_MAX_BYTES = 128
PAGE_PARTS_HEADER = "nearstream-page-parts"
PAGE_PARTS_MAX_BYTES = 4_608
PAGE_DECLARED_HEADER = "nearstream-page-declared"
PAGE_DECLARED_MAX_BYTES = 2_048
PAGE_PAYLOAD_HEADER = "nearstream-page-payload"
PAGE_ETAG_HEADER, PAGE_MODIFIED_HEADER = "nearstream-page-etag", "nearstream-page-modified"
_PAYLOAD = re.compile(rb"[A-Z2-7]{32}(?: <urn:uuid:[0-9A-Fa-f-]{36}>)?")
_ETAG, _MODIFIED = re.compile(rb"[\x21-\x7e]{1,128}"), re.compile(rb"[\x20-\x7e]{1,40}")
# The last fields of `PageFacts`.
_AS_SENT = (PAGE_PAYLOAD_HEADER, _PAYLOAD), (PAGE_ETAG_HEADER, _ETAG), (PAGE_MODIFIED_HEADER, _MODIFIED)
_PARTS, _DECLARED = (PAGE_PARTS_HEADER, PAGE_PARTS_MAX_BYTES), (PAGE_DECLARED_HEADER, PAGE_DECLARED_MAX_BYTES)


class ConsumerRecord(NamedTuple):
    """A record as it was consumed.

    `headers` holds the pairs as they were sent, with repeated names and null values.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers


class ProducerRecord(NamedTuple):
    """A record to send.

    If `timestamp_ms` is None, the record gets the time of sending.
    """

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: int | None = None


def header(headers: Headers, name: str) -> bytes | None:
    """Return the value of the last header of this name, None without one, or if its value is null."""
    for key, value in reversed(headers):
        if key == name:
            return value
    return None


def traceparent(headers: Headers) -> bytes | None:
    """Return the W3C trace context of a record, if it has one.

    A trace context has 55 bytes. A value above `TRACEPARENT_MAX_BYTES` is ignored, because copying it could make a
    record larger than its topic allows.
    """
    value = header(headers, "traceparent")
    return value if value and len(value) <= TRACEPARENT_MAX_BYTES else None


class PageFacts(NamedTuple):
    """What was read of a web page beside its text, for the decision about it."""

    parts: bytes = b""  # The hashes of the parts of the page, packed. Empty: the document was no page.
    declared: str = ""  # The lineage of the page that it declares as its canonical one. Empty: it declares none.
    # SHA-1 of what the server sent, in base32, and after a space the id of the WARC record that holds it, if there is
    # one. Empty: it is not known.
    payload: str = ""
    etag: str = ""  # What the server sent as ETag. Empty: nothing.
    modified: str = ""  # What it sent as Last-Modified. Empty: nothing.


def page_facts(headers: Headers) -> PageFacts:
    """Return what the headers of a record say about a web page."""
    parts, declared = (_bounded(headers, *each) for each in (_PARTS, _DECLARED))
    return as_sent(PageFacts(parts, declared.decode("utf-8", "replace")), headers)


def page_headers(page: PageFacts) -> Headers:
    """Return the headers that say what was read of a web page."""
    values = (
        (PAGE_PARTS_HEADER, page.parts),
        (PAGE_DECLARED_HEADER, page.declared.encode("utf-8", "surrogatepass")),
        *((name, value.encode("ascii", "ignore")) for (name, _), value in zip(_AS_SENT, page[2:], strict=True)),
    )
    return [(name, value) for name, value in values if value]


def as_sent(page: PageFacts, headers: Headers) -> PageFacts:
    """Return what was read of a page, with what its producer says of the response.

    What is not valid is left out.
    """
    said = [_valid(header(headers, name) or b"", pattern) for name, pattern in _AS_SENT]
    return PageFacts(*page[:2], *(new or old for new, old in zip(said, page[2:], strict=True)))


def _valid(value: bytes, pattern: re.Pattern[bytes]) -> str:
    return value.decode("ascii") if pattern.fullmatch(value) else ""


def _bounded(headers: Headers, name: str, most: int) -> bytes:
    value = header(headers, name) or b""
    return value if len(value) <= most else b""
