"""A site is crawled twice: states of a page are linked in the order of their times, whatever arrives first.

Decisions and lineages are found under every URL of a page.
"""

import random
from pathlib import Path

from nearstream.schemas.labels.decision import Decision
from nearstream.schemas.topics.codec import decode_json
from nearstream.schemas.topics.table import DECISIONS
from nearstream.schemas.verdicts.events import PairEvent, Retraction, Version
from tests.support.crawled_site import CHANGED, article, html, words
from tests.support.deployment import LocalDeployment, deployed, until
from tests.support.warc import Crawl

SITE = "https://a.example"
PAGES = range(30, 80)
CHANGES = CHANGED.intersection(PAGES)
DATES = ("2026-03-02T08:15:00Z", "2026-03-09T08:15:00Z")
REMOVED = f"{SITE}/{min(PAGES)}"
COPY = "https://b.example/copy"
NEW, HERE = f"{SITE}/new", "https://b.example/here"
MOVED = [
    ("/older", "308 Permanent Redirect", f"{SITE}/old"),
    ("/old", "301 Moved Permanently", "/new"),
    ("/for-now", "302 Found", "/new"),
    ("/gone", "301 Moved Permanently", HERE),
]
NAMES = {NEW, HERE, *(f"{SITE}/{path}" for path in ("old", "older", "gone"))}


def crawled() -> bytes:
    """Return a WARC of two visits in any order. All pages have one large template, and some were moved for good."""
    fetches = [(number, visit) for number in PAGES for visit in (0, 1)]
    random.Random(1).shuffle(fetches)
    crawl = Crawl(packed=True)
    for path, status, location in MOVED:
        crawl.response(SITE + path, b"", status, [("Location", location)])
    for url, date in ((NEW, DATES[0]), (HERE, DATES[0]), (NEW, DATES[1])):
        crawl.response(url, html("Page", words(url, 200)), date=date)
    for number, visit in fetches:
        page = html(f"Article {number}", article(number, visit))
        crawl.response(f"{SITE}/{number}", page, date=DATES[visit])
    return crawl.content()


async def pairs(deployment: LocalDeployment) -> list[PairEvent]:
    return [event for event in await deployment.events() if not isinstance(event, Retraction)]


async def decisions(deployment: LocalDeployment) -> dict[str, Decision]:
    records = [each for each in await deployment.read(DECISIONS.name) if each.value is not None]
    return {(each.key or b"").decode().partition("/")[2]: decode_json(Decision, each.value or b"") for each in records}


async def test_a_shuffled_recrawl_links_in_time_order_and_knows_pages_under_the_urls_that_redirect_to_them(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    file = tmp_path / "crawl.warc.gz"
    file.write_bytes(crawled())
    async with deployed(kafka, redis_url, tmp_path) as deployment:

        async def all_are_decided() -> bool:
            found = await decisions(deployment)
            is_judged = len(await deployment.verdicts()) >= 2 * len(PAGES) + 3
            return is_judged and found.keys() >= NAMES and found[NEW].unchanged == 1

        async def is_retracted() -> bool:
            told = await deployment.events()
            return any(isinstance(each, Retraction) and each.document_id == REMOVED for each in told)

        async def the_copy_is_judged() -> bool:
            return any(each.id == COPY for each in await deployment.verdicts())

        with deployment.worker(), deployment.worker("decide"):
            sent = deployment.run("produce", str(file))
            assert (sent.returncode, b"3 redirect" in sent.stderr) == (0, True), sent.stderr
            await until(all_are_decided)
            found = await pairs(deployment)
            links = {(each.newer.id, each.newer.observed_at > each.older.observed_at, type(each)) for each in found}
            assert links == {(f"{SITE}/{number}", True, Version) for number in CHANGES}
            await _pages_are_known(deployment)

            assert deployment.run("remove", REMOVED).returncode == 0
            await until(is_retracted)
            later = Crawl()
            text = f"{article(min(PAGES), 1)} {words('copy', 9)}"
            later.response(COPY, html("A copy", text), date="2026-03-16T08:15:00Z")
            file = tmp_path / "later.warc"
            file.write_bytes(later.content())
            assert deployment.run("produce", str(file)).returncode == 0
            await until(the_copy_is_judged)
            assert len(await pairs(deployment)) == len(found)
        assert await deployment.letters() == []


async def _pages_are_known(deployment: LocalDeployment) -> None:
    decided = await decisions(deployment)
    assert f"{SITE}/for-now" not in decided
    for path in ("/old", "/older"):
        assert decided[SITE + path].canonical.id == NEW
    assert decided[f"{SITE}/gone"] == decided[HERE]
    verdicts = [each for each in await deployment.verdicts() if each.id in (NEW, HERE)]
    assert {(each.id, each.lineage) for each in verdicts} == {(NEW, NEW), (HERE, HERE)}
    assert {each.url for each in verdicts} == NAMES - {HERE}
