"""A candidate: an earlier document that shares a bucket with another, and how candidates are weighed."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from nearstream.schemas.signature import Signature

if TYPE_CHECKING:
    from nearstream.streams.estimates.comparing import Comparable  # which loads numpy

UNIT = 100  # weight of an anchor that one earlier document has
BAND_ANCHORS = 4  # a shared band weighs as much as this many shared anchors
WEIGHT_MAX = 65_535
RARE_BELOW = 5  # a key is rare if fewer earlier documents have it
# Shared keys show more than common text if so many of them, and a quarter of them, are rare. One may be a date beside
# the frame of a page, and a few more the edges of that frame.
RARE_KEYS, RARE_PART = 2, 4


@dataclass(frozen=True)
class Candidate:
    """An earlier document that shares a bucket, not yet verified.

    Attributes:
        number: Given by the index in order of admission.
        earlier: The document, with its signature as a record keeps it (`Scheme.kept`).
        bands: Number of shared band keys.
        anchors: Number of shared anchor keys.
        anchor_count: Number of anchor keys that the earlier document has.
        by_digest: It has the digest of the arriving document.
        by_lineage: It has an equal lineage, or is a former state of this document.
        in_full_bucket: A shared bucket was full, so other candidates may be missing.
        represents: It represents its family: a copy of it joins this family.
        shares_rare: At least `RARE_KEYS`, and one in `RARE_PART`, of the shared bands and anchors are rare: when the
            other document arrived, fewer than `RARE_BELOW` earlier documents had them. Always true where every pair
            has its event.
    """

    number: int
    earlier: "Comparable" = field(compare=False)
    bands: int
    anchors: int
    anchor_count: int
    by_digest: bool
    by_lineage: bool
    in_full_bucket: bool
    represents: bool = True
    shares_rare: bool = True

    @cached_property
    def signature(self) -> Signature:
        """The signature of the document, unpacked on first use."""
        return self.earlier.signature


def weight(others: int) -> int:
    """Return the weight of a shared anchor.

    This is `UNIT` / sqrt(others), rounded down, because a rare anchor says more than a frequent one.

    Args:
        others: Number of earlier documents that have the anchor, at least 1.
    """
    return int(UNIT / math.sqrt(others))


def in_order(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Sort candidates: digest and lineage matches first, then by shared keys.

    Ties go by number. Only properties of the pair count, so no other document changes the order.
    """

    def rank(candidate: Candidate) -> tuple[bool, int, int]:
        is_match = candidate.by_digest or candidate.by_lineage
        return not is_match, -BAND_ANCHORS * candidate.bands - candidate.anchors, candidate.number

    return tuple(sorted(candidates, key=rank))
