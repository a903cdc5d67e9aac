"""Events: verdicts about documents, relations of pairs, and removals."""

from typing import Annotated, Literal, get_args

import msgspec
from msgspec import UNSET, Meta, UnsetType

from nearstream.schemas.alerts.alert import Alert
from nearstream.schemas.documents.document import (
    COUNT_MAX,
    Count,
    Id,
    Name,
    Offset,
    Partition,
    SchemeName,
    Share,
    Time,
    TopicName,
    Word,
    Words,
    require_times,
)
from nearstream.schemas.documents.evidence import DocumentRef, Evidence, HexId, Place, Places, Relation
from nearstream.schemas.labels.label import LabelChange
from nearstream.schemas.verdicts.verdict import DocumentVerdict

# The `type` of each relation event. Append only: the shared index stores a relation as its position in this tuple.
RELATIONS: tuple[str, ...] = get_args(Relation)
Threshold = Annotated[float, Meta(ge=-COUNT_MAX, le=COUNT_MAX)]


class RelationEvent(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """The fields of every relation event."""

    event_id: HexId  # 32 hex characters, always equal for a pair and relation.
    collection: Name  # The tenant of both documents.
    scheme: SchemeName  # Name of the scheme of both signatures.
    newer: DocumentRef  # The document that is larger by (observed_at, id, position, version), whichever arrived first.
    older: DocumentRef  # The other document.
    same_lineage: bool  # Whether both are states of one thing.
    rule: Word  # The rule that decided.
    # All thresholds in the condition of the rule, name to value.
    thresholds: Annotated[dict[Word, Threshold], Meta(max_length=32)]
    confidence: Share  # Proportion of events of this type that were right on labelled documents.
    evidence: Evidence  # The numbers on which the event is based.
    low_confidence: Words  # Reasons to trust the numbers less, if there are any.
    degraded: Words  # What was incomplete in the input or the environment.
    # Id of the family of the document whose arrival caused the event, usually the newer one.
    family: HexId | UnsetType = UNSET


class ExactDuplicate(RelationEvent, frozen=True, kw_only=True, tag="exact_duplicate"):
    """Both documents have equal normal forms."""


class ChangeEvent(RelationEvent, frozen=True, kw_only=True):
    """A relation event that also describes what the newer document changed."""

    added: Count  # Estimated characters of the newer document that the older does not have.
    removed: Count  # Estimated characters of the older document that the newer does not have.
    # The longest parts of the newer document, `[start, end)` in characters of its normal form, in which no passage of
    # the older was found. New text is inside them. Empty if `added` is 0.
    new_spans: Places
    new_spans_omitted: Count  # How many more such parts there are.
    # Whether only signs such as currency or operators, or the spelling of words differ.
    symbols_differ: bool


class NearDuplicate(ChangeEvent, frozen=True, kw_only=True, tag="near_duplicate"):
    """Both have the same content in the same order, with small edits."""


class Containment(ChangeEvent, frozen=True, kw_only=True, tag="containment"):
    """One document is inside the other."""

    inner: Literal["newer", "older"]  # The document that is inside the other.
    place: Place  # Its span, `[start, end)` in characters of the outer normal form.


class Version(ChangeEvent, frozen=True, kw_only=True, tag="version"):
    """Both documents are states of one thing."""


class Rearranged(RelationEvent, frozen=True, kw_only=True, tag="rearranged"):
    """Both have the same content in another order."""


class Overlap(RelationEvent, frozen=True, kw_only=True, tag="overlap"):
    """Both documents share a passage, and neither is inside the other."""


class Retraction(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="retraction"):
    """The removal of a document, which voids events about its earlier states: see docs/events.md."""

    event_id: HexId  # 32 hex characters, always equal for a removal.
    collection: Name  # The tenant of the document.
    scheme: SchemeName  # Name of the scheme of its signature.
    document_id: Id  # The document's id.
    removed_at: Time  # Timestamp of the removal.
    reason: Word = "tombstone"  # Why it was removed.
    # The topic of the removal's record. Left out, as the next two are, if it came from no topic.
    topic: TopicName | UnsetType = UNSET
    partition: Partition | UnsetType = UNSET  # The partition of that record.
    offset: Offset | UnsetType = UNSET  # The offset of that record.

    def __post_init__(self) -> None:
        require_times(self.removed_at)


PairEvent = ExactDuplicate | NearDuplicate | Containment | Version | Rearranged | Overlap
Event = DocumentVerdict | PairEvent | Retraction


def kind_of(event: Event | RelationEvent | Alert | LabelChange) -> str:
    """Return the `type` of an event in JSON, such as `near_duplicate`."""
    return str(type(event).__struct_config__.tag)


def subject_of(event: Event | RelationEvent | Alert | LabelChange) -> str:
    """Return the id of the document that an event is about, which also makes its record key.

    It is that of a verdict, a retraction or a label, and the newer one of a pair. An alert has a subject of its own.
    """
    if isinstance(event, Alert):
        return event.subject
    if isinstance(event, Retraction | LabelChange):
        return event.document_id
    return event.id if isinstance(event, DocumentVerdict) else event.newer.id
