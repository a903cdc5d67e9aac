"""Crawl a site of 80 pages as decisions say, and compare with an oracle that knows when each page changes.

    python -m benchmarks.crawl.site [--seed N]

The site has articles with print versions, session ids and mirrors, pages of a list that declare the first one as
canonical, variants of a product, a calendar without end, and missing pages that are answered with 200. For ten minutes
it answers with one maintenance text. All runs in one process, without servers. The site is crawled four times, and then
hourly for a week. Between two crawls pages are fetched whose decision asks for it. The four crawls are made again with
each text of `WALLS` in place of the maintenance text. Prints one JSON object.
"""

import argparse
import asyncio
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from benchmarks.crawl.site_pages import WALLS, Site, SitePage, site_of_80_pages
from nearstream.schemas.documents.document import to_milliseconds
from nearstream.schemas.documents.record import ConsumerRecord
from nearstream.schemas.labels.decision import Decision
from nearstream.streams.deciding.decider import Decider
from nearstream.streams.deciding.deciding import may_skip
from nearstream.streams.deciding.states import LONGEST_SECONDS, SHORTEST_SECONDS, SKIP_SECONDS
from nearstream.streams.ingest.defaults import name_of_page
from nearstream.streams.ingest.lineage import site_of
from nearstream.workers.config.settings import load
from nearstream.workers.files.source import Item
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.in_process import Embedded, embedded
from tests.support.memory_decisions import MemoryDecisions

START = datetime(2026, 1, 1, tzinfo=UTC)
FOUR_CRAWLS = tuple(timedelta(hours=hours) for hours in (0, 24, 36, 46))
_HOURLY = tuple(timedelta(hours=hours) for hours in range(7 * 24))
_A_FETCH = timedelta(seconds=7)
_STEP = timedelta(minutes=5)  # between two looks for pages that are due
_SOON = timedelta(minutes=30)

Figures = dict[str, int | float]


@dataclass
class Crawl:
    """A crawler that does what decisions say."""

    site: Site  # what it fetches
    embedded: Embedded  # what its pages go through
    decisions: MemoryDecisions = field(default_factory=MemoryDecisions)  # the newest decision of each page
    fetches: dict[str, list[timedelta]] = field(default_factory=dict)  # by page the times at which it was fetched
    asked: int = 0  # how often a crawl came to a page
    saved: int = 0  # how often it was not fetched then
    late: list[str] = field(default_factory=list)  # changes that were seen later than the interval of the page allows

    def decision(self, page: SitePage) -> Decision | None:
        """Return the decision about a page."""
        state = self.decisions.states.get(("default", name_of_page(page.url)))
        return None if state is None else state.decision

    async def crawl(self, at: timedelta) -> None:
        """Come to every page once, in another order each time."""
        pages = list(self.site.pages)
        random.Random(f"order {at}").shuffle(pages)
        for number, page in enumerate(pages):
            now = at + number * _A_FETCH
            decision = self.decision(page)
            self.asked += 1
            if decision is not None and may_skip(decision, to_milliseconds(START + now)):
                self.saved += 1
                self._check_interval(page, decision, now)
            else:
                await self.fetch(page, now)

    async def fetch_due(self, now: timedelta) -> None:
        """Fetch the pages that were lost, or whose canonical page is gone."""
        for page in self.site.pages:
            decision = self.decision(page)
            if decision is None or decision.because not in ("error_page", "canonical_changed", "canonical_gone"):
                continue
            if decision.until <= START + now:
                await self.fetch(page, now)

    async def fetch(self, page: SitePage, now: timedelta) -> None:
        """Fetch a page, and decide."""
        self.fetches.setdefault(page.url, []).append(now)
        headers: list[tuple[str, bytes | None]] = [
            ("content-type", b"text/html"),
            ("nearstream-url", page.url.encode()),
        ]
        value = self.site.html(page, now).encode()
        record = ConsumerRecord("documents", 0, 0, to_milliseconds(START + now), None, value, headers)
        async for outcome in self.embedded.outcomes([Item(page.url, record)]):
            if outcome.verdict is None:
                raise SystemExit(f"{page.url}: {outcome.refusal or 'no verdict'}")
            await Decider(self.decisions, site_of).after_verdict(outcome.verdict, outcome.page)

    def _check_interval(self, page: SitePage, decision: Decision, now: timedelta) -> None:
        """Note a page that has changed and is passed over for longer than its interval."""
        last = self.fetches[page.url][-1]
        changed = [each for each in page.changes if last < each <= now]
        read = self.fetches.get(decision.canonical.url or "", [last])[-1]
        if changed and read < changed[0] and now - changed[0] > timedelta(seconds=decision.interval_seconds):
            self.late.append(page.url)


