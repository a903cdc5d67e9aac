"""Parse records of `documents` into documents and removals, and name the records that are sent there."""

import re
import zlib
from dataclasses import dataclass
from datetime import datetime

import msgspec

from nearstream.schemas.documents.document import (
    DEFAULT_COLLECTION,
    MAIL_SOURCE,
    SENDER_DOMAIN_LABEL,
    Document,
    document_key,
    without_user,
)
from nearstream.schemas.documents.record import ConsumerRecord, Headers, ProducerRecord, header
from nearstream.schemas.documents.signature import Origin
from nearstream.schemas.topics.codec import InvalidMessageError, decode_document, reason_of
from nearstream.schemas.topics.dead_letter import PLACE_CHARACTERS, Reason
from nearstream.streams.ingest.charset import REPLACEMENT, decode
from nearstream.streams.ingest.defaults import DocumentLimits, fill_defaults, shortened
from nearstream.streams.ingest.fields import FieldMap, deleted_row, with_our_names
from nearstream.streams.ingest.media_type import HTML_TYPES, PAGE_TYPES, binary_format, is_binary, media_type_of
from nearstream.streams.ingest.sites import site_of

INFLATED_MAX_BYTES = 16 * 1024 * 1024
INFLATED_MAX_RATIO = 100
CHARSET_REPLACED = "charset_replaced"
_MAIL_TYPE = "message/rfc822"
_CHARSET = re.compile(r';\s{0,8}charset\s{0,8}=\s{0,8}"?([a-z0-9._:-]{1,40})')
# What a producer may say about a text that it took from a mail.
_DEGRADED = frozenset(
    {
        *("charset_replaced", "content_unread", "extraction_fallback", "parse_fallback"),
        *("alternatives_differ", "structure_repaired", "truncated"),
    }
)
_DEGRADED_MAX_BYTES = 256
_GZIP_START = b"\x1f\x8b"
_BINARY_MIN_BYTES = 256  # of a shorter text, two control characters would be many
_LABEL_HEADER = "nearstream-label-"
_LABEL_HEADERS_MAX = 64  # which are more than a document may have, so that it is refused
_FIELD_HEADERS = {
    "nearstream-id": "id",
    "nearstream-url": "url",
    "nearstream-lineage": "lineage",
    "nearstream-collection": "collection",
    "nearstream-observed-at": "observed_at",
    "nearstream-source": "source",
    "nearstream-sender-hash": "sender_hash",
}
_LIST_HEADERS = {"nearstream-recipient-hashes": "recipient_hashes", "nearstream-against": "against"}
_REMOVAL_HEADERS = ("nearstream-id", "nearstream-collection")
STRANGERS = (f"{SENDER_DOMAIN_LABEL} ", "site ")  # how a place begins that is no collection of ours


@dataclass(frozen=True)
class ParsedDocument:
    """A complete document."""

    # With `id`, `observed_at` and its content, which is `text`, or `html`, or HTML in `raw` with its `content_type`.
    document: Document
    degraded: tuple[str, ...] = ()  # what was incomplete in its input, such as `charset_replaced`
    # The record key under which it is sent: the id or else the lineage that it was sent with, or else the id that its
    # URL gives it. None if it has none of them.
    record_key: str | None = None


@dataclass(frozen=True)
class Removal:
    """The removal of a document by its producer."""

    collection: str  # the tenant
    id: str  # the document's id
    removed_at_ms: int  # the record's timestamp, milliseconds since 1970
    origin: Origin | None = None  # the record, None if it came from no topic

    @property
    def document_key(self) -> str:
        """The identity of the removed document, `<collection>/<id>`."""
        return document_key(self.collection, self.id)


def parse_record(record: ConsumerRecord, limits: DocumentLimits) -> ParsedDocument | Removal:
    """Parse a record of `documents`."""
    if record.value is None:
        return _parse_removal(record)
    if not record.value:
        raise InvalidMessageError(Reason.EMPTY_VALUE, "expected a value that is not empty (a removal has a null value)")
    if len(record.value) > limits.value_bytes:
        raise InvalidMessageError(Reason.TOO_LARGE, f"expected a value of at most {limits.value_bytes} bytes")
    value = _inflate(record.value, record.headers)
    if limits.fields and _is_json(_split_content_type(_type(record.headers), value)[0]):
        deleted = deleted_row(value, limits.fields)
        if deleted is not None:
            return _removal(decode_document(deleted), record)
    document, degraded = _parse_document(value, record.headers, limits.fields)
    complete = fill_defaults(document, limits, record.timestamp_ms, record.key)
    record_key = document.id or (complete.lineage if document.lineage else document.url and complete.id)
    return ParsedDocument(complete, degraded, record_key or None)


