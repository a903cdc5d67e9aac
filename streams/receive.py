"""From a record of `documents` to the document or the removal that it holds."""

import codecs
import re
import zlib
from dataclasses import dataclass

import msgspec

from schemas.codec import InvalidMessageError, decode_document, reason_of
from schemas.dead_letter import Reason
from schemas.document import Document, document_key
from schemas.record import Headers, Record, header
from streams.completion import Bounds, complete

INFLATED_MAX_BYTES = 16 * 1024 * 1024
INFLATED_MAX_RATIO = 100
_LATER_TYPES = frozenset({"text/html", "application/xhtml+xml", "message/rfc822"})
# Python calls these codecs too; they are no charsets, and some take quadratic time.
_NO_CHARSETS = frozenset({"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape"})
_CHARSET = re.compile(r';\s{0,8}charset\s{0,8}=\s{0,8}"?([a-z0-9._:-]{1,40})')
_LABEL_HEADER = "nearstream-label-"
_FIELD_HEADERS = {
    "nearstream-id": "id",
    "nearstream-url": "url",
    "nearstream-lineage": "lineage",
    "nearstream-collection": "collection",
    "nearstream-observed-at": "observed_at",
    "nearstream-source": "source",
}
_REMOVAL_HEADERS = ("nearstream-id", "nearstream-collection")


@dataclass(frozen=True)
class Received:
    """A whole document with what was not whole in its input."""

    document: Document
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True)
class Removal:
    """A document that its producer took back, and when, in milliseconds since 1970."""

    collection: str
    id: str
    removed_at_ms: int

    @property
    def document_key(self) -> str:
        """`<collection>/<id>`."""
        return document_key(self.collection, self.id)


def receive(record: Record, bounds: Bounds) -> Received | Removal:
    """The document or the removal of a record; a pure function of the record.

    Raises:
        InvalidMessageError: No retry can make it readable; reason and field are named.
    """
    if record.value is None:
        return _removal(record)
    if not record.value:
        raise InvalidMessageError(Reason.EMPTY_VALUE, "a value expected; a removal has a null value")
    if len(record.value) > bounds.value_bytes:
        raise InvalidMessageError(Reason.TOO_LARGE, f"a value of at most {bounds.value_bytes} bytes expected")
    value = _inflated(record.value, record.headers)
    document, degraded = _read(value, record.headers)
    return Received(complete(document, bounds, record.timestamp_ms, record.key), degraded)


def _read(value: bytes, headers: Headers) -> tuple[Document, tuple[str, ...]]:
    """The document as its producer sent it, its content as text."""
    media_type, charset = _content_type(header(headers, "content-type") or b"application/json")
    if media_type == "text/plain":
        text, degraded = _decoded(value, charset)
        return msgspec.structs.replace(_from_headers(headers), text=text), degraded
    if media_type == "application/json" or (media_type.startswith("application/") and media_type.endswith("+json")):
        return _with_text(decode_document(value))
    if media_type in _LATER_TYPES:
        raise InvalidMessageError(Reason.UNSUPPORTED_CONTENT_TYPE, f"{media_type} is not read yet: send its text")
    raise InvalidMessageError(Reason.UNSUPPORTED_CONTENT_TYPE, "application/json or text/plain expected")


def _with_text(document: Document) -> tuple[Document, tuple[str, ...]]:
    contents = [name for name in ("text", "html", "raw") if getattr(document, name) is not None]
    if not contents:
        raise InvalidMessageError(Reason.NO_CONTENT, "$.text: a text expected")
    if len(contents) > 1:
        raise InvalidMessageError(Reason.SEVERAL_CONTENTS, f"one of {', '.join(contents)} expected")
    if document.text is not None:
        return document, ()
    media_type, charset = _content_type((document.content_type or "").encode())
    if document.raw is None or media_type != "text/plain":
        raise InvalidMessageError(
            Reason.UNSUPPORTED_CONTENT_TYPE, "$.text, or $.raw with $.content_type text/plain, expected"
        )
    text, degraded = _decoded(document.raw, charset)
    return msgspec.structs.replace(document, text=text, raw=None, content_type=None), degraded


def _removal(record: Record) -> Removal:
    fields = {"id": record.key}
    fields.update({_FIELD_HEADERS[name]: value for name, value in record.headers if name in _REMOVAL_HEADERS})
    if fields["id"] is None:
        raise InvalidMessageError(Reason.INVALID_ID, "a removal needs a key or the header nearstream-id")
    document = _validated({name: _utf8(name, value) for name, value in fields.items()})
    return Removal(document.collection, document.id or "", record.timestamp_ms)


def _from_headers(headers: Headers) -> Document:
    """The fields of a document whose value is nothing but its content."""
    fields: dict[str, object] = {}
    labels = {}
    for name, value in dict(headers).items():  # of repeated headers the last one wins
        if name in _FIELD_HEADERS:
            field = _FIELD_HEADERS[name]
            fields[field] = _utf8(field, value)
        elif name.startswith(_LABEL_HEADER):
            labels[name.removeprefix(_LABEL_HEADER)] = _utf8("labels", value)
    return _validated({**fields, "labels": labels} if labels else fields)


def _validated(fields: dict[str, object] | dict[str, str]) -> Document:
    """The document of these fields, held to the same rules as one in JSON."""
    return decode_document(msgspec.json.encode(fields))


def _utf8(field: str, value: bytes | None) -> str:
    try:
        if value is not None:
            return value.decode("utf-8")
    except UnicodeDecodeError:
        pass
    raise InvalidMessageError(reason_of(field), f"$.{field}: UTF-8 expected")


def _content_type(value: bytes) -> tuple[str, str]:
    """Media type in lower case, with its charset (`utf-8` if it names none)."""
    text = value.decode("latin-1").lower()
    charset = _CHARSET.search(text)
    return text.partition(";")[0].strip(), charset[1] if charset else "utf-8"


def _decoded(value: bytes, charset: str) -> tuple[str, tuple[str, ...]]:
    """The text; what an unknown or wrong charset cannot read is replaced, and said to be."""
    try:
        if codecs.lookup(charset).name not in _NO_CHARSETS:
            return value.decode(charset), ()
    except (LookupError, UnicodeDecodeError):
        pass
    return value.decode("utf-8", "replace"), ("charset_replaced",)


def _inflated(value: bytes, headers: Headers) -> bytes:
    encoding = (header(headers, "content-encoding") or b"identity").strip().lower()
    if encoding == b"identity":
        return value
    if encoding != b"gzip":
        raise InvalidMessageError(Reason.UNSUPPORTED_CONTENT_TYPE, "content-encoding gzip or none expected")
    limit = min(INFLATED_MAX_BYTES, INFLATED_MAX_RATIO * len(value))
    inflater = zlib.decompressobj(wbits=31)
    try:
        data = inflater.decompress(value, limit + 1)
    except zlib.error:
        raise InvalidMessageError(Reason.INVALID_MESSAGE, "a whole gzip stream expected") from None
    if len(data) > limit:
        raise InvalidMessageError(
            Reason.DECOMPRESSION_LIMIT, f"at most {INFLATED_MAX_BYTES} bytes and {INFLATED_MAX_RATIO} times expected"
        )
    # A second member would be dropped without a word.
    if not inflater.eof or inflater.unused_data:
        raise InvalidMessageError(Reason.INVALID_MESSAGE, "one whole gzip stream expected")
    return data
