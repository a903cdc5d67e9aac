"""The decision about one lineage: what a crawler should do with its pages."""

from typing import Literal

import msgspec

from nearstream.schemas.document import Count, Id, Name, Share, Time, require_times
from nearstream.schemas.evidence import DocumentRef, HexId

Action = Literal["skip", "keep", "refresh"]


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What a crawler should do with the pages of one lineage.

    Attributes:
        collection: The tenant.
        lineage: What the pages have in common, usually their canonical URL.
        action: `skip` if the content is known from another document, `keep` if it has not changed, `refresh` if it
            has changed since the fetch before.
        until: A crawler that skips or keeps need not fetch before. Not before `observed_at`.
        canonical: The document to read in place of a skipped one, else the document itself.
        event_id: Of the verdict that decided.
        observed_at: When the page was fetched that decided.
        unchanged_since: When the content was fetched first.
        interval_seconds: How long the content is expected to last from `observed_at` on.
        unchanged: Successive fetches that found no change.
        change_share: Share of the text that has changed since the fetch before, 0 to 1.
    """

    collection: Name
    lineage: Id
    action: Action
    until: Time
    canonical: DocumentRef
    event_id: HexId
    observed_at: Time
    unchanged_since: Time
    interval_seconds: Count
    unchanged: Count
    change_share: Share

    def __post_init__(self) -> None:
        """Check the times."""
        require_times(self.until, self.observed_at, self.unchanged_since)
