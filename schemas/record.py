"""A Kafka record as plain values, on its way in or out."""

from typing import NamedTuple

Headers = list[tuple[str, bytes | None]]


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
