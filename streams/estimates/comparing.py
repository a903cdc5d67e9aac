"""Comparing one signature with others, in C where the extension is installed."""

from collections.abc import Sequence
from operator import attrgetter

from nearstream.schemas.signature import Signature
from nearstream.streams.estimates import estimate_numpy
from nearstream.streams.estimates.alignment import reach_table
from nearstream.streams.estimates.distance import PACKED_COSTS
from nearstream.streams.estimates.estimate import PACKED, Estimate
from nearstream.streams.estimates.pair import refuse_incomparable, same_lineage
from nearstream.streams.native import native, required

# What native/estimates/content.h reads of a signature, in this order.
_fields_of = attrgetter(
    *("digest", "n_bytes", "characters", "words", "shingles", "spaceless", "sketch", "rate", "ld", "gaps")
)


def compare_numpy(arriving: Signature, others: Sequence[Signature]) -> list[Estimate]:
    """Compare a signature with others, without C."""
    return [estimate_numpy.estimate(arriving, other) for other in others]


def compare_native(arriving: Signature, others: Sequence[Signature]) -> list[Estimate]:
    """Compare a signature with others in one call of C."""
    for other in others:
        refuse_incomparable(arriving, other)
    fields, is_aligned = tuple(map(_fields_of, others)), bytes(same_lineage(arriving, other) for other in others)
    packed = required().compare(_fields_of(arriving), fields, is_aligned, reach_table, PACKED_COSTS)
    return list(map(Estimate._make, PACKED.iter_unpack(packed)))


compare = compare_native if native else compare_numpy


def estimate(a: Signature, b: Signature) -> Estimate:
    """Estimate all numbers about two texts.

    The order of the arguments does not matter. Whole signatures and those that an index keeps give equal numbers.

    Raises:
        ValueError: The signatures are of two schemes or two collections, or a normal form is empty.
    """
    return compare(a, [b])[0]
