"""A payload that no retry can make readable, why, and where it came from."""

from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b, sha256

from schemas.record import Headers, Outgoing, Record, header

HEAD_BYTES = 64 * 1024
DETAIL_CHARACTERS = 500
PRIVATE_HEADER = "nearstream-private"
ID_HEADER = "nearstream-dead-id"
REASON_HEADER = "nearstream-dead-reason"
REPLAYS_HEADER = "nearstream-dead-replays"
_OUR_HEADERS_BYTES = 8 * 1024


class Reason(StrEnum):
    """Why a record is a dead letter; closed for the worker, an open string for readers."""

    EMPTY_VALUE = "empty_value"
    TOO_LARGE = "too_large"
    DECOMPRESSION_LIMIT = "decompression_limit"
    UNSUPPORTED_CONTENT_TYPE = "unsupported_content_type"
    NOT_JSON = "not_json"
    INVALID_MESSAGE = "invalid_message"
    INVALID_ID = "invalid_id"
    INVALID_TIME = "invalid_time"
    NO_CONTENT = "no_content"
    SEVERAL_CONTENTS = "several_contents"
    EXTRACTION_FAILED = "extraction_failed"
    INVALID_SIGNATURE = "invalid_signature"
    OTHER_SCHEME = "other_scheme"
    SKIPPED_BY_OPERATOR = "skipped_by_operator"


class Stage(StrEnum):
    """Where in a document's way the record was refused."""

    DECODE = "decode"
    EXTRACT = "extract"
    SIGN = "sign"
    MATCH = "match"
    SKIP = "skip"


class Payload(StrEnum):
    """How much of the original bytes a dead letter keeps."""

    FULL = "full"
    HEAD = "head"
    HASH = "hash"


@dataclass(frozen=True)
class DeadLetter:
    """A refused record with the reason; `detail` holds path and expectation, never a value of the payload."""

    record: Record
    stage: Stage
    reason: Reason
    detail: str


def dead_id(topic: str, partition: int, offset: int) -> str:
    """Deterministic id of the letter about one record, 32 hex: a redelivery writes the same."""
    return blake2b(f"{topic}/{partition}/{offset}".encode(), digest_size=16).hexdigest()


def outgoing(letter: DeadLetter, topic: str, worker: str, payload: Payload, max_bytes: int) -> Outgoing:
    """The letter as a record: original value, key and headers, then ours.

    Args:
        letter: What was refused, and why.
        topic: Where letters go.
        worker: `nearstream/<version> <role>`; no host name.
        payload: How much of the bytes to keep; a record marked private is always `HASH`.
        max_bytes: Limit of the topic, uncompressed; a larger letter goes as `HEAD`, without its
            foreign headers where these alone are too large.
    """
    record = letter.record
    if header(record.headers, PRIVATE_HEADER) == b"1":
        payload = Payload.HASH
    if payload is Payload.FULL and size_of(record.key, record.value, record.headers) > max_bytes - _OUR_HEADERS_BYTES:
        payload = Payload.HEAD
    ours = _headers(letter, worker, payload)
    if payload is Payload.HASH:
        key = None if record.key is None else blake2b(record.key, digest_size=16).digest()
        return Outgoing(topic, key, b"", ours)
    value = record.value if payload is Payload.FULL else (record.value or b"")[:HEAD_BYTES]
    key, foreign = record.key, record.headers
    if size_of(key, value, foreign) > max_bytes - _OUR_HEADERS_BYTES:
        key, foreign = None if key is None else key[:HEAD_BYTES], []
    return Outgoing(topic, key, b"" if value is None else value, [*foreign, *ours])


def _headers(letter: DeadLetter, worker: str, payload: Payload) -> Headers:
    record, value = letter.record, letter.record.value or b""
    detail = letter.detail[:DETAIL_CHARACTERS]
    place = {"topic": record.topic, "partition": str(record.partition), "offset": str(record.offset)}
    pairs = {
        ID_HEADER: dead_id(record.topic, record.partition, record.offset),
        REASON_HEADER: letter.reason,
        "nearstream-dead-detail": detail,
        "nearstream-dead-stage": letter.stage,
        "nearstream-dead-worker": worker,
        **{f"nearstream-dead-{name}": text for name, text in place.items()},
        "nearstream-dead-timestamp": str(record.timestamp_ms),
        REPLAYS_HEADER: str(replays_of(record.headers)),
        "nearstream-dead-bytes": str(len(value)),
        "nearstream-dead-sha256": sha256(value).hexdigest(),
        "nearstream-dead-payload": payload,
        # Aliases that Kafka Connect tools read (KIP-298).
        **{f"__connect.errors.{name}": text for name, text in place.items()},
        "__connect.errors.stage": letter.stage,
        "__connect.errors.class.name": worker,
        "__connect.errors.exception.class.name": "InvalidMessageError",
        "__connect.errors.exception.message": detail,
    }
    return [(name, text.encode()) for name, text in pairs.items()]


def replays_of(headers: Headers) -> int:
    """How often a record was sent again after it had been refused."""
    text = header(headers, REPLAYS_HEADER) or b"0"
    return int(text) if text.isdigit() and len(text) < 4 else 0


def size_of(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """Uncompressed bytes of a record, with room for the lengths in front of each part."""
    parts = sum(len(name.encode("utf-8", "surrogatepass")) + len(text or b"") + 20 for name, text in headers)
    return len(key or b"") + len(value or b"") + parts + 128
