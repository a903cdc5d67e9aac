"""What events say: documents, and the numbers that relate them."""

from hashlib import blake2b
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Meta, UnsetType

from nearstream.schemas.documents.document import (
    COUNT_MAX,
    Count,
    Id,
    Labels,
    Name,
    Offset,
    Partition,
    Share,
    Time,
    TopicName,
    Url,
    require_times,
)


class DocumentState(NamedTuple):
    """One state of a document, as event ids name it."""

    document_key: str = ""  # `<collection>/<id>`
    version: str = ""  # first 8 bytes of its digest, in hex
    position: str = ""  # `<partition>/<offset>` of its record on `documents`, empty if it came from no topic


def event_id(kind: str, older: DocumentState, newer: DocumentState, scheme: str) -> str:
    """Return the deterministic id of an event, 32 hex characters.

    It is blake2b-16 over the eight fields. Each follows its length in bytes (u32, big-endian), because ids may contain
    any separator. Positions keep two events apart if a document returns to an earlier text. A retraction has the key of
    the removed document as `older`, and as `newer` the position of the removal. If the removal came from no topic, that
    is `removed_at` in milliseconds since 1970.
    """
    fields = [field.encode() for field in (kind, *older, *newer, scheme)]
    sized = b"".join([part for field in fields for part in (len(field).to_bytes(4, "big"), field)])
    return blake2b(sized, digest_size=16, person=b"nearstream.event").hexdigest()


def family_id(document_key: str, version: str, scheme: str) -> str:
    """Return the id of the family that a document founded, 32 hex characters."""
    return event_id("family", DocumentState(document_key, version), DocumentState(), scheme)


# The look-ahead refuses a final newline, before which `$` alone matches too.
HexId = Annotated[str, Meta(pattern=r"^[0-9a-f]{32}(?!\n)$")]
VersionId = Annotated[str, Meta(pattern=r"^[0-9a-f]{16}(?!\n)$")]
Place = tuple[Count, Count]
PLACES_MAX = 64
Places = Annotated[tuple[Place, ...], Meta(max_length=PLACES_MAX)]

Relation = Literal["exact_duplicate", "near_duplicate", "containment", "version", "rearranged", "overlap"]


class DocumentRef(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A document, as an event names it. Unknown fields are left out.

    Attributes:
        id: The document's id.
        version: The first 8 bytes of its digest, in hex.
        observed_at: When the text was observed.
        characters: Code points of the normal form.
        url: Where the text was observed.
        lineage: What successive states of one thing share.
        source: The kind of producer.
        labels: The producer's labels.
        topic: The topic of the record that held the document.
        partition: The partition of that record.
        offset: The offset of that record.
        sent_at: The timestamp of that record.
    """

    id: Id
    version: VersionId
    observed_at: Time
    characters: Count
    url: Url | None = None
    lineage: Id | None = None
    source: Name | None = None
    labels: Labels = {}
    topic: TopicName | None = None
    partition: Partition | None = None
    offset: Offset | None = None
    sent_at: Time | None = None

    def __post_init__(self) -> None:
        """Check the time."""
        require_times(self.observed_at, *(() if self.sent_at is None else (self.sent_at,)))


class SharedKeys(msgspec.Struct, frozen=True):
    """Index keys that two documents share, which made them candidates.

    Attributes:
        bands: Common bands.
        bands_of: Bands that both documents have as keys.
        anchors: Common anchors.
        anchors_newer: Anchors of the newer document.
        anchors_older: Anchors of the older document.
    """

    bands: Count
    bands_of: Count
    anchors: Count
    anchors_newer: Count
    anchors_older: Count


class Interval(msgspec.Struct, frozen=True):
    """A proportion in [0, 1] with its 95 % confidence interval.

    Attributes:
        value: The estimate.
        low: Lower end of the interval.
        high: Upper end of the interval.
    """

    value: Share
    low: Share
    high: Share


class CommonSymbols(msgspec.Struct, frozen=True):
    """Common LD symbols of two documents.

    Attributes:
        rate: Bytes per symbol at which both were compared, which is the coarser rate of the two signatures.
        in_order: Proportion of the shorter document's symbols found in the other in order, in [0, 1].
        order_free: Proportion of the shorter document's symbols found in the other in any order, in [0, 1].
        symbols: Common symbols in any order.
        symbols_newer: Symbols of the newer document.
        symbols_older: Symbols of the older document.
    """

    rate: Count
    in_order: Share
    order_free: Share
    symbols: Count
    symbols_newer: Count
    symbols_older: Count


class ContainmentShares(msgspec.Struct, frozen=True):
    """Containment in both directions, in [0, 1].

    Attributes:
        newer_in_older: Common 5-word shingles over those of the newer document.
        older_in_newer: Common 5-word shingles over those of the older document.
    """

    newer_in_older: Share
    older_in_newer: Share


class Distance(msgspec.Struct, frozen=True):
    """An estimated edit distance in characters with its 90 % band.

    Attributes:
        value: The estimate.
        low: Lower end of the band.
        high: Upper end of the band.
    """

    value: Count
    low: Count
    high: Count


class Amount(msgspec.Struct, frozen=True):
    """An estimated number of characters with its 90 % band.

    Attributes:
        value: The estimate.
        low: Lower end of the band.
        high: Upper end of the band.
    """

    value: Count
    low: Count
    high: Count


class SourceRef(msgspec.Struct, frozen=True):
    """An earlier document that has some of the text of another.

    Attributes:
        id: Its id.
        version: The first 8 bytes of its digest, in hex.
        characters: Characters that it has and the sources before it have not.
    """

    id: Id
    version: VersionId
    characters: Count


class Span(msgspec.Struct, frozen=True):
    """A common passage, as `[start, end)` in characters of each normal form.

    Attributes:
        newer: Its place in the newer document.
        older: Its place in the older document.
    """

    newer: Place
    older: Place


class ReferenceMatch(msgspec.Struct, frozen=True, kw_only=True):
    """The document of a reference collection that is most like another document.

    Attributes:
        collection: The collection, which the other document names in `against`.
        id: The id of the document in it.
        version: The first 8 bytes of its digest, in hex.
        observed_at: When it was observed.
        relation: How both are related by their texts.
        resemblance: Common shingles over all shingles of both documents.
        distance: Estimated edit distance. Left out by a scheme without an LD signature.
        inner: Of a containment: which one is inside the other.
        characters: Estimated characters of the other document that documents of the collection have. Left out as
            `distance` is.
        family: Id of the family of the document.
    """

    collection: Name
    id: Id
    version: VersionId
    observed_at: Time
    relation: Relation
    resemblance: Interval
    distance: Distance | UnsetType = UNSET
    inner: Literal["document", "reference"] | UnsetType = UNSET
    characters: Count | UnsetType = UNSET
    family: HexId

    def __post_init__(self) -> None:
        """Check the time."""
        require_times(self.observed_at)


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
    distance_ratio: Annotated[float, Meta(ge=0, le=COUNT_MAX)] | UnsetType = UNSET
    spans: Annotated[tuple[Span, ...], Meta(max_length=PLACES_MAX)] | UnsetType = UNSET
    spans_omitted: Count | UnsetType = UNSET
