"""Comparing one text with others, in C where the extension is installed.

What loads numpy is imported on use, because most commands that read the index compare nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import Protocol

from nearstream.schemas.documents.signature import Signature
from nearstream.streams.estimates.estimate import PACKED, Estimate
from nearstream.streams.estimates.stated import Stated, refuse_incomparable, tie
from nearstream.streams.native import PackedText, TextFields, fastest, native

# The fields of a signature in the order of `TextFields`.
fields_of = attrgetter(
    *("digest", "n_bytes", "characters", "words", "shingles", "spaceless", "sketch", "rate", "ld", "gaps")
)


class Comparable(Stated, Protocol):
    """A document to compare with. Its text may still be packed."""

    @property
    def digest(self) -> bytes:
        """The digest of the text, as `Signature` describes it."""

    @property
    def version(self) -> str:
        """The version of the document, as `Signature` describes it."""

    @property
    def observed_at_ms(self) -> int:
        """When the document was observed, as `Signature` describes it."""

    @property
    def order(self) -> tuple[int, str, int, int, str]:
        """The sort key of newer and older, as `Signature` describes it."""

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of the producer."""

    @property
    def text(self) -> TextFields | PackedText:
        """The text, as C reads it."""

    @property
    def signature(self) -> Signature:
        """The signature, unpacked on demand."""


@dataclass(frozen=True)
class Unpacked:
    """A document whose signature is at hand."""

    signature: Signature

    @property
    def collection(self) -> str:
        """The collection of the signature."""
        return self.signature.collection

    @property
    def id(self) -> str:
        """The id of the signature."""
        return self.signature.id

    @property
    def lineage(self) -> str | None:
        """The lineage of the signature."""
        return self.signature.lineage

    @property
    def digest(self) -> bytes:
        """The digest of the signature."""
        return self.signature.digest

    @property
    def version(self) -> str:
        """The version of the signature."""
        return self.signature.version

    @property
    def observed_at_ms(self) -> int:
        """The time of the signature."""
        return self.signature.observed_at_ms

    @property
    def order(self) -> tuple[int, str, int, int, str]:
        """The sort key of the signature."""
        return self.signature.order

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of the signature."""
        return self.signature.labels

    @property
    def text(self) -> TextFields:
        """The fields of the signature that depend on the text alone."""
        fields: TextFields = fields_of(self.signature)
        return fields


def compare_numpy(arriving: Signature, others: Sequence[Comparable]) -> list[Estimate]:
    """Compare a text with others of its collection, without C."""
    from nearstream.streams.estimates import estimate_numpy

    return [estimate_numpy.estimate(arriving, other.signature) for other in others]


def compare_native(arriving: Signature, others: Sequence[Comparable]) -> list[Estimate]:
    """Compare a text with others of its collection in one call of C."""
    ties = bytes([tie(arriving, other) for other in others])
    texts = tuple([other.text for other in others])
    packed = native.compare(fields_of(arriving), texts, ties, *_tables())
    return list(map(Estimate._make, PACKED.iter_unpack(packed)))


@cache
def _tables() -> tuple[Callable[[int], bytes], bytes]:
    """Return what C compares with: the reach of blocks by rate, and the costs of unrelated text."""
    from nearstream.streams.estimates.alignment import reach_table
    from nearstream.streams.estimates.distance import PACKED_COSTS

    return reach_table, PACKED_COSTS


compare = fastest(compare_native, compare_numpy)


def estimate(a: Signature, b: Signature) -> Estimate:
    """Estimate all numbers about two texts.

    The order of the arguments does not matter. Whole signatures and those that an index keeps give equal numbers.

    Raises:
        ValueError: The signatures are of two schemes or two collections, or a normal form is empty.
    """
    refuse_incomparable(a, b)
    return compare(a, [Unpacked(b)])[0]
