"""Crawl sites three times, and compare what decisions save with what was really unchanged.

    python -m benchmarks.crawl.decisions [--pages N] [--seed N] [--footer-words N]

All runs in one process, without servers, first with the main content of each page, then with all of its text. A page
is fetched at 0, 24 and 96 hours unless its decision says that it need not be. What decisions save is also looked at
after 36 and 120 hours. Prints one JSON object.
"""

import argparse
import asyncio
import json
import resource
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from benchmarks.crawl.web import FOOTER_WORDS, Page, Web, is_marked
from benchmarks.speed.measure import positive
from benchmarks.stream.prose import Prose, sources
from nearstream.schemas.documents.document import to_milliseconds
from nearstream.schemas.documents.record import ConsumerRecord
from nearstream.schemas.topics.codec import encode_json
from nearstream.schemas.verdicts.events import Overlap, PairEvent
from nearstream.streams.deciding.decider import Decider
from nearstream.streams.deciding.deciding import may_skip
from nearstream.streams.deciding.states import PageState
from nearstream.streams.ingest.defaults import name_of_page
from nearstream.streams.ingest.lineage import site_of
from nearstream.workers.config.settings import load
from nearstream.workers.files.source import Item
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.in_process import Embedded, Outcome, embedded
from tests.support.memory_decisions import MemoryDecisions

_FIRST = datetime(2026, 1, 1, tzinfo=UTC)
_SECOND, _THIRD = timedelta(hours=24), timedelta(hours=96)
_BETWEEN, _END = timedelta(hours=36), timedelta(hours=120)
_CONTENTS = ("main", "all")

Figures = dict[str, int | float]
Compared = dict[str, Figures]


@dataclass
class Crawl:
    """A crawler with its decisions."""

    web: Web  # what it fetches
    embedded: Embedded  # what its pages go through
    decisions: MemoryDecisions = field(default_factory=MemoryDecisions)  # the newest decision of each page
    originals: dict[str | None, str] = field(default_factory=dict)  # by lineage the page that had its article first
    # Pages read, events, false events, overlaps among these, bytes of events.
    counts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("pages", "events", "false", "overlaps", "bytes"), 0)
    )

    def saved(self, after: timedelta) -> list[Page]:
        """Return the pages that need not be fetched at a time."""
        at_ms = to_milliseconds(_FIRST + after)
        known = ((page, self.state(page)) for page in self.web.pages)
        return [page for page, state in known if state is not None and may_skip(state.decision, at_ms)]

    def found_changed(self, pages: Sequence[Page]) -> list[Page]:
        """Return the pages of which decisions say that they have changed at their last fetch."""
        states = ((page, self.state(page)) for page in pages)
        return [page for page, state in states if state and state.decision.action == "refresh"]

    def state(self, page: Page) -> PageState | None:
        """Return the state of a page."""
        return self.decisions.states.get(("default", name_of_page(page.url)))

    async def fetch(self, after: timedelta) -> set[str]:
        """Fetch the pages that need it, decide from their verdicts, and return their URLs."""
        saved = {page.url for page in self.saved(after)}
        pages = [page for page in self.web.pages if page.url not in saved]
        for number, page in enumerate(pages):
            lineage = name_of_page(page.url)
            self.originals[lineage] = page.original
            async for outcome in self._read(page, _FIRST + after + timedelta(milliseconds=number)):
                self._count(outcome)
                if outcome.verdict is not None:
                    await Decider(self.decisions, site_of).after_verdict(outcome.verdict, outcome.page)
        return {page.url for page in pages}

    def _read(self, page: Page, at: datetime) -> AsyncIterator[Outcome]:
        headers: list[tuple[str, bytes | None]] = [
            ("content-type", b"text/html; charset=utf-8"),
            ("nearstream-url", page.url.encode()),
        ]
        value = self.web.html(page).encode()
        record = ConsumerRecord("documents", 0, 0, to_milliseconds(at), None, value, headers)
        return self.embedded.outcomes([Item(page.url, record)])

    def _count(self, outcome: Outcome) -> None:
        if outcome.refusal or outcome.degraded:
            raise SystemExit(f"{outcome.source}: {outcome.refusal} {' '.join(outcome.degraded)}")
        pairs = [event for event in outcome.events if isinstance(event, PairEvent)]
        self.counts["pages"] += 1
        self.counts["events"] += len(pairs)
        false = [pair for pair in pairs if self.originals[pair.newer.lineage] != self.originals[pair.older.lineage]]
        self.counts["false"] += len(false)
        self.counts["overlaps"] += sum(isinstance(pair, Overlap) for pair in false)
        self.counts["bytes"] += sum(len(encode_json(event)) for event in pairs)


