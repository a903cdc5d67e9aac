"""Signing: from a document to its signature."""

import re
import struct
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from dataclasses import astuple, replace
from datetime import datetime
from typing import NamedTuple, TypeVar

import numpy as np

from nearstream.schemas.documents.document import Document, to_milliseconds
from nearstream.schemas.documents.signature import VERSION_BYTES, Origin, Signature
from nearstream.schemas.topics.codec import InvalidMessageError
from nearstream.schemas.topics.dead_letter import Reason
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.fingerprints.letters import unfolded
from nearstream.streams.fingerprints.normalize import normalize
from nearstream.streams.fingerprints.parameters import ITEM_WORDS, LD_WINDOW_BYTES, WINDOW_RULES, AnchorRules
from nearstream.streams.fingerprints.plain_letters import beyond_ascii
from nearstream.streams.fingerprints.rewriting import rewritten
from nearstream.streams.fingerprints.short_rows import short_rows
from nearstream.streams.fingerprints.spelling import as_meant, respelled
from nearstream.streams.fingerprints.unicode_tables import unicode_tables
from nearstream.streams.native import Context, Signed, native
from nearstream.streams.signing.scheme import Scheme

MAX_BYTES = 1024 * 1024

_Value = TypeVar("_Value")
_MAX_RATES = 8  # of native/job.h, which has room for no more
# Music, sign writing, and scripts newer than Unicode 14.0.
_UNREAD = re.compile(
    "[\U000105c0-\U000105ff\U00010940-\U0001095f\U00010d40-\U00010d8f\U00011380-\U000113ff\U00011bc0-\U00011bff"
    "\U00011db0-\U00011def\U00011f00-\U00011f5f\U00012550-\U0001268f\U00013460-\U000143ff\U00016100-\U0001613f"
    "\U00016d40-\U00016d7f\U00016ea0-\U00016edf\U00018d80-\U000191df\U0001d000-\U0001d24f\U0001d800-\U0001daaf"
    "\U0001e4d0-\U0001e4ff\U0001e5d0-\U0001e5ff\U0001e6c0-\U0001e6ff\U0002ebf0-\U0002ee5f\U00031350-\U0003fffd]+"
)
_SMALL = "[\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u208e\u2150-\u215f]"
_RAISED, _HAS_SMALL = re.compile(f"(?<=[0-9]){_SMALL}+"), re.compile(_SMALL)
_WRITTEN_AS = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013\u2212", "-") | {"\u2019": "'", "\u2044": "/"})
_LAYOUT = re.compile(rb"[\0- ]+")


class Unsigned(NamedTuple):
    """A complete document, ready to be signed."""

    document: Document  # with `id`, `text` and `observed_at`
    origin: Origin | None = None  # the record that the document came in
    degraded: tuple[str, ...] = ()  # what was incomplete before signing, such as `charset_replaced`


class Signer:
    """A signer of documents under one scheme."""

    def __init__(
        self, scheme: Scheme, key: HashKey, max_bytes: int = MAX_BYTES, references: Collection[str] = ()
    ) -> None:
        """Prepare signing under a scheme and its key.

        Args:
            scheme: The scheme that signatures will name.
            key: The key that the scheme was made for.
            max_bytes: The most bytes that a normal form may have.
            references: Collections whose short documents are found in others.

        Raises:
            ValueError: The scheme was made for another key, or one of its numbers is out of range.
        """
        if key.fingerprint != scheme.key_fingerprint:
            raise ValueError(f"key: the scheme was made for the key {scheme.key_fingerprint}, not {key.fingerprint}")
        self._scheme = scheme
        self._key = key
        self._max_bytes = max_bytes
        self._references = frozenset(references)
        self._context = native.context(packed_context(scheme, key))
        of_windows = replace(scheme, anchors=WINDOW_RULES, sampled=None, noise=None)
        self._window_context = native.context(packed_context(of_windows, key))
        self._rows = native.context(packed_context(of_rows(scheme), key))

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
        signed = self._computed(plain, self._context)
        return signed and self._with_digests(self._with_rows(signed, plain), plain, text)

    def _computed(self, plain: str, context: Context) -> Signed | None:
        """Return what C computes of a text, None if its normal form is too large."""
        raw = plain.encode("utf-8", "surrogatepass")
        tables = None if len(raw) == len(plain) else unicode_tables()
        return native.sign(context, tables, raw, self._max_bytes)

    def _with_rows(self, signed: Signed, plain: str) -> Signed:
        """Return what was signed with the sketch of the rows of a list, and with anchors among them."""
        rows = short_rows(plain)
        of_rows = self._computed(rows, self._rows) if rows else None
        if of_rows is None:
            return signed
        digest, raw_digest, content = signed
        anchors = np.unique(np.frombuffer(content[-1] + of_rows[2][-1], dtype="<u8"))
        keys = anchors[: self._scheme.anchors.max_anchors].tobytes()
        return digest, raw_digest, (*content[:5], of_rows[2][5], *content[6:9], keys)

    def _with_digests(self, signed: Signed, plain: str, text: str) -> Signed:
        """Return what was signed with the digests that the rules of the scheme ask for.

        Signs, characters and numbers that are read as others, and text that no normal form holds change the first half
        of its digest. The second half says whether what is read is equal. The raw digest of a rewritten text is that of
        the text as it came.
        """
        digest, raw_digest, content = signed
        found = b""
        if self._scheme.text.signs:
            found = signs(plain) + unread(text) + (unfolded(text) + respelled(text)).encode("utf-8", "replace")
            if as_meant(text) != text:
                found += normalize(text).data
        if found:
            digest = self._key.digest(digest + found)[:VERSION_BYTES] + digest[VERSION_BYTES:]
        if plain is not text:
            raw_digest = self._key.digest(without_layout(text))
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
            document.against, self._windows(document, words, spaceless=spaceless),
        )
        # fmt: on

    def _windows(self, document: Document, words: int, *, spaceless: bool) -> bytes:
        """Return all windows of a text with references, or of an item of one."""
        is_item = document.collection in self._references and words <= ITEM_WORDS
        if spaceless or not (is_item or document.against):
            return b""
        plain = rewritten(document.text or "", self._scheme.text)
        signed = self._computed(plain, self._window_context)
        return signed[2][-1] if signed else b""


