"""A candidate: an earlier document that shares a bucket with another."""

from typing import TYPE_CHECKING, NamedTuple

from nearstream.streams.matching.protocol.decision import KeyMatch

if TYPE_CHECKING:
    from nearstream.streams.estimates.comparing import Comparable  # which loads numpy


class Candidate(NamedTuple):
    """An earlier document that shares a bucket, not yet verified.

    Attributes:
        number: Its number in the store.
        earlier: The document, with its signature as a record keeps it (`Scheme.kept`).
        match: The keys that both share.
        anchor_count: Number of anchor keys that the earlier document has.
        represents: It represents its family: a copy of it joins this family.
    """

    number: int
    earlier: "Comparable"
    match: KeyMatch
    anchor_count: int
    represents: bool = True
