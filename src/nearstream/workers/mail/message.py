"""Read a message into a document."""

import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.message import Message
from email.parser import BytesParser
from email.policy import compat32
from hashlib import blake2b
from math import inf

from nearstream.schemas.documents.document import (
    ATTACHMENTS_LABEL,
    ATTACHMENTS_UNREAD,
    DEFAULT_COLLECTION,
    LINKS_LABEL,
    LINKS_UNREAD,
    MAIL_SOURCE,
    SENDER_DOMAIN_LABEL,
    UNPROVEN,
    Document,
    to_milliseconds,
)
from nearstream.schemas.topics.codec import InvalidMessageError
from nearstream.schemas.topics.dead_letter import Reason
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.fingerprints.normalize import NormalForm, normalize
from nearstream.streams.fingerprints.notices import split_notices, split_signature
from nearstream.streams.fingerprints.parameters import MIN_SPACELESS_BYTES, MIN_WORDS, TextRules
from nearstream.streams.fingerprints.rewriting import rewritten
from nearstream.streams.ingest.defaults import DocumentLimits, fill_defaults
from nearstream.streams.ingest.sites import site_of
from nearstream.workers.crawl.html_processes import HtmlProcesses
from nearstream.workers.mail import headers
from nearstream.workers.mail.authentication import is_authenticated
from nearstream.workers.mail.body import read_body
from nearstream.workers.mail.headers import head_of, whole_lines
from nearstream.workers.mail.structure import Part
from nearstream.workers.mail.transfer import decode_blocks

MESSAGE_MAX_BYTES = 36 * 1024 * 1024  # attachments of 25 MiB in base64, and some text
CONTENT_UNREAD = "content_unread"
WHOLE, THREAD = "whole", "thread"
_LIMITS = DocumentLimits()
_CLOCK_SKEW = timedelta(seconds=_LIMITS.clock_skew_seconds)
MEMORY_BYTES = 128 * 1024 * 1024
_QUOTED_LINES = re.compile(r"^[ \t]{0,8}>.*\n?", re.MULTILINE)
_ANSWERED = re.compile(
    r"^(?:-{3,}[^\n-]{3,60}-{3,}\s{1,8})?[*_ \t]{0,80}(?:from|von|de|da|van)[ \t*]{0,2}:[^\n]{0,300}\n{1,4}"
    r"(?:[^\n]{0,300}\n{1,4}){0,2}[* \t]{0,4}(?:sent|date|gesendet|datum|envoy|enviad|inviato|verzond|data|fecha)"
    r"[^\n:]{0,4}:",
    re.IGNORECASE | re.MULTILINE,
)
_HOST = r"[^\s/?#\\<>\"']{1,255}"
_HOSTS = (re.compile(f"://({_HOST})"), re.compile(rf"(www\.{_HOST})"))
_URL = re.compile(rf"(https?://){_HOST}", re.IGNORECASE)
_TEXT_RULES = TextRules(spelling="plain/5", masks="mail/1")
_HEAD_CHARACTERS = 4_096
_ENCODED = re.compile(r"(?<!\S)(?!\S{0,12}://)\S{40,}")
_ENCODED_MIN_CHARACTERS = 100  # more than a token has that each recipient gets
# The normal form of mail masks digits, so the digest is written in letters.
_LETTERS = str.maketrans("0123456789abcdef", "abcdefghijklmnop")
_DIGEST_BYTES = 16
_DECODED_MAX = 64
_DECODED_MAX_BYTES = 25 * 1024 * 1024
_BLOCK_BYTES = 256 * 1024
# Signatures differ in each message, and say nothing that its sender wrote. What lies elsewhere is not in the message.
_NOT_COUNTED = frozenset(
    {
        *("application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature"),
        "message/external-body",
    }
)


@dataclass(frozen=True)
class MailRules:
    """What is read of messages."""

    # `whole` for all of the text, or `thread` for the words of the sender, with the thread as lineage.
    content: str = WHOLE
    authserv_id: str = ""  # The server whose results of DKIM and DMARC count. Empty: senders are those of From.
    domains: str = ""  # the setting with the collections of recipients


WHOLE_MAIL = MailRules()


