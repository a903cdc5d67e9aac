"""From a document to its signature."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

from schemas.codec import InvalidMessageError
from schemas.dead_letter import Reason
from schemas.document import Document
from schemas.signature import Origin, Signature
from streams.anchors import anchors
from streams.hashing import HashKey
from streams.ld import LdSignature, ld_signature
from streams.minhash import sketch
from streams.normalize import NormalForm, normalize
from streams.scheme import Scheme
from streams.shingles import NONE, FeatureHasher

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
MAX_BYTES = 1024 * 1024

_Value = TypeVar("_Value")


@dataclass(frozen=True)
class _Content:
    """What a signature says about the text alone."""

    words: int
    shingles: int
    sketch: bytes
    ld: LdSignature
    anchors: bytes


class Signer:
    """Signs documents under one scheme; keeps tables of up to 48 bytes for each byte of the longest normal form.

    Attributes:
        implementation: What computes, for log and metric.
    """

    implementation: Final = "numpy"

    def __init__(self, scheme: Scheme, key: HashKey, max_bytes: int = MAX_BYTES) -> None:
        """Takes the scheme with its key, and how many bytes a normal form may have.

        Raises:
            ValueError: The scheme was made for another key.
        """
        if key.fingerprint != scheme.key_fingerprint:
            raise ValueError(f"the key {scheme.key_fingerprint} expected, not {key.fingerprint}")
        self._scheme = scheme
        self._key = key
        self._max_bytes = max_bytes
        self._hasher = FeatureHasher(key, scheme.text.word_bytes)

    def sign(self, document: Document, origin: Origin | None = None, degraded: tuple[str, ...] = ()) -> Signature:
        """The signature of a complete document; of an empty normal form one with `n_bytes` 0.

        Args:
            document: With `id`, `text` and `observed_at`.
            origin: The record that it came in.
            degraded: What was not whole before signing.

        Raises:
            ValueError: A field is missing, or `observed_at` has no time zone.
            InvalidMessageError: `too_large`: one character may become 18 in the normal form.
        """
        document_id = _present(document.id, "id")
        text = _present(document.text, "text")
        observed_at_ms = _milliseconds(_present(document.observed_at, "observed_at"))
        form = normalize(text, self._scheme.text)
        if form.data.size > self._max_bytes:
            raise InvalidMessageError(
                Reason.TOO_LARGE, f"$.text: a normal form of at most {self._max_bytes} bytes of UTF-8 expected"
            )
        content = self._content(form)
        return Signature(
            scheme=self._scheme.name,
            collection=document.collection,
            id=document_id,
            digest=self._key.digest(form.data.data),
            raw_digest=self._key.digest(text.encode("utf-8", "surrogatepass")),
            observed_at_ms=observed_at_ms,
            n_bytes=form.data.size,
            characters=form.characters,
            spaceless=form.spaceless,
            lineage=document.lineage,
            url=document.url,
            source=document.source,
            labels=document.labels,
            origin=origin,
            degraded=degraded,
            words=content.words,
            shingles=content.shingles,
            sketch=content.sketch,
            rate=content.ld.rate,
            ld=content.ld.ld,
            gaps=content.ld.gaps,
            anchors=content.anchors,
        )

    def _content(self, form: NormalForm) -> _Content:
        scheme = self._scheme
        if not form.data.size:
            rate = scheme.ld.first_rate(0) if scheme.ld else 0
            return _Content(0, 0, sketch(NONE, scheme.sketch), LdSignature(rate, b"", b""), b"")
        hasher = self._hasher
        features = hasher.features(form)
        shingles = hasher.shingles(features, scheme.sketch)
        ld = LdSignature(0, b"", b"")
        if scheme.ld:
            ld = ld_signature(features.bytes_prefix, self._key.ld_salt, hasher.over_bytes, scheme.ld)
        found = b""
        if scheme.anchors:
            found = anchors(hasher.anchor_windows(features, scheme.anchors), form.spaceless, scheme.anchors)
        return _Content(features.words, shingles.size, sketch(shingles, scheme.sketch), ld, found)


def _milliseconds(observed_at: datetime) -> int:
    """Whole milliseconds since 1970, rounded down."""
    if observed_at.tzinfo is None:
        raise ValueError("observed_at: a time zone expected")
    return (observed_at - _EPOCH) // _MILLISECOND


def _present(value: _Value | None, name: str) -> _Value:
    if value is None:
        raise ValueError(f"{name}: a value expected in a complete document")
    return value
