"""The verdict about one document: what it is to the documents that came before it."""

from typing import Annotated, Literal, get_args

import msgspec
from msgspec import UNSET, Meta, UnsetType

from nearstream.schemas.documents.document import (
    COUNT_MAX,
    REFERENCES_MAX,
    Count,
    Name,
    SchemeName,
    Time,
    Words,
    require_times,
)
from nearstream.schemas.documents.evidence import (
    Amount,
    Distance,
    DocumentRef,
    HexId,
    Interval,
    Place,
    ReferenceMatch,
    Relation,
    SourceRef,
)

VerdictKind = Literal["unique", "unchanged", Relation]
VERDICT_KINDS: tuple[str, ...] = get_args(VerdictKind)


class FamilyRef(msgspec.Struct, frozen=True, kw_only=True):
    """The family of a document: the document and its copies."""

    id: HexId  # 32 hex characters, equal for all members.
    # Place of the document in the order of joining. The founder has 1, another state of a document keeps its own.
    ordinal: Annotated[int, Meta(ge=1, le=COUNT_MAX)]
    first_seen: Time  # When the founder was observed.
    founder: DocumentRef | None  # The first document of the family. Null if it was removed or has expired.
    # How many sites had a document of the family when this one joined, at most 256. A site is what an owner has
    # registered, by the public suffix list. Documents without URL are on none.
    sites: Count = 0

    def __post_init__(self) -> None:
        require_times(self.first_seen)


class DocumentVerdict(DocumentRef, frozen=True, kw_only=True, tag_field="type", tag="verdict"):
    """What one state of a document is to the documents that came before it.

    Every admitted record has one. A record that is delivered again has the same one, byte for byte, unless a document
    that it names was removed meanwhile, and but for `references`. The fields of `DocumentRef` name the document itself.
    """

    event_id: HexId  # 32 hex characters, always equal for a record.
    collection: Name  # The tenant of the document.
    scheme: SchemeName  # Name of the scheme of its signature.
    # The best relation to an earlier document, `unchanged` if the record repeats the current state, or `unique`. The
    # best is exact_duplicate, then near_duplicate, version by lineage, containment, rearranged, version, overlap, and
    # among equals the larger resemblance, then the earlier document.
    verdict: VerdictKind
    # The document of that relation. Null if the verdict is `unique`, or if that document was removed, has expired, or
    # was sent later.
    of: DocumentRef | None
    family: FamilyRef  # The family of the document.
    events: Count  # How many relation events were sent with this verdict.
    # Common shingles over all shingles of both documents. Left out if `of` is null, or for `unchanged`.
    resemblance: Interval | UnsetType = UNSET
    distance: Distance | UnsetType = UNSET  # Estimated edit distance. Left out as `resemblance` is.
    inner: Literal["newer", "older"] | UnsetType = UNSET  # Of a containment: which document is inside the other.
    # Estimated characters of this document that `of` does not have. Left out as `distance` is.
    added: Amount | UnsetType = UNSET
    # Estimated characters that none of the documents has that this verdict and its events name. Text counts as known
    # from a run of eight common words on. Left out for `unchanged`.
    novel: Amount | UnsetType = UNSET
    # Where these are, at most 32, the longest first, as `[start, end)`. Of more, the nearest are joined. In messages
    # these are characters of the normal form, since workers match signatures. `scan` prints them in the text as it was
    # sent.
    novel_spans: Annotated[tuple[Place, ...], Meta(max_length=32)] | UnsetType = UNSET
    # Where `of` has what this document has no more, at most 32, the longest first, as `[start, end)` in characters of
    # the normal form of `of`. Empty but for near_duplicate, version and containment. Left out as `added` is.
    removed_spans: Annotated[tuple[Place, ...], Meta(max_length=32)] | UnsetType = UNSET
    # The fewest of these documents that together have what is not novel, at most 5, the largest part first.
    sources: Annotated[tuple[SourceRef, ...], Meta(max_length=5)] | UnsetType = UNSET
    # Characters that are not novel, but known only from text that many documents have.
    common: Count | UnsetType = UNSET
    # Whether a consumer that keeps `of` may drop this document. Words, case and punctuation are equal, both have 20
    # words or more and were read in full, and `of` is not redundant. Never true for `unchanged`.
    redundant: bool | UnsetType = UNSET
    # Of each collection that the document names in `against`, the document that is most like it, if one is related, as
    # of the time of sending. Left out if it names none.
    references: Annotated[tuple[ReferenceMatch, ...], Meta(max_length=REFERENCES_MAX)] | UnsetType = UNSET
    # Reasons to trust the relation less. `common_text`: it rests on text that many documents have, such as the frame of
    # a site, and its event is not sent.
    low_confidence: Words = ()
    degraded: Words  # What was incomplete in the input or the environment.