def _parse_document(value: bytes, headers: Headers, fields: FieldMap) -> tuple[Document, tuple[str, ...]]:
    content_type = _type(headers)
    media_type, charset = _split_content_type(content_type, value)
    if media_type in HTML_TYPES:
        _require_text(value)
        page = {"raw": value, "content_type": content_type.decode("latin-1")}
        return msgspec.structs.replace(_from_headers(headers), **page), tuple(_said_degraded(headers))
    if media_type == "text/plain":
        if header(headers, "nearstream-source") != MAIL_SOURCE.encode():  # whose text was read from a part that is one
            _require_text(value)
        text, degraded = _decode(value, charset)
        all_degraded = dict.fromkeys((*degraded, *_said_degraded(headers)))
        return msgspec.structs.replace(_from_headers(headers), text=text), tuple(all_degraded)
    if _is_json(media_type):
        return _with_text(decode_document(with_our_names(value, fields) if fields else value))
    if media_type == _MAIL_TYPE:
        raise InvalidMessageError(
            Reason.UNSUPPORTED_CONTENT_TYPE, "cannot read message/rfc822, send it with `nearstream produce`"
        )
    raise InvalidMessageError(Reason.UNSUPPORTED_CONTENT_TYPE, "expected application/json, text/plain or text/html")


def _type(headers: Headers) -> bytes:
    return header(headers, "content-type") or b"application/json"


def _is_json(media_type: str) -> bool:
    return media_type == "application/json" or (media_type.startswith("application/") and media_type.endswith("+json"))


def _with_text(document: Document) -> tuple[Document, tuple[str, ...]]:
    contents = [name for name in ("text", "html", "raw") if getattr(document, name) is not None]
    if not contents:
        raise InvalidMessageError(Reason.NO_CONTENT, "$.text: expected a text")
    if len(contents) > 1:
        raise InvalidMessageError(Reason.SEVERAL_CONTENTS, f"expected only one of {', '.join(contents)}")
    if document.raw is None:
        return document, (CHARSET_REPLACED,) * (REPLACEMENT in (document.text or ""))
    media_type, charset = _split_content_type((document.content_type or "").encode(), document.raw)
    if media_type not in PAGE_TYPES:
        raise InvalidMessageError(
            Reason.UNSUPPORTED_CONTENT_TYPE,
            "expected $.text or $.html, or $.raw with $.content_type text/plain or text/html",
        )
    _require_text(document.raw)
    if media_type in HTML_TYPES:
        return document, ()
    text, degraded = _decode(document.raw, charset)
    return msgspec.structs.replace(document, text=text, raw=None, content_type=None), degraded


def came_from(record: ConsumerRecord) -> str:
    """Return where a record came from, also if it holds no document.

    It is `sender-domain`, of a mail, or `site`, of a page, or else `collection`, with its name behind it.
    """
    names = (_said(record, f"label-{SENDER_DOMAIN_LABEL}"), site_of(_said(record, "url")))
    found = next((kind + name for kind, name in zip(STRANGERS, names, strict=True) if name), "")
    return (found or f"collection {_said(record, 'collection') or DEFAULT_COLLECTION}")[:PLACE_CHARACTERS]


def _said(record: ConsumerRecord, name: str) -> str:
    """Return a field by its header, or else by JSON that may be broken."""
    value = header(record.headers, f"nearstream-{name}")
    if not value:  # of a long one, or behind an escape, the beginning is enough
        key = name.removeprefix("label-").encode()
        in_json = re.search(rb'"%b"\s{0,8}:\s{0,8}"((?>[^"\\]|\\/){1,512})' % key, record.value or b"")
        value = in_json[1].replace(b"\\/", b"/") if in_json else b""
    return value.decode("utf-8", "replace")


def _parse_removal(record: ConsumerRecord) -> Removal:
    """Return the removal of the document that a header names, or else of the one that came under the record key."""
    named = {_FIELD_HEADERS[name]: value for name, value in record.headers if name in _REMOVAL_HEADERS}
    fields = {name: _decode_header(name, value) for name, value in named.items()}
    if "id" not in fields:
        if not record.key:
            raise InvalidMessageError(Reason.INVALID_ID, "a removal needs a key or the header nearstream-id")
        fields["id"] = shortened(_decode_header("id", record.key))
    return _removal(_validated(fields), record)


def _removal(named: Document, record: ConsumerRecord) -> Removal:
    if not named.id:
        raise InvalidMessageError(Reason.INVALID_ID, "expected the id of the deleted row in `before`")
    return Removal(named.collection, named.id, record.timestamp_ms)


