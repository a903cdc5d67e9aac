"""Dead letters: refused records, written and read back."""

import re
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b, sha256
from typing import Literal

from nearstream.schemas.documents.document import YEAR_9999_MS
from nearstream.schemas.documents.record import ConsumerRecord, Headers, ProducerRecord, header

HEAD_BYTES = 64 * 1024
DETAIL_CHARACTERS = 500
MAX_REPLAYS = 3
PLACE_CHARACTERS = 64  # as much as the subject of an alert may have
NOT_OURS = "(no dead letter of nearstream)"  # in place of the reason of another record of the topic

PRIVATE_HEADER = "nearstream-private"  # of the producer: "1" keeps the record's bytes out of dead letters
ID_HEADER = "nearstream-dead-id"  # the first of ours
REASON_HEADER = "nearstream-dead-reason"
DETAIL_HEADER = "nearstream-dead-detail"
STAGE_HEADER = "nearstream-dead-stage"
WORKER_HEADER = "nearstream-dead-worker"
TOPIC_HEADER = "nearstream-dead-topic"
PARTITION_HEADER = "nearstream-dead-partition"
OFFSET_HEADER = "nearstream-dead-offset"
TIMESTAMP_HEADER = "nearstream-dead-timestamp"
REPLAYS_HEADER = "nearstream-dead-replays"
BYTES_HEADER = "nearstream-dead-bytes"
SHA256_HEADER = "nearstream-dead-sha256"
PAYLOAD_HEADER = "nearstream-dead-payload"
FROM_HEADER = "nearstream-dead-from"

_OUR_HEADERS_BYTES = 8 * 1024
# Room for what Kafka adds: the header of the batch and of the record, and two lengths for each header.
_RECORD_OVERHEAD_BYTES = 128
_HEADER_OVERHEAD_BYTES = 20
_NUMBER = re.compile(r"-?[0-9]{1,19}")


class Reason(StrEnum):
    """Why a record was refused.

    Workers write only these. A reader must accept others, which a later release may write.
    """

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
    UNPROCESSABLE = "unprocessable"


# Why a content is refused, which is what a site or a sender sent. Any other reason may be a fault of the deployment.
OF_CONTENT = {Reason.EMPTY_VALUE, Reason.TOO_LARGE, Reason.DECOMPRESSION_LIMIT, Reason.EXTRACTION_FAILED}


# The step at which a record was refused.
Stage = Literal["decode", "extract", "sign", "match", "decide", "alert", "skip"]


@dataclass(frozen=True)
class DeadLetter:
    """A refused record with the reason."""

    record: ConsumerRecord  # the refused record
    stage: Stage  # the step at which it was refused
    reason: Reason  # what is wrong with it
    detail: str  # The path of the field with what was expected. It never holds a value of the payload.
    came_from: str = "collection"  # the sender's domain, site or collection that the record came from


@dataclass(frozen=True)
class StoredDeadLetter:
    """A dead letter, read back from its topic."""

    record: ConsumerRecord  # the record on the dead-letter topic
    original: ConsumerRecord  # the refused record, as far as the dead letter keeps it
    reason: str  # a `Reason`, or one of a later release
    stage: str  # a `Stage`, or one of a later release
    detail: str  # the path of the field with what was expected
    worker: str  # release and role of the worker that refused the record
    replays: int  # how often the record had been sent again before this refusal
    size: int  # bytes of the original value
    sha256: str  # SHA-256 of the original value, 64 hex characters
    payload: str  # `full`, `head` or `hash`, or one of a later release
    came_from: str  # where the record came from

    @property
    def dead_id(self) -> str:
        """The id of all dead letters about this refused record, see `dead_id`."""
        return dead_id(self.original.topic, self.original.partition, self.original.offset)

    @property
    def is_whole(self) -> bool:
        """Whether the dead letter certainly holds the whole original.

        False if the value is empty, because a null value is stored as an empty one too.
        """
        return self.payload == "full" and self.size > 0


def dead_id(topic: str, partition: int, offset: int) -> str:
    """Return the id of dead letters about one record, 32 hex characters.

    It is blake2b-16 of `topic/partition/offset`, so a redelivered record gets an equal id.
    """
    return blake2b(f"{topic}/{partition}/{offset}".encode(), digest_size=16).hexdigest()


