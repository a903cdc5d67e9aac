"""Bytes to messages and back, with the headers of events."""

from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from schemas.dead_letter import Reason
from schemas.document import Document
from schemas.events import Event, Retraction, kind_of
from schemas.record import Headers
from schemas.signature import Signature

SIGNATURE_MAX_BYTES = 128 * 1024
_EXPECTED = {
    "`$.id`": "1 to 512 characters, none a control character",
    "`$.lineage`": "one character or more, none a control character",
    "`key` in `$.labels`": "1 to 31 lower-case letters, digits, dashes",
}
_UTF8_BOM = b"\xef\xbb\xbf"
_REASON_OF_PATH = {"id": Reason.INVALID_ID, "observed_at": Reason.INVALID_TIME}


class InvalidMessageError(Exception):
    """Data that no retry can make readable.

    Attributes:
        reason: The kind of fault.
        detail: Path and expectation, never a value of the payload.
    """

    def __init__(self, reason: Reason, detail: str) -> None:
        """Holds the reason with its detail."""
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


_Message = TypeVar("_Message", Document, Event)

_DOCUMENT = msgspec.json.Decoder(Document)
_EVENT: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)
_JSON = msgspec.json.Encoder()
_MSGPACK = msgspec.msgpack.Encoder()
_SIGNATURE = msgspec.msgpack.Decoder(Signature)


def decode_document(value: bytes) -> Document:
    """The document of a JSON record.

    Raises:
        InvalidMessageError: `not_json`, `invalid_id`, `invalid_time` or `invalid_message`.
    """
    return _decode_json(_DOCUMENT, value)


def decode_event(value: bytes) -> Event:
    """The relation event or retraction of a JSON record.

    Raises:
        InvalidMessageError: It is none, or of an unknown type.
    """
    return _decode_json(_EVENT, value)


def decode_signature(value: bytes) -> Signature:
    """The signature of a msgpack record; its byte fields are not looked into.

    Raises:
        InvalidMessageError: `invalid_signature`.
    """
    if len(value) > SIGNATURE_MAX_BYTES:
        raise InvalidMessageError(Reason.INVALID_SIGNATURE, f"at most {SIGNATURE_MAX_BYTES} bytes expected")
    try:
        return _SIGNATURE.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidMessageError(Reason.INVALID_SIGNATURE, _detail(error)) from None


def reason_of(field: str) -> Reason:
    """Why a document is refused whose field of this name is wrong."""
    return _REASON_OF_PATH.get(field, Reason.INVALID_MESSAGE)


def encode_document(document: Document) -> bytes:
    """JSON, defaults left out."""
    return _JSON.encode(document)


def encode_event(event: Event) -> bytes:
    """JSON with `type` first; the same event always gives the same bytes."""
    return _JSON.encode(event)


def encode_signature(signature: Signature) -> bytes:
    """A msgpack array."""
    return _MSGPACK.encode(signature)


def event_headers(event: Event, sent_at: datetime, traceparent: bytes | None = None) -> Headers:
    """CloudEvents 1.0 attributes in Kafka binary mode; only `ce_time` differs between two statements."""
    subject = event.document_id if isinstance(event, Retraction) else event.newer.id
    pairs: Headers = [
        ("ce_specversion", b"1.0"),
        ("ce_id", event.event_id.encode()),
        ("ce_source", f"/nearstream/{event.collection}".encode()),
        ("ce_type", f"nearstream.{kind_of(event)}.v1".encode()),
        ("ce_subject", subject.encode()),
        ("ce_time", sent_at.astimezone(UTC).isoformat().replace("+00:00", "Z").encode()),
        ("ce_scheme", event.scheme.encode()),
        ("content-type", b"application/json"),
    ]
    if traceparent is not None:
        pairs.append(("traceparent", traceparent))
    return pairs


def _decode_json(decoder: msgspec.json.Decoder[_Message], value: bytes) -> _Message:
    try:
        return decoder.decode(value.removeprefix(_UTF8_BOM))
    except msgspec.ValidationError as error:
        raise InvalidMessageError(_reason(str(error)), _detail(error)) from None
    # Invalid UTF-8 raises UnicodeDecodeError, deep nesting in an unknown field RecursionError.
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidMessageError(Reason.NOT_JSON, _detail(error)) from None


def _reason(message: str) -> Reason:
    """The reason by the field that msgspec names at the end: "... - at `$.field...`"."""
    _, _, path = message.rpartition(" - at `$.")
    return reason_of(path.removesuffix("`"))


def _detail(error: Exception) -> str:
    """Path and expectation; msgspec tells a pattern as it stands, which few people read."""
    if isinstance(error, UnicodeDecodeError):
        return "UTF-8 expected"  # its own text quotes a byte of the payload
    message, at, path = str(error).rpartition(" - at ")
    if " matching regex " in message:
        message = f"Expected {_EXPECTED.get(path, 'lower-case letters, digits, dashes')}"
    return f"{message}{at}{path}"
