"""Conversion between messages and bytes, and the headers of events."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from nearstream.schemas.alerts.alert import Alert
from nearstream.schemas.checks.check import LabelRequest
from nearstream.schemas.documents.document import OFFSET_MAX, PARTITION_MAX, Document
from nearstream.schemas.documents.record import Headers, header
from nearstream.schemas.documents.signature import SIGNATURE_MAX_BYTES, Origin, Signature
from nearstream.schemas.labels.decision import Decision
from nearstream.schemas.labels.label import Label, LabelChange
from nearstream.schemas.topics.dead_letter import Reason
from nearstream.schemas.verdicts.events import Event, kind_of, subject_of

ORIGIN_HEADER = "nearstream-origin"
_ORIGIN = re.compile(r"\A([A-Za-z0-9._-]{1,249})/([0-9]{1,5})/([0-9]{1,15})")
# What the patterns in `document.py` allow, by the path in the error of msgspec.
_EXPECTED = {
    "`$.id`": "1 to 512 characters without control characters",
    "`$.lineage`": "at least one character, no control characters",
    "`key` in `$.labels`": "1 to 31 lower-case letters, digits, dashes",
}
# Only the content of a document may be larger than `_FIELD_MAX_BYTES`. Smaller documents are read at once.
_LARGE_BYTES = 64 * 1024
_CONTENTS = frozenset({"text", "html", "raw"})
_FIELD_MAX_BYTES = 64 * 1024  # in JSON
_UTF8_BOM = b"\xef\xbb\xbf"
_UNKNOWN_FIELD = "Object contains unknown field"
_QUOTING = ("Invalid enum value", "Invalid value")  # how errors of msgspec begin that quote a value
_REASON_OF_PATH = {"id": Reason.INVALID_ID, "observed_at": Reason.INVALID_TIME}


class InvalidMessageError(Exception):
    """Data that cannot be read, which no retry changes.

    Attributes:
        reason: What is wrong, as dead letters name it.
        detail: The path of the field with what was expected. It never holds a value of the payload.
    """

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


_Message = TypeVar("_Message")

_DOCUMENT = msgspec.json.Decoder(Document)
_FIELDS = [field.encode_name for field in msgspec.structs.fields(Document)]
_AS_SENT = msgspec.json.Decoder(msgspec.defstruct("AsSent", [(name, msgspec.Raw, msgspec.Raw()) for name in _FIELDS]))
_EVENT: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)
_JSON = msgspec.json.Encoder()
_MSGPACK = msgspec.msgpack.Encoder()
_SIGNATURE = msgspec.msgpack.Decoder(Signature)
_SIGNATURE_LINE = msgspec.json.Decoder(Signature)


def decode_document(value: bytes) -> Document:
    """Decode a document from JSON, with or without a byte order mark."""
    return _decoded(_DOCUMENT.decode, _without_junk(value) if len(value) > _LARGE_BYTES else value)


def _without_junk(value: bytes) -> bytes:
    """Return a large document in JSON without repeated and unknown fields.

    To compare a million labels with their pattern would hold the interpreter for half a second.
    """
    sent = _decoded(_AS_SENT.decode, value)
    fields = {name: raw for name in _FIELDS if (raw := bytes(getattr(sent, name)))}
    for name, raw in fields.items():
        if name not in _CONTENTS and len(raw) > _FIELD_MAX_BYTES:
            raise InvalidMessageError(reason_of(name), f"Expected at most {_FIELD_MAX_BYTES} bytes - at `$.{name}`")
    return b"{" + b",".join(b'"%b":%b' % (name.encode(), raw) for name, raw in fields.items()) + b"}"


def decode_event(value: bytes) -> Event:
    """Decode a verdict, a relation event or a retraction from JSON."""
    return _decoded(_EVENT.decode, value)


def decode_json(kind: type[_Message], value: bytes) -> _Message:
    """Decode a message of any other kind from JSON."""
    return _decoded(msgspec.json.Decoder(kind).decode, value)


def decode_label_request(value: bytes) -> LabelRequest:
    """Decode from JSON what a client of the HTTP API says about a document."""
    request = decode_json(LabelRequest, value)
    if (request.id is None) is (request.signature is None):
        raise InvalidMessageError(Reason.INVALID_MESSAGE, "expected either $.id or $.signature")
    return request


def decode_signature(value: bytes) -> Signature:
    """Decode a signature from msgpack, without checking its byte fields."""
    if len(value) > SIGNATURE_MAX_BYTES:
        raise InvalidMessageError(Reason.INVALID_SIGNATURE, f"expected at most {SIGNATURE_MAX_BYTES} bytes")
    try:
        return _SIGNATURE.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidMessageError(Reason.INVALID_SIGNATURE, _detail(error)) from None


def reason_of(field: str) -> Reason:
    """Return the reason for refusing a document with this invalid field."""
    return _REASON_OF_PATH.get(field, Reason.INVALID_MESSAGE)


def encode_json(message: Document | Event | Decision | Alert | Label | LabelChange) -> bytes:
    """Encode a message as JSON, with `type` first if it has one. Equal messages give equal bytes."""
    return _JSON.encode(message)


def encode_signature(signature: Signature) -> bytes:
    """Encode a signature as a msgpack array."""
    return _MSGPACK.encode(signature)


def encode_signature_line(signature: Signature) -> bytes:
    """Encode a signature as a JSON array in one line, with bytes in base64, for files."""
    return _JSON.encode(signature)


def decode_signature_line(line: bytes) -> Signature:
    """Decode a signature from the line that `encode_signature_line` has made."""
    try:
        signature = _SIGNATURE_LINE.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidMessageError(Reason.INVALID_SIGNATURE, _detail(error)) from None
    if len(encode_signature(signature)) > SIGNATURE_MAX_BYTES:
        raise InvalidMessageError(Reason.INVALID_SIGNATURE, f"expected at most {SIGNATURE_MAX_BYTES} bytes")
    return signature


def origin_header(origin: Origin) -> tuple[str, bytes]:
    """Return the header by which a removal on `signatures` names its record on `documents`."""
    return ORIGIN_HEADER, f"{origin.topic}/{origin.position}".encode()


def origin_of(headers: Headers) -> Origin | None:
    """Return the origin that a removal names, None if it names none or cannot be read."""
    match = _ORIGIN.fullmatch((header(headers, ORIGIN_HEADER) or b"").decode("utf-8", "replace"))
    if match is None or int(match[2]) > PARTITION_MAX or int(match[3]) > OFFSET_MAX:
        return None
    return Origin(match[1], int(match[2]), int(match[3]))


def event_headers(event: Event | Alert | LabelChange, sent_at: datetime, traceparent: bytes | None = None) -> Headers:
    """Return the Kafka headers of an event: CloudEvents 1.0 in binary mode.

    When an event is sent again, only `ce_time` differs. The trace is that of the record that caused the event.
    """
    pairs: Headers = [
        ("ce_specversion", b"1.0"),
        ("ce_id", event.event_id.encode()),
        ("ce_source", f"/nearstream/{event.collection}".encode()),
        ("ce_type", f"nearstream.{kind_of(event)}.v1".encode()),
        ("ce_subject", subject_of(event).encode()),
        ("ce_time", sent_at.astimezone(UTC).isoformat().replace("+00:00", "Z").encode()),
        ("ce_scheme", event.scheme.encode()),
        ("content-type", b"application/json"),
    ]
    if traceparent is not None:
        pairs.append(("traceparent", traceparent))
    return pairs


def time_sent(headers: Headers) -> datetime | None:
    """Return when an event was sent, by `ce_time`, or None if that is missing or not a time with zone."""
    try:
        time = datetime.fromisoformat((header(headers, "ce_time") or b"").decode("ascii"))
    except ValueError:
        return None
    return time if time.tzinfo else None


def _decoded(decode: Callable[[bytes], _Message], value: bytes) -> _Message:
    try:
        return decode(value.removeprefix(_UTF8_BOM))
    except msgspec.ValidationError as error:
        raise InvalidMessageError(_reason(str(error)), _detail(error)) from None
    # Invalid UTF-8 raises UnicodeDecodeError below msgspec 0.23, deep nesting in an unknown field RecursionError.
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidMessageError(Reason.NOT_JSON, _detail(error)) from None


def _reason(message: str) -> Reason:
    """Return the reason for the field that an error of msgspec names at its end: "... - at `$.field...`"."""
    _, _, path = message.rpartition(" - at `$.")
    return reason_of(path.removesuffix("`"))


def _detail(error: Exception) -> str:
    """Return the path with what was expected.

    A pattern is described in words, because msgspec quotes it as it is. A value of the payload, which msgspec quotes
    too, is left out.
    """
    if isinstance(error, UnicodeDecodeError) or str(error).startswith("Invalid UTF-8"):
        return "expected UTF-8"  # the text of the error may quote a byte of the payload
    if str(error).startswith(_UNKNOWN_FIELD):
        named = re.search(r"`(\w{1,32})`", str(error), re.ASCII)  # a mistyped one, but nothing hostile or long
        return f"Expected no field {named[1]}" if named else "Expected no unknown field"
    message, at, path = str(error).rpartition(" - at ")
    if " matching regex " in message:
        usual = "16 or 32 hex digits" if "[0-9a-f]" in message else "lower-case letters, digits, dashes"
        message = f"Expected {_EXPECTED.get(path, usual)}"
    if message.startswith(_QUOTING):
        message = "Expected another value, one of those that this release knows"
    return f"{message}{at}{path}"