def outgoing(dead_letter: DeadLetter, topic: str, worker: str, payload: str, max_bytes: int) -> ProducerRecord:
    """Return a dead letter as a record for its topic.

    The payload `full` keeps the original value, key and headers, followed by our headers, and `head` the first 64 KiB
    of the value. `hash` keeps no bytes: only the size and hash of the value, and a hash of the key. A record marked
    private is always kept as `hash`, one of more than `max_bytes` as `head`. If key and headers alone are too large,
    the original headers are dropped and the key is cut.
    """
    record = dead_letter.record
    if header(record.headers, PRIVATE_HEADER) == b"1":
        payload = "hash"
    if payload == "full" and size_of(record.key, record.value, record.headers) > max_bytes - _OUR_HEADERS_BYTES:
        payload = "head"
    ours = _headers(dead_letter, worker, payload)
    if payload == "hash":
        key = None if record.key is None else blake2b(record.key, digest_size=16).digest()
        return ProducerRecord(topic, key, b"", ours)
    value = record.value if payload == "full" else (record.value or b"")[:HEAD_BYTES]
    key, original_headers = record.key, record.headers
    if size_of(key, value, original_headers) > max_bytes - _OUR_HEADERS_BYTES:
        key, original_headers = None if key is None else key[:HEAD_BYTES], []
    return ProducerRecord(topic, key, b"" if value is None else value, [*original_headers, *ours])


def read_dead_letter(record: ConsumerRecord) -> StoredDeadLetter | None:
    """Read a record of the dead-letter topic, None if it is no dead letter of ours."""
    first = _first_of_ours(record.headers)
    ours = record.headers[first:]
    topic = text_of(ours, TOPIC_HEADER)
    try:
        partition, offset, timestamp_ms, size = (
            _number(text_of(ours, name)) for name in (PARTITION_HEADER, OFFSET_HEADER, TIMESTAMP_HEADER, BYTES_HEADER)
        )
    except ValueError:
        return None
    if header(ours, ID_HEADER) != dead_id(topic, partition, offset).encode() or min(partition, offset, size) < 0:
        return None
    if timestamp_ms > YEAR_9999_MS:  # which no client of Kafka could send again
        return None
    headers = record.headers[:first]
    return StoredDeadLetter(
        record=record,
        original=ConsumerRecord(topic, partition, offset, timestamp_ms, record.key, record.value, headers),
        reason=text_of(ours, REASON_HEADER),
        stage=text_of(ours, STAGE_HEADER),
        detail=text_of(ours, DETAIL_HEADER),
        worker=text_of(ours, WORKER_HEADER),
        replays=replays_of(ours),
        size=size,
        sha256=text_of(ours, SHA256_HEADER),
        payload=text_of(ours, PAYLOAD_HEADER),
        came_from=text_of(ours, FROM_HEADER)[:PLACE_CHARACTERS],
    )


def sent_again(dead_letter: StoredDeadLetter, original: ConsumerRecord) -> ProducerRecord:
    """Return the refused record as it is sent again to its topic. Only the count of replays changes."""
    headers: Headers = [pair for pair in original.headers if pair[0] != REPLAYS_HEADER]
    headers.append((REPLAYS_HEADER, str(dead_letter.replays + 1).encode()))
    timestamp_ms = original.timestamp_ms if original.timestamp_ms >= 0 else None
    return ProducerRecord(original.topic, original.key, original.value, headers, timestamp_ms)


def replays_of(headers: Headers) -> int:
    """Return how often a record was sent again after a refusal, 0 if that is no number of at most 3 digits."""
    text = header(headers, REPLAYS_HEADER) or b"0"
    return int(text) if text.isdigit() and len(text) < 4 else 0


def size_of(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """Return an upper bound of the uncompressed bytes of a record."""
    header_bytes = sum(
        len(name.encode("utf-8", "surrogatepass")) + len(text or b"") + _HEADER_OVERHEAD_BYTES for name, text in headers
    )
    return len(key or b"") + len(value or b"") + header_bytes + _RECORD_OVERHEAD_BYTES


def _headers(dead_letter: DeadLetter, worker: str, payload: str) -> Headers:
    record, value = dead_letter.record, dead_letter.record.value or b""
    pairs = {
        ID_HEADER: dead_id(record.topic, record.partition, record.offset),
        REASON_HEADER: dead_letter.reason,
        DETAIL_HEADER: dead_letter.detail[:DETAIL_CHARACTERS],
        STAGE_HEADER: dead_letter.stage,
        WORKER_HEADER: worker,
        TOPIC_HEADER: record.topic,
        PARTITION_HEADER: str(record.partition),
        OFFSET_HEADER: str(record.offset),
        TIMESTAMP_HEADER: str(record.timestamp_ms),
        REPLAYS_HEADER: str(replays_of(record.headers)),
        BYTES_HEADER: str(len(value)),
        SHA256_HEADER: sha256(value).hexdigest(),
        PAYLOAD_HEADER: payload,
        FROM_HEADER: dead_letter.came_from,
    }
    return [(name, text.encode()) for name, text in pairs.items()]


def _first_of_ours(headers: Headers) -> int:
    """Return the index of the first header that the last refusal added.

    The refused record may itself be a dead letter, whose headers come before ours.
    """
    indices = [index for index, (name, _) in enumerate(headers) if name == ID_HEADER]
    return indices[-1] if indices else len(headers)


def text_of(headers: Headers, name: str) -> str:
    """Return the last header of this name as a text, empty without one."""
    return (header(headers, name) or b"").decode("utf-8", "replace")


def _number(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"expected a number, got {text[:20]!r}")
    return int(text)
