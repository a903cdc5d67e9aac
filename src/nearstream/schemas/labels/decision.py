"""The decision about one lineage: what a crawler should do with its pages."""

from typing import Literal

import msgspec

from nearstream.schemas.documents.document import Count, Id, Name, Share, Time, require_times
from nearstream.schemas.documents.evidence import DocumentRef, HexId

Action = Literal["skip", "keep", "refresh"]
Because = Literal["", "first", "copy", "unchanged", "changed", "error_page"]


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What a crawler should do with the pages of one lineage.

    It is made from a fetch of a page alone. What happens to `canonical` afterwards changes it at the next fetch.
    """

    collection: Name  # The tenant.
    lineage: Id  # What the pages have in common, usually their canonical URL.
    # `skip` if another document has all words that are seen, `keep` if nothing has changed, `refresh` if something has
    # changed since the fetch before.
    action: Action
    until: Time  # A crawler need not fetch the page before. Not before `observed_at`.
    canonical: DocumentRef  # The document to read in place of a skipped one, else the document itself.
    event_id: HexId  # Of the verdict that decided: about the page, or about one that is better or shows an error too.
    observed_at: Time  # When the page was fetched that decided.
    unchanged_since: Time  # When the content was fetched first.
    interval_seconds: Count  # How long the content is expected to last from `observed_at` on.
    unchanged: Count  # Successive fetches that found no change.
    change_share: Share  # Share of the text that has changed since the fetch before, 0 to 1. 0 for a first fetch.
    # `first`: nothing is known of an earlier fetch. `copy`, `unchanged`, `changed`: what it shows. `error_page`: it has
    # turned to a text to which other pages of its host turned. Empty: an earlier release decided.
    because: Because = ""
    error_text: HexId | None = None  # Of an error page: the family of the text.

    def __post_init__(self) -> None:
        require_times(self.until, self.observed_at, self.unchanged_since)
