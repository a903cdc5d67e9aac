"""From what a producer sent to a whole document: what was left out is filled in, the rest checked."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b

import msgspec
from w3lib.url import canonicalize_url, url_query_cleaner

from schemas.codec import InvalidMessageError
from schemas.dead_letter import Reason
from schemas.document import ID_PATTERN, Document

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LINEAGE_MAX_CHARACTERS = 512
_TRACKING = ("gclid", "fbclid", "mc_eid", "msclkid", "PHPSESSID", "jsessionid")
_UTM = re.compile(r"[?&](utm_[a-z_]{1,32})=")


@dataclass(frozen=True)
class Bounds:
    """What a document may be: UTF-8 bytes of its text, bytes of its record, seconds ahead of its record."""

    text_bytes: int = 1024 * 1024
    value_bytes: int = 4 * 1024 * 1024
    clock_skew_seconds: int = 86_400


def complete(
    document: Document, bounds: Bounds, timestamp_ms: int | None = None, record_key: bytes | None = None
) -> Document:
    """The same document with id, lineage and time filled in.

    Args:
        document: What the producer sent; exactly one content, already as `text`.
        bounds: What a document may be.
        timestamp_ms: The record's timestamp, default of `observed_at`; no time is checked against
            None, and without it `observed_at` is required.
        record_key: The record's key, the id of a document that has neither id, url nor lineage.

    Raises:
        InvalidMessageError: `no_content`, `too_large` or `invalid_time`.
    """
    if document.text is None:
        raise InvalidMessageError(Reason.NO_CONTENT, "$.text: a text expected")
    content = document.text.encode("utf-8", "surrogatepass")
    if len(content) > bounds.text_bytes:
        raise InvalidMessageError(Reason.TOO_LARGE, f"$.text: at most {bounds.text_bytes} bytes of UTF-8 expected")
    observed_at = _observed_at(document, bounds, timestamp_ms)
    lineage = _lineage(document)
    document_id = (
        document.id or _key_as_id(document, record_key) or _derived_id(document, lineage, observed_at, content)
    )
    return msgspec.structs.replace(document, id=document_id, lineage=lineage, observed_at=observed_at)


def canonical_url(url: str) -> str:
    """The url without fragment and tracking parameters, its query sorted; the default lineage.

    What is no url stands for itself. A change of these rules breaks lineages.
    """
    tracking = [*_TRACKING, *_UTM.findall(url)]
    try:
        return str(canonicalize_url(url_query_cleaner(url, tracking, remove=True, unique=False)))
    except ValueError:
        return url


def milliseconds(time: datetime) -> int:
    """Milliseconds since 1970, rounded down."""
    return (time - EPOCH) // timedelta(milliseconds=1)


def _observed_at(document: Document, bounds: Bounds, timestamp_ms: int | None) -> datetime:
    observed_at = document.observed_at
    if observed_at is None:
        if timestamp_ms is None or timestamp_ms < 0:
            raise InvalidMessageError(Reason.INVALID_TIME, "$.observed_at: a time expected, the record has none")
        return _time(timestamp_ms)
    latest_ms = None if timestamp_ms is None else timestamp_ms + 1000 * bounds.clock_skew_seconds
    if observed_at < EPOCH or (latest_ms is not None and milliseconds(observed_at) > latest_ms):
        raise InvalidMessageError(
            Reason.INVALID_TIME,
            f"$.observed_at: a time from 1970 to {bounds.clock_skew_seconds} s after the record's expected",
        )
    return observed_at


def _time(timestamp_ms: int) -> datetime:
    try:
        return EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        raise InvalidMessageError(Reason.INVALID_TIME, "the record's time: one up to the year 9999 expected") from None


def _lineage(document: Document) -> str | None:
    lineage = document.lineage
    if lineage is None and document.url:
        lineage = canonical_url(document.url)
    if lineage is not None and len(lineage) > LINEAGE_MAX_CHARACTERS:
        return "h:" + blake2b(lineage.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return lineage or None


def _key_as_id(document: Document, record_key: bytes | None) -> str | None:
    """The record key, where it can be nothing but an id."""
    if not record_key or document.url or document.lineage:
        return None
    try:
        text = record_key.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return text if re.search(ID_PATTERN, text) else None


def _derived_id(document: Document, lineage: str | None, observed_at: datetime, content: bytes) -> str:
    """32 hex of blake2b-16 over collection, lineage, time and content, each behind its length."""
    state = blake2b(digest_size=16)
    lineage_bytes = (lineage or "").encode("utf-8", "surrogatepass")
    for part in (document.collection.encode(), lineage_bytes, str(milliseconds(observed_at)).encode(), content):
        state.update(len(part).to_bytes(4, "big"))
        state.update(part)
    return state.hexdigest()
