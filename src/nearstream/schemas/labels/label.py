"""A label of a document, such as that it is spam."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

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
