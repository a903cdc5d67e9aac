"""A candidate: an earlier document that shares a bucket with another."""

from typing import NamedTuple

from nearstream.streams.matching.protocol.decision import KeyMatch
from nearstream.streams.store.record import Comparable


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
    earlier: Comparable
    match: KeyMatch
    anchor_count: int
    represents: bool = True