async def measure(content: str, count: int, seed: int, footer_words: int) -> dict[str, Figures | Compared]:
    """Return the figures of three crawls with one way to read pages."""
    web = Web(Prose(sources(None), seed), count, seed, footer_words)
    began, of_children = time.process_time(), _seconds_of_children()
    crawl = Crawl(web, embedded(Deployment.of(load({"NEARSTREAM_HTML_CONTENT": content}))))
    await crawl.fetch(timedelta())
    at_24 = _compared(web, crawl.saved(_SECOND), lambda page: page.original != page.url)
    web.change()
    await crawl.fetch(_SECOND)
    at_36 = _compared(web, crawl.saved(_BETWEEN), lambda page: not page.is_lively)
    web.change()
    surprised = web.surprise()
    fetched = await crawl.fetch(_THIRD)
    at_120 = _compared(web, crawl.saved(_END), lambda page: not page.is_lively and page not in surprised)
    seen = [page for page in surprised if page.url in fetched]
    surprise: Figures = {"pages": len(surprised), "fetched": len(seen), "found": len(crawl.found_changed(seen))}
    crawl.embedded.pages.close()
    seconds = time.process_time() - began + _seconds_of_children() - of_children
    pages = crawl.counts["pages"]
    a_page: Figures = {
        "events": round(crawl.counts["events"] / pages, 3),
        "false_events": round(crawl.counts["false"] / pages, 3),
        "false_overlaps": round(crawl.counts["overlaps"] / pages, 3),
        "event_bytes": round(crawl.counts["bytes"] / pages),
        "milliseconds": round(1000 * seconds / pages, 2),
    }
    return {"24h": at_24, "36h": at_36, "120h": at_120, "surprise": surprise, "a_page": a_page}


def _compared(web: Web, saved: Sequence[Page], needs_none: Callable[[Page], bool]) -> Compared:
    """Compare the saved fetches with the pages that need none, on sites that mark their frames, on others, on all."""
    kinds = {
        "marked": [page for page in web.pages if is_marked(page.site)],
        "unmarked": [page for page in web.pages if not is_marked(page.site)],
        "all": web.pages,
    }
    urls, truth = {page.url for page in saved}, {page.url for page in web.pages if needs_none(page)}
    return {kind: _fit({page.url for page in pages}, urls, truth) for kind, pages in kinds.items()}


def _fit(pages: set[str], saved: set[str], truth: set[str]) -> Figures:
    saved, truth = saved & pages, truth & pages
    right = len(saved & truth)
    return {
        "pages": len(pages),
        "need_no_fetch": len(truth),
        "saved": len(saved),
        "precision": round(right / max(len(saved), 1), 4),
        "recall": round(right / max(len(truth), 1), 4),
    }


def _seconds_of_children() -> float:
    """Return the processor seconds of the children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one JSON object."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pages", type=positive, default=1_000, metavar="N")
    parser.add_argument("--seed", type=int, default=7, metavar="N")
    parser.add_argument("--footer-words", type=positive, default=FOOTER_WORDS, metavar="N")
    options = parser.parse_args(arguments)
    figures = {
        content: asyncio.run(measure(content, options.pages, options.seed, options.footer_words))
        for content in _CONTENTS
    }
    print(json.dumps({**vars(options), **figures}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
