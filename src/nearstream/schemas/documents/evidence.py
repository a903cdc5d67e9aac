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
    """A document, as an event names it. Unknown fields are left out."""

    id: Id  # The document's id.
    version: VersionId  # The first 8 bytes of its digest, in hex.
    observed_at: Time  # When the text was observed.
    characters: Count  # Code points of the normal form.
    url: Url | None = None  # Where the text was observed.
    lineage: Id | None = None  # What successive states of one thing share.
    source: Name | None = None  # The kind of producer.
    labels: Labels = {}  # The producer's labels.
    topic: TopicName | None = None  # The topic of the record that held the document.
    partition: Partition | None = None  # The partition of that record.
    offset: Offset | None = None  # The offset of that record.
    sent_at: Time | None = None  # The timestamp of that record.

    def __post_init__(self) -> None:
        require_times(self.observed_at, *(() if self.sent_at is None else (self.sent_at,)))


class SharedKeys(msgspec.Struct, frozen=True):
    """Index keys that two documents share, which made them candidates."""

    bands: Count  # Common bands.
    bands_of: Count  # Bands that both documents have as keys.
    anchors: Count  # Common anchors.
    anchors_newer: Count  # Anchors of the newer document.
    anchors_older: Count  # Anchors of the older document.


class Interval(msgspec.Struct, frozen=True):
    """A proportion in [0, 1] with its 95 % confidence interval."""

    value: Share  # The estimate.
    low: Share  # Lower end of the interval.
    high: Share  # Upper end of the interval.


class CommonSymbols(msgspec.Struct, frozen=True):
    """Common LD symbols of two documents."""

    rate: Count  # Bytes per symbol at which both were compared, which is the coarser rate of the two signatures.
    in_order: Share  # Proportion of the shorter document's symbols found in the other in order, in [0, 1].
    order_free: Share  # Proportion of the shorter document's symbols found in the other in any order, in [0, 1].
    symbols: Count  # Common symbols in any order.
    symbols_newer: Count  # Symbols of the newer document.
    symbols_older: Count  # Symbols of the older document.


class ContainmentShares(msgspec.Struct, frozen=True):
    """Containment in both directions, in [0, 1]."""

    newer_in_older: Share  # Common 5-word shingles over those of the newer document.
    older_in_newer: Share  # Common 5-word shingles over those of the older document.


class Distance(msgspec.Struct, frozen=True):
    """An estimated edit distance in characters with its 90 % band."""

    value: Count  # The estimate.
    low: Count  # Lower end of the band.
    high: Count  # Upper end of the band.


class Amount(msgspec.Struct, frozen=True):
    """An estimated number of characters with its 90 % band."""

    value: Count  # The estimate.
    low: Count  # Lower end of the band.
    high: Count  # Upper end of the band.


class SourceRef(msgspec.Struct, frozen=True):
    """An earlier document that has some of the text of another."""

    id: Id  # Its id.
    version: VersionId  # The first 8 bytes of its digest, in hex.
    characters: Count  # Characters that it has and the sources before it have not.


class Span(msgspec.Struct, frozen=True):
    """A common passage, as `[start, end)` in characters of each normal form."""

    newer: Place  # Its place in the newer document.
    older: Place  # Its place in the older document.


class ReferenceMatch(msgspec.Struct, frozen=True, kw_only=True):
    """The document of a reference collection that is most like another document."""

    collection: Name  # The collection, which the other document names in `against`.
    id: Id  # The id of the document in it.
    version: VersionId  # The first 8 bytes of its digest, in hex.
    observed_at: Time  # When it was observed.
    relation: Relation  # How both are related by their texts.
    resemblance: Interval  # Common shingles over all shingles of both documents.
    distance: Distance  # Estimated edit distance.
    inner: Literal["document", "reference"] | UnsetType = UNSET  # Of a containment: which one is inside the other.
    characters: Count  # Estimated characters of the other document that documents of the collection have.
    family: HexId  # Id of the family of the document.

    def __post_init__(self) -> None:
        require_times(self.observed_at)


class Comparison(msgspec.Struct, frozen=True):
    """A number of two documents against its bound, for those who ask why."""

    number: str  # Name of the number.
    value: float  # Its value.
    sign: str  # `<`, `<=`, `>` or `>=`.
    threshold: str  # Name of the bound.
    bound: float  # Its value.
    holds: bool  # Whether the comparison holds.

    @property
    def lacks(self) -> float:
        """Distance of the number from the bound, over the bound. 0 if the comparison holds."""
        if self.holds:
            return 0.0
        return abs(self.value - self.bound) / self.bound if self.bound else abs(self.value)


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers on which an event is based."""

    keys: SharedKeys  # The shared index keys.
    resemblance: Interval  # Common shingles over all shingles of both documents.
    overlap: CommonSymbols  # Common LD symbols.
    containment: ContainmentShares  # Common shingles over those of each document.
    distance: Distance  # Estimated edit distance.
    # The distance over the characters of the longer document.
    distance_ratio: Annotated[float, Meta(ge=0, le=COUNT_MAX)]
    spans: Annotated[tuple[Span, ...], Meta(max_length=PLACES_MAX)]  # The longest common passages.
    spans_omitted: Count  # How many more common passages there are.
