"""Check a document, and fill in what its producer left out."""

import re
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b

import msgspec

from nearstream.schemas.documents.document import (
    EPOCH,
    ID_PATTERN,
    Document,
    from_milliseconds,
    to_milliseconds,
    without_user,
)
from nearstream.schemas.topics.codec import InvalidMessageError
from nearstream.schemas.topics.dead_letter import Reason
from nearstream.streams.ingest.fields import FieldMap
from nearstream.streams.ingest.lineage import canonical_url, joined_url

LINEAGE_MAX_CHARACTERS = 512


@dataclass(frozen=True)
class DocumentLimits:
    """Limits of a document, and how JSON names its fields."""

    text_bytes: int = 1024 * 1024  # most bytes of its text in UTF-8
    value_bytes: int = 4 * 1024 * 1024  # most bytes of the value of its record, as sent
    clock_skew_seconds: int = 86_400  # how far `observed_at` may be ahead of the record's timestamp
    fields: FieldMap = ()  # Where the JSON of another program has the fields. Empty: it has ours.


def fill_defaults(
    document: Document, limits: DocumentLimits, timestamp_ms: int | None = None, record_key: bytes | None = None
) -> Document:
    """Fill in the id, lineage and time of a document that has one content.

    Without an id, a document is the next state of the one document that its lineage names, or its URL if it has one. So
    the record key names the document that a null value under that key removes. The key is the id of a document with
    neither id nor URL nor lineage. Without the timestamp of a record, `observed_at` is required and may be any time
    from 1970 on.
    """
    content = _content(document)
    if document.text is not None and len(content) > limits.text_bytes:
        raise InvalidMessageError(Reason.TOO_LARGE, f"$.text: expected at most {limits.text_bytes} bytes of UTF-8")
    observed_at = _observed_at(document, limits, timestamp_ms)
    lineage = _lineage(document)
    document_id = document.id or (_lineage_as_id(lineage) if lineage else _key_as_id(record_key))
    document_id = document_id or _derived_id(document.collection, observed_at, content)
    return msgspec.structs.replace(document, id=document_id, lineage=lineage, observed_at=observed_at)


def _content(document: Document) -> bytes:
    text = document.text if document.text is not None else document.html
    if text is not None:
        return text.encode("utf-8", "surrogatepass")
    if document.raw is None:
        raise InvalidMessageError(Reason.NO_CONTENT, "$.text: expected a text")
    return document.raw


def _observed_at(document: Document, limits: DocumentLimits, timestamp_ms: int | None) -> datetime:
    observed_at = document.observed_at
    if observed_at is None:
        if timestamp_ms is None or timestamp_ms < 0:
            raise InvalidMessageError(
                Reason.INVALID_TIME, "$.observed_at: expected a time, because the record has none"
            )
        return _record_time(timestamp_ms)
    latest_ms = None if timestamp_ms is None else timestamp_ms + 1000 * limits.clock_skew_seconds
    if observed_at < EPOCH or (latest_ms is not None and to_milliseconds(observed_at) > latest_ms):
        raise InvalidMessageError(
            Reason.INVALID_TIME,
            f"$.observed_at: expected a time from 1970 to {limits.clock_skew_seconds} s after the record's",
        )
    return observed_at


def _record_time(timestamp_ms: int) -> datetime:
    try:
        return from_milliseconds(timestamp_ms)
    except OverflowError:
        raise InvalidMessageError(Reason.INVALID_TIME, "the record's time: expected a year up to 9999") from None


def _lineage(document: Document) -> str | None:
    lineage = document.lineage
    if lineage is None and document.url:
        return name_of_page(document.url)
    return shortened(lineage) if lineage else None


def name_of_page(url: str) -> str:
    """Return the canonical form of a URL, which is the default lineage of its page."""
    return shortened(canonical_url(url))


def declared_name(target: str, url: str) -> str:
    """Return the canonical name that a page declares. Empty: the target is no URL."""
    declared = joined_url(target, url)
    return shortened(canonical_url(declared)) if declared else ""


def shortened(lineage: str) -> str:
    """Return a lineage, or a record key that is one, in its hashed form if it is too long."""
    return _hashed(lineage) if len(lineage) > LINEAGE_MAX_CHARACTERS else lineage


def _lineage_as_id(lineage: str) -> str:
    return lineage if re.search(ID_PATTERN, lineage) else _hashed(lineage)


def _hashed(lineage: str) -> str:
    return "h:" + blake2b(lineage.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _key_as_id(record_key: bytes | None) -> str | None:
    if not record_key:
        return None
    try:
        text = record_key.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return without_user(text) if re.search(ID_PATTERN, text) else None


def _derived_id(collection: str, observed_at: datetime, content: bytes) -> str:
    """Return an id for a document that nothing names, 32 hex characters.

    It is blake2b-16 over collection, time and content. Each follows its length in bytes (u32, big-endian).
    """
    state = blake2b(digest_size=16)
    for part in (collection.encode(), str(to_milliseconds(observed_at)).encode(), content):
        state.update(len(part).to_bytes(4, "big"))
        state.update(part)
    return state.hexdigest()
