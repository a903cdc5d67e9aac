"""A label of a document, such as that it is spam, and that a document got or lost one."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from nearstream.schemas.documents.document import Id, Name, SchemeName, Time, require_times
from nearstream.schemas.documents.evidence import DocumentState, HexId, event_id

LabelKind = Literal["spam", "ham"]
LabelState = Literal["", "suspended", "confirmed"]

WEIGHT_MAX = 100
# No document key begins like this, because the name of a collection has no colon.
LABEL_PREFIX = "label:"

Kind = Annotated[LabelKind, Meta(description="`ham` is the opposite of spam.")]
Weight = Annotated[int, Meta(ge=1, le=WEIGHT_MAX, description="How much the label counts, 1 to 100.")]


class Label(msgspec.Struct, frozen=True, kw_only=True):
    """A label as it travels on `signatures`, in a record with the key `label_key` of its document.

    The newest one of a document counts. A null value takes it back.
    """

    label: Kind
    weight: Weight = 1


def label_key(document_key: str) -> str:
    """Return the record key of the label of a document."""
    return LABEL_PREFIX + document_key


def is_label_key(record_key: bytes | None) -> bool:
    """Return whether a record with this key is about a label."""
    return (record_key or b"").startswith(LABEL_PREFIX.encode())


def labelled_document(record_key: str) -> str | None:
    """Return the key of the labelled document, or None if the record key is not that of a label."""
    return record_key.removeprefix(LABEL_PREFIX) if record_key.startswith(LABEL_PREFIX) else None


class LabelChange(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="label_change"):
    """A label that a document of the index got or lost, with the family for which it counts."""

    event_id: HexId  # 32 hex characters, always equal for a record of a label.
    collection: Name  # The tenant of the document.
    scheme: SchemeName  # Name of the scheme of the index.
    document_id: Id  # The id of the document.
    kind: LabelKind | None  # The label, null if it was taken back.
    weight: Annotated[int, Meta(ge=0, le=WEIGHT_MAX)]  # How much it counts, 0 if it was taken back.
    since: Time  # When it was given or taken back.
    family: HexId  # Id of the family of the document.
    first_seen: Time  # When the first document of the family was observed.

    def __post_init__(self) -> None:
        require_times(self.since, self.first_seen)


def label_change_id(document_key: str, family: str, kind: LabelKind | None, since_ms: int, scheme: str) -> str:
    """Return the deterministic id of a change, 32 hex characters. Its kind is None if the label was taken back."""
    older, newer = DocumentState(document_key, family), DocumentState(version=kind or "", position=str(since_ms))
    return event_id("label_change", older, newer, scheme)
