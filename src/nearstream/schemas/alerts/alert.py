"""What is wrong with a family of documents, and what persons say of that."""

from typing import Annotated, Literal, get_args

import msgspec
from msgspec import UNSET, Meta, UnsetType

from nearstream.schemas.documents.document import COUNT_MAX, Count, Id, SchemeName, Time, Word, require_times
from nearstream.schemas.documents.evidence import DocumentState, HexId, event_id

AlertName = Literal["duplicate_storm", "new_family_of_size", "new_family_on_sites", "dead_letters", "label_flood"]
ALERT_NAMES: tuple[str, ...] = get_args(AlertName)
ALL_COLLECTIONS = "*"
_COLLECTION_PATTERN = r"^(?:\*|[a-z0-9][a-z0-9-]{0,62})(?!\n)$"
OfCollections = Annotated[str, Meta(pattern=_COLLECTION_PATTERN)]
EVENTS_MAX = 1_000
ORIGINS_MAX, ORIGIN_CHARACTERS = 3, 300
Origins = Annotated[tuple[Annotated[str, Meta(max_length=ORIGIN_CHARACTERS)], ...], Meta(max_length=ORIGINS_MAX)]
Amount = Annotated[float, Meta(ge=0, le=COUNT_MAX)]


class Alert(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="alert"):
    """The beginning or the end of something that happens too often."""

    event_id: HexId  # 32 hex characters. The beginning and the end have different ones.
    collection: OfCollections  # The tenant, `*` for all.
    scheme: SchemeName  # Name of the scheme of the deployment.
    # `duplicate_storm`: a family gains members fast. `new_family_of_size`: a new family has become large.
    # `new_family_on_sites`: many sites carry a new family. `dead_letters`: many records are refused. `label_flood`: far
    # more matches the label of a family than before, so that it is suspended.
    name: AlertName
    # `firing` at the beginning, `resolved` at the end. Alerts of new families and a `label_flood` have no end.
    state: Literal["firing", "resolved"]
    # What it is about: the id of the family, or the reason of the dead letters, or who sent their contents.
    subject: Word
    # How many were counted within the window. Of a `label_flood`: copies, else their senders or recipients. Of a
    # `new_family_on_sites`: sites.
    value: Amount
    # The limit of the rule. Of a `label_flood`: this multiple of the copies within an hour before the label.
    limit: Amount
    window_seconds: Count  # The window of the rule.
    # When the count went above the limit, by the times of the documents. Of a new family, when its founder was
    # observed.
    since: Time
    until: Time | None  # When the count had fallen to half of the limit. Null at the beginning.
    # Ids of the verdicts or dead letters that brought the count above the limit.
    events: Annotated[tuple[HexId, ...], Meta(max_length=EVENTS_MAX)]
    size: Count | UnsetType = UNSET  # How many documents had joined the family by then. Left out for dead letters.
    # The id of the first document of the family, null if it was removed or has expired. Left out for refused records.
    founder: Id | UnsetType | None = UNSET
    # Where the documents come from that brought the count above the limit, such as `host a.example`, the most frequent
    # first. Left out where none is known.
    origins: Origins | UnsetType = UNSET

    def __post_init__(self) -> None:
        require_times(self.since, self.until)


def alert_id(collection: str, name: str, subject: str, state: str, since_ms: int, scheme: str) -> str:
    """Return the deterministic id of an alert, 32 hex characters, that began at `since_ms`."""
    older = DocumentState(f"{collection}/{name}", subject)
    return event_id("alert", older, DocumentState(version=state, position=str(since_ms)), scheme)


class Silence(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="silence"):
    """What a person says about the alerts of a subject.

    The newest one counts, and a null value takes it back.
    """

    collection: OfCollections  # The tenant of the alert, `*` for all.
    name: AlertName  # Name of the alert.
    subject: Word  # What the alert is about.
    since: Time  # When the person said it.
    # Until when alerts of the subject are silent. Null: the person has seen the alert that had begun by then, and only
    # that one is silent, until it ends.
    until: Time | None

    def __post_init__(self) -> None:
        require_times(self.since, self.until)

    def covers(self, alert: Alert, now_ms: int) -> bool:
        """Return whether an alert of its subject is silent at this time."""
        if self.until is None:
            return alert.since <= self.since
        return now_ms < self.until.timestamp() * 1000


def silence_key(collection: str, name: str, subject: str) -> bytes:
    """Return the record key of what is said about a subject, which is that of its alerts."""
    return f"{collection}/{name}/{subject}".encode()