@dataclass(frozen=True)
class Mail:
    """A message as a document, and what its headers say about it."""

    # With `id` (the Message-ID, else derived), `text`, `observed_at`, `source`, the hashes of addresses, and as labels
    # a digest of its attachments and the hash of its sender's domain. It has a lineage only if threads are read,
    # because a reply is no state of the mail that it answers.
    document: Document
    subject: str  # the decoded Subject, which is not part of the text
    # What was incomplete: `charset_replaced`, `content_unread` (it has few words of its own, and something that is no
    # text), `extraction_fallback`, `parse_fallback`, `structure_repaired`, `truncated`.
    degraded: tuple[str, ...]


def read_message(
    raw: bytes,
    received_at: datetime,
    key: HashKey,
    html: HtmlProcesses,
    collection: str = DEFAULT_COLLECTION,
    rules: MailRules = WHOLE_MAIL,
    until: float = inf,
) -> Mail:
    """Read a message of at most 36 MiB into a document.

    It blocks while HTML becomes text, so an event loop calls it from a thread. Messages that no parser can read have
    their raw body as text, and say so in `degraded`.

    Args:
        raw: The message.
        received_at: The time of the document if the Date header is missing, or before 1970, or more than a day
            later.
        key: The deployment's key, which hashes addresses and short messages.
        html: Where HTML parts become text.
        collection: The tenant.
        rules: What is read of it.
        until: The time of `time.monotonic()` until which attachments of a message with words are read.
    """
    if not raw:
        raise InvalidMessageError(Reason.EMPTY_VALUE, "expected a message that is not empty")
    if len(raw) > MESSAGE_MAX_BYTES:
        raise InvalidMessageError(Reason.TOO_LARGE, f"expected a message of at most {MESSAGE_MAX_BYTES} bytes")
    raw = whole_lines(raw)
    head = BytesParser(policy=compat32).parsebytes(head_of(raw), headersonly=True)
    text, unread, links, degraded = read_body(raw, html)
    linked = None if links is None else _sites(text, links)
    lineage = None
    if rules.content == THREAD:
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
        id=headers.first_id(head, "message-id"),
        text=text,
        collection=collection,
        lineage=lineage,
        observed_at=headers.sent_at(head, received_at + _CLOCK_SKEW),
        source=MAIL_SOURCE,
        labels=_labels(attachments, linked, _sender_domain(head, key, rules.authserv_id), key),
        sender_hash=headers.sender_hash(head, key),
        recipient_hashes=headers.recipient_hashes(head, key),
    )
    complete = fill_defaults(document, _LIMITS, to_milliseconds(received_at))
    return Mail(complete, subject, tuple(sorted(degraded)))


def _sites(text: str, links: tuple[str, ...]) -> set[str]:
    """Return the sites of links and of addresses in a text."""
    hosts = {f"//{host}" for pattern in _HOSTS for host in pattern.findall(text)}
    return {site for url in hosts.union(links) if (site := site_of(url))}


def _sender_domain(head: Message, key: HashKey, authserv_id: str) -> str | None:
    """Return the hash of the domain of the sender, marked if that is not authenticated."""
    domain = headers.sender_domain(head, key)
    is_proven = not authserv_id or (domain is not None and is_authenticated(head, domain, authserv_id))
    return None if domain is None else headers.address_hash(domain, key) + UNPROVEN * (not is_proven)


def _labels(
    attachments: tuple[bytes, ...] | None, sites: set[str] | None, sender_domain: str | None, key: HashKey
) -> dict[str, str]:
    labels = {SENDER_DOMAIN_LABEL: sender_domain} if sender_domain else {}
    if linked := headers.link_hashes(sites, key) if sites is not None else LINKS_UNREAD:
        labels[LINKS_LABEL] = linked
    if attachments is None:
        return {ATTACHMENTS_LABEL: ATTACHMENTS_UNREAD, **labels}
    return {ATTACHMENTS_LABEL: key.digest(b"".join(attachments)).hex(), **labels} if attachments else labels


@dataclass
class Memory:
    """How much of it is left, in bytes."""

    left: int = MEMORY_BYTES

    def take(self, size: int, keep: int = 0) -> bool:
        """Take some if as much as `keep` remains for others, and return whether there was enough."""
        enough = size + keep <= self.left
        if enough:
            self.left -= size
        return enough

    def give_back(self, size: int) -> None:
        """Give back what was taken."""
        self.left += size


