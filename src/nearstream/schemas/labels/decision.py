"""The decision about one lineage: what a crawler should do with its pages."""

from typing import Literal

import msgspec

from nearstream.schemas.documents.document import Count, Id, Name, Share, Time, require_times
from nearstream.schemas.documents.evidence import DocumentRef, HexId

Action = Literal["skip", "keep", "refresh"]
Because = Literal["", "first", "copy", "unchanged", "changed", "error_page", "canonical_changed", "canonical_gone"]


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What a crawler should do with the pages of one lineage.

    A decision lives as long as the fact on which it rests: that `canonical` has this version. When that document
    changes, is removed or expires, there is another decision.
    """

    collection: Name  # The tenant.
    lineage: Id  # What the pages have in common, usually their canonical URL.
    # `skip` if the content is known from another document, `keep` if it has not changed, `refresh` if it has changed
    # since the fetch before.
    action: Action
    until: Time  # A crawler that skips or keeps need not fetch before. Not before `observed_at`.
    canonical: DocumentRef  # The document to read in place of a skipped one, else the document itself.
    # Of the event that decided: the verdict about the page or about its canonical page, or the retraction of that one.
    event_id: HexId
    observed_at: Time  # When the page was fetched that decided.
    unchanged_since: Time  # When the content was fetched first.
    interval_seconds: Count  # How long the content is expected to last from `observed_at` on.
    unchanged: Count  # Successive fetches that found no change.
    change_share: Share  # Share of the text that has changed since the fetch before, 0 to 1. 0 for a first fetch.
    # `first`: it was fetched for the first time. `copy`, `unchanged`, `changed`: what its text is. `error_page`: its
    # text has become that of other pages of its host, so it is to be fetched again at `until`. `canonical_changed`,
    # `canonical_gone`: what it repeated is no longer there. Empty: an earlier release decided.
    because: Because = ""
    # Of an error page: the family of the text, if three pages of the host have turned to it within an hour. Null: it is
    # only suspected.
    error_text: HexId | None = None

    def __post_init__(self) -> None:
        """Check the times."""
        require_times(self.until, self.observed_at, self.unchanged_since)
