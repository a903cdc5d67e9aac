"""That a document got a label, or lost it."""

from typing import Annotated

import msgspec
from msgspec import Meta

from nearstream.schemas.documents.document import Id, Name, SchemeName, Time, require_times
from nearstream.schemas.documents.event_id import DocumentState, event_id
from nearstream.schemas.documents.evidence import HexId
from nearstream.schemas.labels.label import WEIGHT_MAX, LabelKind


class LabelChange(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="label_change"):
    """A label that a document of the index got or lost, with the family for which it counts.

    Attributes:
        event_id: 32 hex characters, always equal for a record of a label.
        collection: The tenant of the document.
        scheme: Name of the scheme of the index.
        document_id: The id of the document.
        kind: The label, null if it was taken back.
        weight: How much it counts, 0 if it was taken back.
        since: When it was given or taken back.
        family: Id of the family of the document.
        first_seen: When the first document of the family was observed.
    """

    event_id: HexId
    collection: Name
    scheme: SchemeName
    document_id: Id
    kind: LabelKind | None
    weight: Annotated[int, Meta(ge=0, le=WEIGHT_MAX)]
    since: Time
    family: HexId
    first_seen: Time

    def __post_init__(self) -> None:
        """Check the times."""
        require_times(self.since, self.first_seen)


def label_change_id(document_key: str, family: str, kind: LabelKind | None, since_ms: int, scheme: str) -> str:
    """Return the deterministic id of a change, 32 hex characters.

    Args:
        document_key: Of the document.
        family: Id of its family.
        kind: The label, None if it was taken back.
        since_ms: When it was given or taken back, in milliseconds since 1970.
        scheme: Name of the scheme of the index.
    """
    older, newer = DocumentState(document_key, family), DocumentState(version=kind or "", position=str(since_ms))
    return event_id("label_change", older, newer, scheme)