def _from_headers(headers: Headers) -> Document:
    fields: dict[str, object] = {}
    labels: dict[str, str] = {}
    for name, value in dict(headers).items():  # if a header is repeated, the last one counts
        if name in _FIELD_HEADERS:
            field = _FIELD_HEADERS[name]
            fields[field] = _decode_header(field, value)
        elif name.startswith(_LABEL_HEADER) and len(labels) < _LABEL_HEADERS_MAX:
            labels[name.removeprefix(_LABEL_HEADER)] = _decode_header("labels", value)
        elif name in _LIST_HEADERS:
            fields[_LIST_HEADERS[name]] = _decode_header(_LIST_HEADERS[name], value).split()
    return _validated({**fields, "labels": labels} if labels else fields)


def field_headers(document: Document) -> Headers:
    """Return the headers that hold the fields of a document, without those that are empty."""
    fields = {name: getattr(document, field) for name, field in _FIELD_HEADERS.items() if getattr(document, field)}
    fields |= {_LABEL_HEADER + name: value for name, value in document.labels.items()}
    lists = {name: getattr(document, field) for name, field in _LIST_HEADERS.items()}
    fields |= {name: " ".join(values) for name, values in lists.items() if values}
    return [
        (name, (value.isoformat() if isinstance(value, datetime) else value).encode("utf-8", "surrogatepass"))
        for name, value in fields.items()
    ]


def _said_degraded(headers: Headers) -> list[str]:
    """Return the known reasons of the header `nearstream-degraded`, each once."""
    said = (header(headers, "nearstream-degraded") or b"")[:_DEGRADED_MAX_BYTES].decode("latin-1").split()
    return sorted(_DEGRADED.intersection(said))


def _validated(fields: dict[str, object] | dict[str, str]) -> Document:
    return decode_document(msgspec.json.encode(fields))


def _decode_header(field: str, value: bytes | None) -> str:
    try:
        if value is not None:
            return value.decode("utf-8")
    except UnicodeDecodeError:
        pass
    raise InvalidMessageError(reason_of(field), f"$.{field}: expected UTF-8")


def _split_content_type(value: bytes, content: bytes) -> tuple[str, str]:
    text = value.decode("latin-1").lower()
    charset = _CHARSET.search(text)
    return media_type_of(text, content), charset[1] if charset else ""


def _require_text(value: bytes) -> None:
    """Refuse a content that is no text in any charset."""
    if value.startswith(_GZIP_START):
        raise InvalidMessageError(Reason.EXTRACTION_FAILED, "expected content-encoding gzip with what is compressed")
    found = binary_format(value) or ("binary" if len(value) >= _BINARY_MIN_BYTES and is_binary(value) else "")
    if found:
        raise InvalidMessageError(Reason.EXTRACTION_FAILED, f"expected a text, found {found}")


def _decode(value: bytes, charset: str) -> tuple[str, tuple[str, ...]]:
    text, is_replaced = decode(value, [charset])
    return text, (CHARSET_REPLACED,) * is_replaced


def _inflate(value: bytes, headers: Headers) -> bytes:
    encoding = (header(headers, "content-encoding") or b"identity").strip().lower()
    if encoding == b"identity":
        return value
    if encoding != b"gzip":
        raise InvalidMessageError(Reason.UNSUPPORTED_CONTENT_TYPE, "expected content-encoding gzip or none")
    limit = min(INFLATED_MAX_BYTES, INFLATED_MAX_RATIO * len(value))
    inflater = zlib.decompressobj(wbits=31)
    try:
        data = inflater.decompress(value, limit + 1)
    except zlib.error:
        raise InvalidMessageError(Reason.EXTRACTION_FAILED, "expected a complete gzip stream") from None
    if len(data) > limit:
        raise InvalidMessageError(
            Reason.DECOMPRESSION_LIMIT,
            f"expected at most {INFLATED_MAX_BYTES} bytes, and {INFLATED_MAX_RATIO} times the compressed size",
        )
    # A second member would be ignored silently.
    if not inflater.eof or inflater.unused_data:
        raise InvalidMessageError(Reason.EXTRACTION_FAILED, "expected exactly one complete gzip stream")
    return data


def record_key(parsed: ParsedDocument | Removal) -> bytes | None:
    """Return the record key: the id, or else the lineage, or else none.

    So the states of one document stay in order, and a null value under their key removes it.
    """
    key = parsed.id if isinstance(parsed, Removal) else parsed.record_key
    return key.encode() if key else None


def removal_of(topic: str, name: str, collection: str) -> ProducerRecord:
    """Return the record that removes a document, under the key of the document itself."""
    key = without_user(name).encode()
    headers: Headers = [("nearstream-id", key)]
    if collection != DEFAULT_COLLECTION:
        headers.append(("nearstream-collection", collection.encode()))
    return ProducerRecord(topic, key, None, headers)
