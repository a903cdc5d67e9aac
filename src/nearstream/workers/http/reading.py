"""Read the body of a question into a document."""

import time
from datetime import UTC, datetime

import msgspec

from nearstream.schemas.documents.document import DEFAULT_COLLECTION
from nearstream.schemas.documents.record import ConsumerRecord, header
from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.topics.codec import InvalidMessageError, decode_document, decode_signature_line
from nearstream.schemas.topics.dead_letter import Reason
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.ingest.defaults import DocumentLimits
from nearstream.streams.ingest.media_type import HTML_TYPES
from nearstream.streams.ingest.parse import Removal
from nearstream.streams.signing.scheme import Scheme
from nearstream.streams.signing.signer import Unsigned
from nearstream.workers.crawl.html_processes import HtmlProcesses
from nearstream.workers.crawl.page import PageReader
from nearstream.workers.mail.message import read_message
from nearstream.workers.operations.signatures import why_not_sent
from nearstream.workers.pipeline.sign import parse_document, parse_unsigned

MAIL_TYPE, SIGNATURE_TYPE = "message/rfc822", "application/vnd.nearstream.signature"
_ATTACHMENTS_SHARE = 0.5  # of the time for an answer, after which no more attachments are read
READABLE = (MAIL_TYPE, "text/plain", "application/json", *sorted(HTML_TYPES), SIGNATURE_TYPE)
DEFAULT_TYPE = "application/json"  # of a body without a type


def is_readable(kind: str) -> bool:
    """Return whether a body of this media type can be a question."""
    return kind in READABLE or (kind.startswith("application/") and kind.endswith("+json"))


def media_type(content_type: str) -> str:
    """Return the media type in the value of a header Content-Type."""
    return content_type.partition(";")[0].strip().lower()


def type_of(record: ConsumerRecord) -> str:
    """Return the media type of the body of a question."""
    return media_type((header(record.headers, "content-type") or b"").decode("latin-1"))


def read_document(record: ConsumerRecord, limits: DocumentLimits) -> Unsigned:
    """Return the document of a question that is a text, or a document in JSON."""
    parsed = parse_unsigned(record, limits)
    if isinstance(parsed, Removal):
        raise InvalidMessageError(Reason.EMPTY_VALUE, "expected a document")
    return parsed


def read_signature(record: ConsumerRecord, scheme: Scheme) -> Signature:
    """Return the signature of a question, as `nearstream sign` prints it, if it has our scheme and key."""
    signature = decode_signature_line((record.value or b"").strip())
    wrong = why_not_sent(signature, scheme)
    if wrong:
        raise InvalidMessageError(Reason.INVALID_SIGNATURE, wrong)
    return signature


def read_page(record: ConsumerRecord, limits: DocumentLimits, pages: PageReader) -> Unsigned:
    """Return the document of a question that is a web page, with its text.

    It blocks while the page becomes text.
    """
    parsed = parse_document(record, limits)
    if isinstance(parsed, Removal):
        raise InvalidMessageError(Reason.EMPTY_VALUE, "expected a document")
    return pages.with_text(parsed)


def read_mail(record: ConsumerRecord, key: HashKey, html: HtmlProcesses, content: str, seconds: float) -> Unsigned:
    """Return the document of a question that is a whole mail.

    It blocks while the HTML of the mail becomes text. Its content is `whole`, or `thread` for the words of the sender.
    Attachments of a mail with words are read as long as there is time for an answer after them, which may take so many
    seconds.
    """
    if (header(record.headers, "content-encoding") or b"identity").strip().lower() != b"identity":
        raise InvalidMessageError(Reason.UNSUPPORTED_CONTENT_TYPE, "expected a message without content-encoding")
    received_at = datetime.fromtimestamp(record.timestamp_ms / 1000, UTC)
    until = time.monotonic() + _ATTACHMENTS_SHARE * seconds
    mail = read_message(record.value or b"", received_at, key, html, _collection(record), content, until)
    document = msgspec.structs.replace(mail.document, against=_against(record))
    return Unsigned(document, None, mail.degraded)


def _collection(record: ConsumerRecord) -> str:
    named = header(record.headers, "nearstream-collection")
    if named is None:
        return DEFAULT_COLLECTION
    return decode_document(msgspec.json.encode({"collection": named.decode("utf-8", "replace")})).collection


def _against(record: ConsumerRecord) -> tuple[str, ...]:
    named = (header(record.headers, "nearstream-against") or b"").decode("utf-8", "replace").split()
    return decode_document(msgspec.json.encode({"against": named})).against
