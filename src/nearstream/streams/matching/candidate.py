"""A candidate: an earlier document that shares a bucket with another."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from nearstream.schemas.documents.signature import Signature
from nearstream.streams.matching.protocol.decision import KeyMatch

if TYPE_CHECKING:
    from nearstream.streams.estimates.comparing import Comparable  # which loads numpy


@dataclass(frozen=True)
class Candidate:
    """An earlier document that shares a bucket, not yet verified.

    Attributes:
        number: Its number in the store.
        earlier: The document, with its signature as a record keeps it (`Scheme.kept`).
        match: The keys that both share.
        anchor_count: Number of anchor keys that the earlier document has.
        represents: It represents its family: a copy of it joins this family.
    """

    number: int
    earlier: "Comparable" = field(compare=False)
    match: KeyMatch
    anchor_count: int
    represents: bool = True

    @cached_property
    def signature(self) -> Signature:
        """The signature of the document, unpacked on first use."""
        return self.earlier.signature
