"""What is said downstream, one event per pair and relation."""

from datetime import datetime
from hashlib import blake2b
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType


class DocumentRef(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A document as an event names it; what is unknown is left out."""

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
    """Why two documents met: the index keys that they share, and how many each has."""

    bands: int
    bands_of: int
    anchors: int
    anchors_newer: int
    anchors_older: int


class Interval(msgspec.Struct, frozen=True):
    """A share in [0, 1] with the ends of its 95 % interval."""

    value: float
    low: float
    high: float


class CommonSymbols(msgspec.Struct, frozen=True):
    """Share of the shorter document's LD symbols found in the other, with the counts behind it.

    `rate` is the coarser one of both signatures, at which the symbols were compared.
    """

    rate: int
    in_order: float
    order_free: float
    symbols: int
    symbols_newer: int
    symbols_older: int


class ContainmentShares(msgspec.Struct, frozen=True):
    """Common 5-word shingles over those of the document that is inside, both ways."""

    newer_in_older: float
    older_in_newer: float


class Distance(msgspec.Struct, frozen=True):
    """Estimated edit distance in characters with the ends of its 90 % band."""

    value: int
    low: int
    high: int


class Span(msgspec.Struct, frozen=True):
    """One matching passage, `[start, end)` in characters of both normal forms."""

    newer: tuple[int, int]
    older: tuple[int, int]


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers behind an event; a scheme without an LD signature leaves out all from `overlap` on."""

    keys: SharedKeys
    resemblance: Interval
    overlap: CommonSymbols | UnsetType = UNSET
    containment: ContainmentShares | UnsetType = UNSET
    distance: Distance | UnsetType = UNSET
    distance_ratio: float | UnsetType = UNSET
    spans: tuple[Span, ...] | UnsetType = UNSET
    spans_omitted: int | UnsetType = UNSET


class RelationEvent(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """What every relation event says.

    Attributes:
        event_id: 32 hex, see `event_id()`; the same pair and relation always get the same.
        newer: The larger by (observed_at, id, version), whichever arrived first.
        older: The other one.
        same_lineage: Both are states of one thing.
        rule: The rule that decided.
        thresholds: All bounds of the rule's condition, name to value.
        confidence: Share of events of this kind found right on labelled documents.
        low_confidence: Why the numbers are weak, if they are.
        degraded: What of input or environment was not whole.
    """

    event_id: str
    collection: str
    scheme: str
    newer: DocumentRef
    older: DocumentRef
    same_lineage: bool
    rule: str
    thresholds: dict[str, float]
    confidence: float
    evidence: Evidence
    low_confidence: tuple[str, ...]
    degraded: tuple[str, ...]


class ExactDuplicate(RelationEvent, frozen=True, kw_only=True, tag="exact_duplicate"):
    """Both have the same normal form."""


class ChangeEvent(RelationEvent, frozen=True, kw_only=True):
    """A relation event that also says what the newer document changed; without an LD signature it cannot.

    Attributes:
        added: Estimated characters that the newer has and the older has not.
        removed: The other way round.
        new_spans: The longest stretches of the newer, `[start, end)` in characters of its normal form, in which no
            passage of the older was found; new text lies inside them. None if `added` is 0.
        new_spans_omitted: How many more there are.
    """

    added: int | UnsetType = UNSET
    removed: int | UnsetType = UNSET
    new_spans: tuple[tuple[int, int], ...] | UnsetType = UNSET
    new_spans_omitted: int | UnsetType = UNSET


class NearDuplicate(ChangeEvent, frozen=True, kw_only=True, tag="near_duplicate"):
    """Same content in the same order, with small edits."""


class Containment(ChangeEvent, frozen=True, kw_only=True, tag="containment"):
    """One lies inside the other; `place` is its span in characters of the outer normal form."""

    inner: Literal["newer", "older"]
    place: tuple[int, int]


class Version(ChangeEvent, frozen=True, kw_only=True, tag="version"):
    """Two states of one thing."""


class Rearranged(RelationEvent, frozen=True, kw_only=True, tag="rearranged"):
    """Same content in another order."""


class Overlap(RelationEvent, frozen=True, kw_only=True, tag="overlap"):
    """A shared passage; neither lies inside the other."""


class Retraction(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="retraction"):
    """Every event that names this document with `observed_at` up to `removed_at` is void."""

    event_id: str
    collection: str
    scheme: str
    document_id: str
    removed_at: datetime
    reason: str = "tombstone"


Event = ExactDuplicate | NearDuplicate | Containment | Version | Rearranged | Overlap | Retraction


def event_id(kind: str, older_key: str, older_version: str, newer_key: str, newer_version: str, scheme: str) -> str:
    """Deterministic id of an event, 32 hex characters.

    blake2b-16 over the six fields, each behind its length in bytes (u32, big-endian), since ids may
    hold any separator. A retraction passes its document key, "", "", removed_at in milliseconds.
    """
    state = blake2b(digest_size=16, person=b"nearstream.event")
    for field in (kind, older_key, older_version, newer_key, newer_version, scheme):
        data = field.encode("utf-8")
        state.update(len(data).to_bytes(4, "big"))
        state.update(data)
    return state.hexdigest()


def kind_of(event: Event) -> str:
    """The event's `type` as it stands on the wire, such as `near_duplicate`."""
    return str(type(event).__struct_config__.tag)
