"""Read the body of a question into a document."""

from datetime import UTC, datetime

import msgspec

from nearstream.schemas.codec import InvalidMessageError, decode_document
from nearstream.schemas.dead_letter import Reason
from nearstream.schemas.document import DEFAULT_COLLECTION
from nearstream.schemas.record import ConsumerRecord, header
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.ingest.defaults import DocumentLimits
from nearstream.streams.ingest.parse import Removal
from nearstream.streams.signing.signer import Unsigned
from nearstream.workers.crawl.html_processes import HtmlProcesses
from nearstream.workers.mail.message import read_message
from nearstream.workers.pipeline.sign import parse_unsigned

_MAIL = b"message/rfc822"


def is_mail(record: ConsumerRecord) -> bool:
    """Return whether the body of a question is a whole mail."""
    return (header(record.headers, "content-type") or b"").partition(b";")[0].strip().lower() == _MAIL


def read_document(record: ConsumerRecord, limits: DocumentLimits) -> Unsigned:
    """Return the document of a question that is a text, or a document in JSON.

    Raises:
        InvalidMessageError: The body holds no document.
    """
    parsed = parse_unsigned(record, limits)
    if isinstance(parsed, Removal):
        raise InvalidMessageError(Reason.EMPTY_VALUE, "expected a document")
    return parsed


def read_mail(record: ConsumerRecord, key: HashKey, html: HtmlProcesses) -> Unsigned:
    """Return the document of a question that is a whole mail.

    It blocks while the HTML of the mail becomes text.

    Raises:
        InvalidMessageError: The body holds no mail.
    """
    if (header(record.headers, "content-encoding") or b"identity").strip().lower() != b"identity":
        raise InvalidMessageError(Reason.UNSUPPORTED_CONTENT_TYPE, "expected a message without content-encoding")
    received_at = datetime.fromtimestamp(record.timestamp_ms / 1000, UTC)
    mail = read_message(record.value or b"", received_at, key, html, _collection(record))
    return Unsigned(mail.document, None, mail.degraded)


def _collection(record: ConsumerRecord) -> str:
    named = header(record.headers, "nearstream-collection")
    if named is None:
        return DEFAULT_COLLECTION
    return decode_document(msgspec.json.encode({"collection": named.decode("utf-8", "replace")})).collection
