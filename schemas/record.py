"""Kafka records as plain values, consumed and to be produced."""

from typing import NamedTuple

Headers = list[tuple[str, bytes | None]]
TRACEPARENT_MAX_BYTES = 128
PAGE_PARTS_HEADER = "nearstream-page-parts"
PAGE_PARTS_MAX_BYTES = 4_608


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
    """Return the value of a header.

    If a name is repeated, the last header counts.

    Returns:
        None if there is no such header, or its value is null.
    """
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


def page_parts(headers: Headers) -> bytes:
    """Return the hashes of the parts of a web page, or nothing."""
    value = header(headers, PAGE_PARTS_HEADER) or b""
    return value if len(value) <= PAGE_PARTS_MAX_BYTES else b""


def page_parts_headers(parts: bytes) -> Headers:
    """Return the header with the hashes of the parts of a page, or none."""
    return [(PAGE_PARTS_HEADER, parts)] if parts else []
