"""Read a message into a document."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from email.parser import BytesParser
from email.policy import compat32
from math import inf

from nearstream.schemas.documents.document import (
    ATTACHMENTS_LABEL,
    ATTACHMENTS_UNREAD,
    DEFAULT_COLLECTION,
    MAIL_SOURCE,
    SENDER_DOMAIN_LABEL,
    Document,
    to_milliseconds,
)
from nearstream.schemas.topics.codec import InvalidMessageError
from nearstream.schemas.topics.dead_letter import Reason
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.ingest.defaults import DocumentLimits, fill_defaults
from nearstream.workers.crawl.html_processes import HtmlProcesses
from nearstream.workers.mail import headers
from nearstream.workers.mail.attachments import digests
from nearstream.workers.mail.body import read_body
from nearstream.workers.mail.fields import head_of, whole_lines
from nearstream.workers.mail.short_text import encoded_text, is_short, short_message_text
from nearstream.workers.mail.threads import first_message, own_words

MESSAGE_MAX_BYTES = 36 * 1024 * 1024  # attachments of 25 MiB in base64, and some text
CONTENT_UNREAD = "content_unread"
WHOLE, THREAD = "whole", "thread"
_LIMITS = DocumentLimits()
_CLOCK_SKEW = timedelta(seconds=_LIMITS.clock_skew_seconds)


@dataclass(frozen=True)
class Mail:
    """A message as a document, and what its headers say about it.

    Attributes:
        document: With `id` (the Message-ID, else derived), `text`, `observed_at`, `source`, the hashes of addresses,
            and as labels a digest of its attachments and the hash of its sender's domain. It has a lineage only if
            threads are read, because a reply is no state of the mail that it answers.
        subject: The decoded Subject, which is not part of the text.
        degraded: What was incomplete: `charset_replaced`, `content_unread` (it has few words of its own, and something
            that is no text), `extraction_fallback`, `parse_fallback`, `structure_repaired`, `truncated`.
    """

    document: Document
    subject: str
    degraded: tuple[str, ...]


def read_message(
    raw: bytes,
    received_at: datetime,
    key: HashKey,
    html: HtmlProcesses,
    collection: str = DEFAULT_COLLECTION,
    content: str = WHOLE,
    until: float = inf,
) -> Mail:
    """Read a message into a document.

    It blocks while HTML becomes text, so an event loop calls it from a thread. Messages that no parser can read have
    their raw body as text, and say so in `degraded`.

    Args:
        raw: The message, at most 36 MiB.
        received_at: When it arrived, with time zone. It is the time of the document if the Date header is missing, or
            before 1970, or more than a day later.
        key: The deployment's key, which hashes addresses and short messages.
        html: Where HTML parts become text.
        collection: The tenant.
        content: `whole` for all of the text, or `thread` for the words of the sender, with the thread as lineage.
        until: The time of `time.monotonic()` until which attachments of a message with words are read.

    Raises:
        InvalidMessageError: `empty_value` or `too_large`.
    """
    if not raw:
        raise InvalidMessageError(Reason.EMPTY_VALUE, "expected a message that is not empty")
    if len(raw) > MESSAGE_MAX_BYTES:
        raise InvalidMessageError(Reason.TOO_LARGE, f"expected a message of at most {MESSAGE_MAX_BYTES} bytes")
    raw = whole_lines(raw)
    head = BytesParser(policy=compat32).parsebytes(head_of(raw), headersonly=True)
    text, unread, degraded = read_body(raw, html)
    lineage = None
    if content == THREAD:
        text, lineage = own_words(text), first_message(head)
    subject = headers.subject(head)
    has_few_words = is_short(text)
    encoded = encoded_text(text) if has_few_words else ""
    attachments = digests(unread, key, inf if has_few_words else until)
    others = (*(attachments or ()), *([key.digest(encoded.encode("utf-8", "replace"))] if encoded else []))
    if has_few_words:
        text = short_message_text(subject, text, others, key)
        degraded |= {CONTENT_UNREAD} if others else set()
    document = Document(
        id=headers.message_id(head),
        text=text,
        collection=collection,
        lineage=lineage,
        observed_at=headers.sent_at(head, received_at + _CLOCK_SKEW),
        source=MAIL_SOURCE,
        labels=_labels(attachments, headers.sender_domain_hash(head, key), key),
        sender_hash=headers.sender_hash(head, key),
        recipient_hashes=headers.recipient_hashes(head, key),
    )
    complete = fill_defaults(document, _LIMITS, to_milliseconds(received_at))
    return Mail(complete, subject, tuple(sorted(degraded)))


def _labels(attachments: tuple[bytes, ...] | None, sender_domain: str | None, key: HashKey) -> dict[str, str]:
    labels = {SENDER_DOMAIN_LABEL: sender_domain} if sender_domain else {}
    if attachments is None:
        return {ATTACHMENTS_LABEL: ATTACHMENTS_UNREAD, **labels}
    return {ATTACHMENTS_LABEL: key.digest(b"".join(attachments)).hex(), **labels} if attachments else labels