def _milliseconds(observed_at: datetime) -> int:
    if observed_at.tzinfo is None:
        raise ValueError("observed_at: a time zone expected")
    return to_milliseconds(observed_at)


def _present(value: _Value | None, name: str) -> _Value:
    if value is None:
        raise ValueError(f"{name}: a value expected in a complete document")
    return value


def of_rows(scheme: Scheme) -> Scheme:
    """Return the scheme that signs the rows of a list, each as one word."""
    anchors = AnchorRules(words=1, run=scheme.rows.run, max_anchors=scheme.rows.keys)
    return replace(scheme, sketch=replace(scheme.sketch, shingle_words=1), anchors=anchors, sampled=None, noise=None)


def packed_context(scheme: Scheme, key: HashKey) -> bytes:
    """Return the table, salts and numbers for C, 8 bytes each, ordered as `Numbers` in native/job.h."""
    text, sketch, ld = scheme.text, scheme.sketch, scheme.ld
    # The C code has the width of an LD window as a constant, so a scheme cannot set another one.
    if ld.window_bytes != LD_WINDOW_BYTES or len(ld.rates) > _MAX_RATES:
        raise ValueError(f"ld: windows of {LD_WINDOW_BYTES} bytes and at most {_MAX_RATES} rates expected")
    numbers = [
        *(text.mark_run, text.spaceless_share, text.word_bytes),
        *(sketch.bits, sketch.shingle_words, sketch.window_bytes),
        *(len(ld.rates), *ld.rates, *[0] * (_MAX_RATES - len(ld.rates))),
        *(*ld.lengths, *[0] * (_MAX_RATES - len(ld.lengths))),
        *(ld.symbol_bits, ld.gap_bits, ld.gap_steps, ld.max_symbols),
        *astuple(scheme.anchors),
        *(astuple(scheme.sampled) if scheme.sampled else (0, 0, 0)),
        *(astuple(scheme.noise) if scheme.noise else (0, 0, 0)),
    ]
    salts = struct.pack("<5Q", key.base, key.word_base, key.sketch_salt, key.ld_salt, key.anchor_salt)
    return b"".join((key.table_bytes, salts, key.digest_key, struct.pack(f"<{len(numbers)}Q", *numbers)))


def signs(text: str) -> bytes:
    """Return the signs of a text that mean something, each with the letter or digit that follows it, in order.

    These are currency, percent, mathematics, arrows and emoji wherever they are, marks between two digits, a minus or a
    point in front of a number, `*`, `/` and `^` between two words, `#` at the end of a word, and `!` in front of a word
    or of `=`. `+`, `<`, `=` and `>` count in rows of up to three. A row of `>` at the start of a line is a quote.
    Braille and three private code points in a row count as text that no normal form holds. All others are punctuation
    or layout, which includes line breaks.
    """
    found = native.signs(text.encode("utf-8", "surrogatepass")).decode()
    if not found.isascii():
        found = unicodedata.normalize("NFKC", found).translate(_WRITTEN_AS)
    return found.lower().encode()


def unread(text: str) -> bytes:
    """Return the text that no normal form holds, as it came.

    These are music, sign writing and scripts newer than Unicode 14.0, which a newer Python would compose or read in
    another case. Small digits and fractions behind a digit count too, because NFKC makes digits of the number of them.
    """
    if text.isascii():
        return b""
    beyond = beyond_ascii(text)
    found = _RAISED.findall(text) if _HAS_SMALL.search(beyond) else []
    if _UNREAD.search(beyond):
        found = [*_UNREAD.findall(text), *found]
    return " ".join(found).encode()


def without_layout(text: str) -> bytes:
    """Return a text in UTF-8 with one space in place of each run of spaces and control characters of ASCII."""
    return _LAYOUT.sub(b" ", text.encode("utf-8", "surrogatepass")).strip(b" ")
