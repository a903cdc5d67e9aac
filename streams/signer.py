"""From a document to its signature."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from typing import NamedTuple, TypeVar

from schemas.codec import InvalidMessageError
from schemas.dead_letter import Reason
from schemas.document import Document
from schemas.signature import Origin, Signature
from streams.content import Implementation, NumpySigning, Signed
from streams.hashing import HashKey
from streams.rules import unsound
from streams.scheme import Scheme

try:
    from streams.native import NativeSigning as _Fastest

    NATIVE_FAULT = ""
except ImportError as error:
    _Fastest = NumpySigning  # type: ignore[assignment,misc]
    # Without a compiler there is none, which is no fault.
    NATIVE_FAULT = str(error) if find_spec("streams._native") else ""

DEFAULT_IMPLEMENTATION = _Fastest.name
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
MAX_BYTES = 1024 * 1024
# Below 100,000 a text gains by company, from there on it loses: what numpy makes of more leaves the cache. Bytes of
# UTF-8, since characters that NFKC makes 18 of have three.
BATCH_BYTES = 196_608

_Value = TypeVar("_Value")


class Unsigned(NamedTuple):
    """A complete document, the record that it came in, and what was not whole before signing."""

    document: Document
    origin: Origin | None = None
    degraded: tuple[str, ...] = ()


class Signer:
    """Signs documents under one scheme.

    Attributes:
        implementation: What computes, "native" or "numpy", for log and metric.
    """

    def __init__(
        self, scheme: Scheme, key: HashKey, max_bytes: int = MAX_BYTES, computing: Implementation | None = None
    ) -> None:
        """Takes the scheme with its key, how many bytes a normal form may have, and what computes: C where it is.

        Raises:
            ValueError: The scheme was made for another key, or has numbers that signing cannot do.
        """
        if key.fingerprint != scheme.key_fingerprint:
            raise ValueError(f"the key {scheme.key_fingerprint} expected, not {key.fingerprint}")
        fault = unsound(scheme.text, scheme.sketch, scheme.ld, scheme.anchors, scheme.noise)
        if fault:
            raise ValueError(f"{scheme.label}: {fault} expected")
        self._scheme = scheme
        self._key = key
        self._max_bytes = max_bytes
        self._computing = computing or _Fastest(scheme, key)
        self.implementation = self._computing.name

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
        (signed,) = self._computing.sign_many((_present(document.text, "text"),), self._max_bytes)
        return self._signature(signed, document, origin, degraded)

    def sign_many(self, unsigned: Iterable[Unsigned]) -> Iterator[Signature | InvalidMessageError]:
        """The same for several documents, in their order; of one that `sign` would refuse as too large the refusal.

        Works on 196,608 bytes of UTF-8 at a time, or on one longer text, and on no more until these are taken: short
        texts are signed several times as fast together by numpy.

        Raises:
            ValueError: As `sign`.
        """
        for batch in _batches(unsigned):
            texts = [_present(one.document.text, "text") for one in batch]
            for one, signed in zip(batch, self._computing.sign_many(texts, self._max_bytes), strict=True):
                try:
                    yield self._signature(signed, *one)
                except InvalidMessageError as error:
                    yield error

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
        # By position: names take longer than all that C does with the words of a short text.
        # fmt: off
        return Signature(
            self._scheme.name, document.collection, document_id, digest, raw_digest, observed_at_ms,
            n_bytes, characters, words, shingles, spaceless, sketch, rate, ld, gaps, anchors,
            document.lineage, document.url, document.source, document.labels, origin, degraded,
        )
        # fmt: on


def _batches(unsigned: Iterable[Unsigned]) -> Iterator[list[Unsigned]]:
    """Documents of so many bytes together, but at least one."""
    batch: list[Unsigned] = []
    together = 0
    for one in unsigned:
        text = one.document.text or ""
        size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
        if batch and together + size > BATCH_BYTES:
            yield batch
            batch, together = [], 0
        batch.append(one)
        together += size
    if batch:
        yield batch


def _milliseconds(observed_at: datetime) -> int:
    """Whole milliseconds since 1970, rounded down."""
    if observed_at.tzinfo is None:
        raise ValueError("observed_at: a time zone expected")
    return (observed_at - _EPOCH) // _MILLISECOND


def _present(value: _Value | None, name: str) -> _Value:
    if value is None:
        raise ValueError(f"{name}: a value expected in a complete document")
    return value
