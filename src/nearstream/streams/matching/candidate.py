"""A candidate: an earlier document that shares a bucket with another."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from nearstream.schemas.documents.signature import Signature

if TYPE_CHECKING:
    from nearstream.streams.estimates.comparing import Comparable  # which loads numpy


@dataclass(frozen=True)
class Candidate:
    """An earlier document that shares a bucket, not yet verified.

    Attributes:
        number: Its number in the store.
        earlier: The document, with its signature as a record keeps it (`Scheme.kept`).
        bands: Number of shared band keys.
        anchors: Number of shared anchor keys.
        anchor_count: Number of anchor keys that the earlier document has.
        by_digest: It has the digest of the arriving document.
        by_lineage: It has an equal lineage, or is a former state of this document.
        in_full_bucket: A shared bucket was full, so other candidates may be missing.
        represents: It represents its family: a copy of it joins this family.
        shares_rare: Enough of the shared bands and anchors are rare. Always true where every pair
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
