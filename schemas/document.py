"""What a producer sends: one observed text."""

from datetime import datetime
from typing import Annotated

import msgspec

# `$` alone also matches before a final newline, hence the look-ahead.
NAME_PATTERN = r"^[a-z0-9][a-z0-9-]{0,62}(?!\n)$"
LABEL_NAME_PATTERN = r"^[a-z0-9][a-z0-9-]{0,30}(?!\n)$"
ID_PATTERN = r"^[^\u0000-\u001f\u007f-\u009f]{1,512}(?!\n)$"
LINEAGE_PATTERN = r"^[^\u0000-\u001f\u007f-\u009f]+(?!\n)$"
DEFAULT_COLLECTION = "default"

Id = Annotated[str, msgspec.Meta(pattern=ID_PATTERN)]
Name = Annotated[str, msgspec.Meta(pattern=NAME_PATTERN)]
LabelName = Annotated[str, msgspec.Meta(pattern=LABEL_NAME_PATTERN)]
LabelValue = Annotated[str, msgspec.Meta(max_length=128)]
Labels = Annotated[dict[LabelName, LabelValue], msgspec.Meta(max_length=8)]
Lineage = Annotated[str, msgspec.Meta(pattern=LINEAGE_PATTERN)]
Time = Annotated[datetime, msgspec.Meta(tz=True)]
Url = Annotated[str, msgspec.Meta(max_length=4096)]


class Document(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One text as its producer observed it.

    Exactly one of `text`, `html` and `raw` holds the content. Whatever else is left out
    is completed from the record that carried the document (`streams.completion`).

    Attributes:
        id: 1-512 characters, none of them a control character; unique in its collection.
        text: The content as plain text.
        html: The content as HTML.
        raw: The content as bytes of `content_type` (base64 in JSON).
        content_type: Media type of `raw`, at most 128 characters.
        url: Where it was observed, at most 4,096 characters.
        lineage: What successive states of one thing share; default: the canonical form of `url`.
        collection: The tenant; documents of two collections never meet.
        observed_at: When it was observed, with time zone; default: the record's timestamp.
        source: The kind of producer, such as `crawler` or `mail`.
        labels: At most 8 names with values of at most 128 characters, carried into events.
    """

    id: Id | None = None
    text: str | None = None
    html: str | None = None
    raw: bytes | None = None
    content_type: Annotated[str, msgspec.Meta(max_length=128)] | None = None
    url: Url | None = None
    lineage: Lineage | None = None
    collection: Name = DEFAULT_COLLECTION
    observed_at: Time | None = None
    source: Name | None = None
    labels: Labels = {}


def document_key(collection: str, document_id: str) -> str:
    """Identity of a document across collections: `<collection>/<id>`; no collection holds a slash."""
    return f"{collection}/{document_id}"
