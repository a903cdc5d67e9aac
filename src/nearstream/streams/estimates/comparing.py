"""Comparing one text with others, in C where the extension is installed.

What loads numpy is imported on use, because most commands that read the index compare nothing.
"""

from collections.abc import Callable, Sequence
from functools import cache
from operator import attrgetter

from nearstream.schemas.documents.signature import Signature
from nearstream.streams.estimates.estimate import PACKED, Estimate
from nearstream.streams.estimates.stated import refuse_incomparable, tie
from nearstream.streams.native import PackedText, TextFields, fastest, native
from nearstream.streams.store.record import Comparable, Recorded, signature_of

# The fields of a signature in the order of `TextFields`.
fields_of = attrgetter(
    *("digest", "n_bytes", "characters", "words", "shingles", "spaceless", "sketch", "rate", "ld", "gaps")
)


def text_of(document: Comparable) -> TextFields | PackedText:
    """Return the text of a document, as C reads it."""
    if isinstance(document, Recorded):
        return document.text
    fields: TextFields = fields_of(document)
    return fields


def compare_numpy(arriving: Signature, others: Sequence[Comparable]) -> list[Estimate]:
    """Compare a text with others of its collection, without C."""
    from nearstream.streams.estimates import estimate_numpy

    return [estimate_numpy.estimate(arriving, signature_of(other)) for other in others]


def compare_native(arriving: Signature, others: Sequence[Comparable]) -> list[Estimate]:
    """Compare a text with others of its collection in one call of C."""
    ties = bytes([tie(arriving, other) for other in others])
    texts = tuple(map(text_of, others))
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
    return compare(a, [b])[0]
