"""A Kafka record as plain values, on its way in or out."""

from typing import NamedTuple

Headers = list[tuple[str, bytes | None]]
TRACEPARENT_MAX_BYTES = 128


class Record(NamedTuple):
    """A record as it was consumed; headers are the pairs as sent, repeats and nulls kept."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers


class Outgoing(NamedTuple):
    """A record to be sent; without `timestamp_ms` it carries the time of sending."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: int | None = None


def header(headers: Headers, name: str) -> bytes | None:
    """Value of the last header of this name, or None; of repeated headers the last one wins."""
    for key, value in reversed(headers):
        if key == name:
            return value
    return None


def traceparent(headers: Headers) -> bytes | None:
    """The W3C trace that a record belongs to; None if it has none, or what no trace can be.

    A trace has 55 bytes; whatever else stands there must not grow a record beyond its topic's limit.
    """
    value = header(headers, "traceparent")
    return value if value and len(value) <= TRACEPARENT_MAX_BYTES else None
