"""Signing: from a document to its signature."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple, TypeVar

from nearstream.schemas.documents.document import Document, to_milliseconds
from nearstream.schemas.documents.signature import VERSION_BYTES, Origin, Signature
from nearstream.schemas.topics.codec import InvalidMessageError
from nearstream.schemas.topics.dead_letter import Reason
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.fingerprints.parameters import invalid_parameters
from nearstream.streams.fingerprints.rewriting import rewritten
from nearstream.streams.fingerprints.unicode_tables import unicode_tables
from nearstream.streams.native import Signed, native
from nearstream.streams.signing.context import packed_context
from nearstream.streams.signing.scheme import Scheme
from nearstream.streams.signing.signs import signs, unread

MAX_BYTES = 1024 * 1024

_Value = TypeVar("_Value")


class Unsigned(NamedTuple):
    """A complete document, ready to be signed.

    Attributes:
        document: With `id`, `text` and `observed_at`.
        origin: The record that the document came in.
        degraded: What was incomplete before signing, such as `charset_replaced`.
    """

    document: Document
    origin: Origin | None = None
    degraded: tuple[str, ...] = ()


class Signer:
    """A signer of documents under one scheme."""

    def __init__(self, scheme: Scheme, key: HashKey, max_bytes: int = MAX_BYTES) -> None:
        """Prepare signing under a scheme and its key.

        Args:
            scheme: The scheme that signatures will name.
            key: The key that the scheme was made for.
            max_bytes: The most bytes that a normal form may have.

        Raises:
            ValueError: The scheme was made for another key, or one of its numbers is out of range.
        """
        if key.fingerprint != scheme.key_fingerprint:
            raise ValueError(f"key: the scheme was made for the key {scheme.key_fingerprint}, not {key.fingerprint}")
        expected = invalid_parameters(
            scheme.text, scheme.sketch, scheme.ld, scheme.anchors, scheme.noise, scheme.sampled
        )
        if expected:
            raise ValueError(f"{scheme.label}: {expected} expected")
        self._scheme = scheme
        self._key = key
        self._max_bytes = max_bytes
        self._context = native.context(packed_context(scheme, key))

    def sign(self, document: Document, origin: Origin | None = None, degraded: tuple[str, ...] = ()) -> Signature:
        """Sign a complete document.

        The signature of an empty normal form has `n_bytes` 0.

        Args:
            document: With `id`, `text` and `observed_at`.
            origin: The record that the document came in.
            degraded: What was incomplete before signing, such as `charset_replaced`.

        Raises:
            ValueError: A field is missing, or `observed_at` has no time zone.
            InvalidMessageError: `too_large`, since one character may become 18 in the normal form.
        """
        signed = self._signed(_present(document.text, "text"))
        return self._signature(signed, document, origin, degraded)

    def sign_many(self, unsigned: Iterable[Unsigned]) -> Iterator[Signature | InvalidMessageError]:
        """Sign several documents in order.

        A document that is too large yields its error instead. Reads no further until a signature is taken.

        Raises:
            ValueError: A field is missing, or `observed_at` has no time zone.
        """
        for item in unsigned:
            try:
                yield self.sign(*item)
            except InvalidMessageError as error:
                yield error

    def _signed(self, text: str) -> Signed | None:
        plain = rewritten(text, self._scheme.text)
        signed = self._computed(plain)
        return signed and self._with_digests(signed, plain, text)

    def _computed(self, plain: str) -> Signed | None:
        """Return what C computes of a text, None if its normal form is too large."""
        raw = plain.encode("utf-8", "surrogatepass")
        tables = None if len(raw) == len(plain) else unicode_tables()
        return native.sign(self._context, tables, raw, self._max_bytes)

    def _with_digests(self, signed: Signed, plain: str, text: str) -> Signed:
        """Return what was signed with the digests that the rules of the scheme ask for.

        Signs, and text that no normal form holds, change the first half of its digest, so that the second half still
        tells whether the letters are equal. The raw digest of a rewritten text is that of the text as it came.
        """
        digest, raw_digest, content = signed
        found = signs(plain) + unread(text) if self._scheme.text.signs else b""
        if found:
            digest = self._key.digest(digest + found)[:VERSION_BYTES] + digest[VERSION_BYTES:]
        if plain is not text:
            raw_digest = self._key.digest(text.encode("utf-8", "surrogatepass"))
        return digest, raw_digest, content

    def _signature(
        self, signed: Signed | None, document: Document, origin: Origin | None, degraded: tuple[str, ...]
    ) -> Signature:
        if signed is None:
            raise InvalidMessageError(
                Reason.TOO_LARGE, f"$.text: a normal form of at most {self._max_bytes} bytes of UTF-8 expected"
            )
        document_id = _present(document.id, "id")
        observed_at_ms = _milliseconds(_present(document.observed_at, "observed_at"))
        digest, raw_digest, content = signed
        n_bytes, characters, words, shingles, spaceless, sketch, rate, ld, gaps, anchors = content
        # Arguments by position, because keyword arguments take longer than C takes to hash a short text.
        # fmt: off
        return Signature(
            self._scheme.name, document.collection, document_id, digest, raw_digest, observed_at_ms,
            n_bytes, characters, words, shingles, spaceless, sketch, rate, ld, gaps, anchors,
            document.lineage, document.url, document.source, document.labels, origin, degraded,
            bytes.fromhex(document.sender_hash or ""), bytes.fromhex("".join(document.recipient_hashes)),
            document.against,
        )
        # fmt: on


def _milliseconds(observed_at: datetime) -> int:
    """Return whole milliseconds since 1970, rounded down."""
    if observed_at.tzinfo is None:
        raise ValueError("observed_at: a time zone expected")
    return to_milliseconds(observed_at)


def _present(value: _Value | None, name: str) -> _Value:
    if value is None:
        raise ValueError(f"{name}: a value expected in a complete document")
    return value
