"""What events say: documents, and the numbers that relate them."""

from datetime import datetime
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

Relation = Literal["exact_duplicate", "near_duplicate", "containment", "version", "rearranged", "overlap"]


class DocumentRef(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A document, as an event names it. Unknown fields are left out.

    Attributes:
        id: The document's id.
        version: The first 8 bytes of the digest of its normal form, in hex.
        observed_at: When the text was observed.
        characters: Code points of the normal form.
        url: Where the text was observed.
        lineage: What successive states of one thing share.
        source: The kind of producer.
        labels: The producer's labels.
        topic: The topic of the record that held the document.
        partition: The partition of that record.
        offset: The offset of that record.
    """

    id: str
    version: str
    observed_at: datetime
    characters: int
    url: str | None = None
    lineage: str | None = None
    source: str | None = None
    labels: dict[str, str] = {}
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None


class SharedKeys(msgspec.Struct, frozen=True):
    """Index keys that two documents share, which made them candidates.

    Attributes:
        bands: Common bands.
        bands_of: Bands that both documents have as keys.
        anchors: Common anchors.
        anchors_newer: Anchors of the newer document.
        anchors_older: Anchors of the older document.
    """

    bands: int
    bands_of: int
    anchors: int
    anchors_newer: int
    anchors_older: int


class Interval(msgspec.Struct, frozen=True):
    """A proportion in [0, 1] with its 95 % confidence interval."""

    value: float
    low: float
    high: float


class CommonSymbols(msgspec.Struct, frozen=True):
    """Common LD symbols of two documents.

    Attributes:
        rate: Bytes per symbol at which both were compared, which is the coarser rate of the two signatures.
        in_order: Proportion of the shorter document's symbols found in the other in the same order, in [0, 1].
        order_free: Proportion of the shorter document's symbols found in the other in any order, in [0, 1].
        symbols: Common symbols in any order.
        symbols_newer: Symbols of the newer document.
        symbols_older: Symbols of the older document.
    """

    rate: int
    in_order: float
    order_free: float
    symbols: int
    symbols_newer: int
    symbols_older: int


class ContainmentShares(msgspec.Struct, frozen=True):
    """Containment in both directions, in [0, 1].

    Attributes:
        newer_in_older: Common 5-word shingles over those of the newer document.
        older_in_newer: Common 5-word shingles over those of the older document.
    """

    newer_in_older: float
    older_in_newer: float


class Distance(msgspec.Struct, frozen=True):
    """An estimated edit distance in characters with its 90 % band."""

    value: int
    low: int
    high: int


class Span(msgspec.Struct, frozen=True):
    """A common passage, as `[start, end)` in characters of each normal form."""

    newer: tuple[int, int]
    older: tuple[int, int]


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers on which an event is based.

    A scheme without an LD signature leaves out `overlap` and all fields after it.

    Attributes:
        keys: The shared index keys.
        resemblance: Common shingles over all shingles of both documents.
        overlap: Common LD symbols.
        containment: Common shingles over those of each document.
        distance: Estimated edit distance.
        distance_ratio: The distance over the characters of the longer document.
        spans: The longest common passages.
        spans_omitted: How many more common passages there are.
    """

    keys: SharedKeys
    resemblance: Interval
    overlap: CommonSymbols | UnsetType = UNSET
    containment: ContainmentShares | UnsetType = UNSET
    distance: Distance | UnsetType = UNSET
    distance_ratio: float | UnsetType = UNSET
    spans: tuple[Span, ...] | UnsetType = UNSET
    spans_omitted: int | UnsetType = UNSET
