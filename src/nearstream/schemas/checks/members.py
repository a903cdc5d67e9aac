"""What the HTTP API answers about the members of a family."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from nearstream.schemas.documents.document import AddressHash, Count
from nearstream.schemas.documents.evidence import HexId
from nearstream.schemas.labels.label import LabelKind

MEMBERS_MAX = 1_000  # in one answer


class FamilyMember(msgspec.Struct, frozen=True, kw_only=True):
    """A document of a family, in its current state."""

    id: Annotated[str, Meta(description="Its id.")]
    version: Annotated[str, Meta(description="The first 8 bytes of its digest, in hex.")]
    observed_at: Annotated[datetime, Meta(description="When it was observed.")]


class FamilyLabel(msgspec.Struct, frozen=True, kw_only=True):
    """A label that a document of a family has."""

    id: Annotated[str, Meta(description="Id of the document.")]
    label: Annotated[LabelKind, Meta(description="What it is labelled as.")]
    weight: Annotated[int, Meta(ge=1, le=100, description="How much it counts.")]
    since: Annotated[datetime, Meta(description="When it was given.")]


class FamilyMembers(msgspec.Struct, frozen=True, kw_only=True):
    """Some members of the family of a document. Every field is always there."""

    family: Annotated[HexId, Meta(description="Id of the family.")]
    size: Annotated[Count, Meta(description="Live documents of the family.")]
    first_seen: Annotated[datetime, Meta(description="When the first document of the family was observed.")]
    members: Annotated[
        tuple[FamilyMember, ...],
        Meta(description="Its stored documents, in the order of joining. There may be none in an answer with `next`."),
    ]
    next: Annotated[
        int | None, Meta(description="Ask again with `after` set to this for further members. Null: there are none.")
    ]
    labels: Annotated[
        tuple[FamilyLabel, ...], Meta(description="The labels of its documents, at most 64, the first one given first.")
    ]
    label_state: Annotated[
        Literal["", "suspended", "confirmed"],
        Meta(description="Whether they count. `suspended`: not, because too much matches. `confirmed`: all the same."),
    ]
    senders: Annotated[
        tuple[AddressHash, ...],
        Meta(description="Keyed hashes of the addresses that sent the mails that joined within the last hour."),
    ]
    recipients: Annotated[
        tuple[AddressHash, ...], Meta(description="Keyed hashes of the addresses that received these mails.")
    ]
