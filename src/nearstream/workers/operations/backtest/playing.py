"""Fetch pages as decisions say that are made in this process."""

from dataclasses import dataclass

from nearstream.schemas.documents.document import DEFAULT_COLLECTION
from nearstream.schemas.documents.record import ConsumerRecord, Headers
from nearstream.schemas.verdicts.events import Retraction
from nearstream.streams.deciding.decider import Decider, Decisions
from nearstream.streams.deciding.deciding import may_skip
from nearstream.streams.ingest.defaults import name_of_page
from nearstream.streams.ingest.lineage import site_of
from nearstream.workers.files.source import Item
from nearstream.workers.operations.backtest.grading import GONE, Fetch
from nearstream.workers.pipeline.in_process import Embedded

_NOTHING_NEW = frozenset({"copy", "unchanged", "error_page"})


@dataclass(frozen=True)
class Deciding:
    """Fetches what decisions do not forbid."""

    embedded: Embedded  # what pages go through
    store: Decisions  # the states of pages

    async def is_due(self, url: str, at_ms: int) -> bool:
        """Return whether no decision about a page says that it need not be fetched."""
        state = await self.store.read_state(DEFAULT_COLLECTION, name_of_page(url))
        return state is None or not may_skip(state.decision, at_ms)

    async def take(self, fetch: Fetch) -> bool:
        """Decide about a page, or remove the document of one that is gone."""
        record, decider = fetch.record, Decider(self.store, site_of)
        if record is None and fetch.status in GONE:
            record = ConsumerRecord("documents", 0, 0, fetch.at_ms, name_of_page(fetch.url).encode(), None, [])
        if record is None:
            return False
        async for outcome in self.embedded.outcomes([Item(fetch.url, record)]):
            for event in outcome.events:
                if isinstance(event, Retraction):
                    await decider.after_removal(event)
            if outcome.verdict is not None:
                said = await decider.after_verdict(outcome.verdict, outcome.page)
                return said[0].decision is not None and said[0].decision.because in _NOTHING_NEW
        return False


def page_record(url: str, at_ms: int, page: bytes, lineage: str = "") -> ConsumerRecord:
    """Return the record of an HTML page.

    Args:
        url: What was asked for.
        at_ms: When.
        page: The HTML.
        lineage: The URL to which it redirects for good, if it does.
    """
    headers: Headers = [("content-type", b"text/html"), ("nearstream-url", url.encode("utf-8", "replace"))]
    if lineage:
        name = name_of_page(lineage).encode("utf-8", "replace")
        headers += [("nearstream-id", name), ("nearstream-lineage", name)]
    return ConsumerRecord("documents", 0, 0, at_ms, None, page, headers)
