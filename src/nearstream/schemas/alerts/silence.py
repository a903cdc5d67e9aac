"""That a person has seen an alert, or silenced its subject."""

import msgspec

from nearstream.schemas.alerts.alert import Alert, AlertName, OfCollections
from nearstream.schemas.documents.document import Time, Word, require_times


class Silence(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="silence"):
    """What a person says about the alerts of a subject.

    The newest one counts, and a null value takes it back.

    Attributes:
        collection: The tenant of the alert, `*` for all.
        name: Name of the alert.
        subject: What the alert is about.
        since: When the person said it.
        until: Until when alerts of the subject are silent. Null: the person has seen the alert that had begun by then,
            and only that one is silent, until it ends.
    """

    collection: OfCollections
    name: AlertName
    subject: Word
    since: Time
    until: Time | None

    def __post_init__(self) -> None:
        """Check the times."""
        require_times(self.since, self.until)

    def covers(self, alert: Alert, now_ms: int) -> bool:
        """Return whether an alert of its subject is silent.

        Args:
            alert: The alert.
            now_ms: The time, in milliseconds since 1970.
        """
        if self.until is None:
            return alert.since <= self.since
        return now_ms < self.until.timestamp() * 1000


def silence_key(collection: str, name: str, subject: str) -> bytes:
    """Return the record key of what is said about a subject, which is that of its alerts."""
    return f"{collection}/{name}/{subject}".encode()