def _oracle(site: Site, crawls: Sequence[timedelta], *, is_clairvoyant: bool) -> int:
    """Return how many fetches an oracle saves that knows the content of each page at each time.

    A clairvoyant one fetches every page once, and a canonical page when it has changed. The other one learns at each
    fetch what the page is, and then trusts it as long as the rules allow: as long again as it has stayed, a copy for an
    hour at least and a week at most.
    """
    saved, last, until, since = 0, dict[str, str](), dict[str, timedelta](), dict[str, timedelta]()
    urls = [page.url for page in site.pages]
    for at in crawls:
        for page in site.pages:
            content, is_copy = site.content(page, at), site.canonical(page, dict.fromkeys(urls, at)) != page.url
            known = last.get(page.url)
            needs_none = is_copy or known == content if is_clairvoyant else at < until.get(page.url, at)
            if known is not None and needs_none:
                saved += 1
                continue
            since[page.url] = since[page.url] if known == content else at
            last[page.url] = content
            stayed = (at - since[page.url]).total_seconds()
            seconds = min(max(stayed, SHORTEST_SECONDS), SKIP_SECONDS) if is_copy else min(stayed, LONGEST_SECONDS)
            until[page.url] = at + timedelta(seconds=seconds)
    return saved


async def _crawled(site: Site, crawls: Sequence[timedelta]) -> Crawl:
    """Crawl at these times, and between them fetch the pages that are due."""
    crawl = Crawl(site, embedded(Deployment.of(load({}))))
    now = timedelta()
    for at in (*crawls, crawls[-1] + 2 * _SOON):
        while now < at:
            await crawl.fetch_due(now)
            now += _STEP
        if at in crawls:
            await crawl.crawl(at)
            now = at + len(site.pages) * _A_FETCH
    crawl.embedded.pages.close()
    return crawl


async def measure(site: Site, crawls: Sequence[timedelta], *, is_clairvoyant: bool) -> Figures:
    """Return the figures of these crawls."""
    crawl = await _crawled(site, crawls)
    times = crawl.fetches
    lost = [page for page in site.pages if any(site.is_out(page, at) for at in times[page.url])]
    soon = site.outage_end + _SOON
    back = [page for page in lost if any(site.outage_end <= at <= soon for at in times[page.url])]
    wrong = [page for page in site.pages if not _is_right(crawl, page)]
    oracle = _oracle(site, crawls, is_clairvoyant=is_clairvoyant)
    return {
        "asked": crawl.asked,
        "saved": crawl.saved,
        "saved_over_oracle": round(crawl.saved / oracle, 4),
        "fetched_between_crawls": sum(map(len, times.values())) - (crawl.asked - crawl.saved),
        "changes_late": len(crawl.late),
        "lost_to_outage": len(lost),
        "fetched_again_within_30_minutes": len(back),
        "canonical_right": round(1 - len(wrong) / len(site.pages), 4),
    }


def _is_right(crawl: Crawl, page: SitePage) -> bool:
    """Return whether a decision names the canonical page of what was seen of all pages at their last fetches."""
    decision = crawl.decision(page)
    seen = {url: times[-1] for url, times in crawl.fetches.items()}
    return decision is not None and decision.canonical.url == crawl.site.canonical(page, seen)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one JSON object."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=7, metavar="N")
    options = parser.parse_args(arguments)
    site = site_of_80_pages(options.seed)
    four = asyncio.run(measure(site, FOUR_CRAWLS, is_clairvoyant=False))
    hourly = asyncio.run(measure(site, _HOURLY, is_clairvoyant=True))
    walls = {}
    for wall in WALLS:
        figures = asyncio.run(measure(site_of_80_pages(options.seed, wall), FOUR_CRAWLS, is_clairvoyant=False))
        walls[wall] = {
            name: figures[name] for name in ("lost_to_outage", "fetched_again_within_30_minutes", "changes_late")
        }
    print(json.dumps({**vars(options), "four_crawls": four, "hourly": hourly, "walls": walls}, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