def own_words(text: str) -> str:
    """Return a text without its signature and the message that it answers, unless no word remains.

    Of that message lines begin with `>`, or the text ends with it behind some lines of its header.
    """
    answered = _ANSWERED.search(text)
    own = split_signature(_QUOTED_LINES.sub("", text[: answered.start()] if answered else text)).own
    return own if _masked_form(own[:_HEAD_CHARACTERS]).data or _masked_form(own).data else text


def first_message(message: Message) -> str | None:
    """Return the id of the first message of a thread: the first in References, else in In-Reply-To, else its own."""
    named = (headers.first_id(message, name) for name in ("references", "in-reply-to", "message-id"))
    return next((found for found in named if found), None)


def short_message_text(subject: str, text: str, attachments: Iterable[bytes], key: HashKey) -> str:
    """Return a text that is equal for short messages of equal Subject, body and attachments.

    A few words like "thank you" say nothing about the message, so a short one is a copy only of a message that also has
    its Subject and its attachments. What is personal is masked first, as in the scheme `mail`. The result is too short
    for shingles, so it is found by its digest alone. It is empty if the message has nothing but its Subject,
    which alone makes no copy.
    """
    text = _URL.sub(lambda url: url[1] + site_of(url[0]), text)
    form, title, others = _masked_form(text), _masked_form(subject), b"".join(attachments)
    if not (others or form.data):
        return ""
    digest = key.digest(title.data + b"\0" + form.data + (b"\0" + others if others else b""))
    return f"short message {digest.hex().translate(_LETTERS)}"


def encoded_text(text: str) -> str:
    """Return what of a text is encoded, such as base64 in a quote. Masks hide it, and no person reads it."""
    found = _ENCODED.findall(text)
    return "".join(found) if sum(map(len, found)) >= _ENCODED_MIN_CHARACTERS else ""


def is_short(text: str) -> bool:
    """Return whether a masked text without notices is too short for shingles."""
    own = split_notices(text).own
    return _is_short(_masked_form(own[:_HEAD_CHARACTERS])) and _is_short(_masked_form(own))


def _masked_form(text: str) -> NormalForm:
    return normalize(rewritten(text, _TEXT_RULES))


def _is_short(form: NormalForm) -> bool:
    if form.spaceless:
        return len(form.data) < MIN_SPACELESS_BYTES
    return form.data.count(b" ") + 1 < MIN_WORDS


def digests(parts: Iterable[Part], key: HashKey, until: float = inf) -> tuple[bytes, ...] | None:
    """Return the keyed digests of the contents of parts, each once, in ascending order.

    The first 64 parts of at most 25 MiB together count without their transfer encoding, the others as they were sent.
    Empty parts, signatures and what lies elsewhere do not count. The result is None if there was not enough time until
    `until` of `time.monotonic()`.
    """
    found = set()
    left = _DECODED_MAX_BYTES
    for number, part in enumerate(parts):
        if part.head.kind in _NOT_COUNTED:
            continue
        left -= len(part.content)
        encoding = part.head.encoding if number < _DECODED_MAX and left >= 0 else ""
        size, hasher = 0, blake2b(digest_size=_DIGEST_BYTES, key=key.digest_key, person=b"nearstream-part")
        for block in decode_blocks(part.content, encoding) if encoding else _lines(part.content):
            if time.monotonic() > until:
                return None
            size += len(block)
            hasher.update(block)
        if size:
            found.add(hasher.digest())
    return tuple(sorted(found))


def _lines(content: bytes) -> Iterator[bytes]:
    """Yield a content in blocks, without newlines at its ends.

    Carriage returns are left out, because mail servers change them.
    """
    start, is_begun, newlines = 0, False, 0
    while start < len(content):
        end = start + _BLOCK_BYTES
        block = content[start:end].translate(None, b"\r")
        inner = block.strip(b"\n")
        if inner:
            before = newlines + len(block) - len(block.lstrip(b"\n"))
            yield b"\n" * before * is_begun + inner
            is_begun, newlines = True, len(block) - len(block.rstrip(b"\n"))
        else:
            newlines += len(block)
            yield b""
        start = end
