"""A site is crawled twice: states of a page are linked in the order of their times, whatever arrives first."""

import random
from pathlib import Path

import pytest

from nearstream.schemas.verdicts.events import PairEvent, Retraction, Version
from tests.support.crawled_site import CHANGED, article, html, words
from tests.support.deployment import LocalDeployment, deployed, until
from tests.support.warc import Crawl

SITE = "https://a.example"
PAGES = range(30, 120)
CHANGES = CHANGED.intersection(PAGES)
DATES = ("2026-03-02T08:15:00Z", "2026-03-09T08:15:00Z")
REMOVED = f"{SITE}/{min(PAGES)}"


def crawled(seed: int) -> bytes:
    """Return a WARC of two visits in any order. All pages have one large template."""
    fetches = [(number, visit) for number in PAGES for visit in (0, 1)]
    random.Random(seed).shuffle(fetches)
    crawl = Crawl(packed=True)
    for number, visit in fetches:
        page = html(f"Article {number}", article(number, visit))
        crawl.response(f"{SITE}/{number}", page, date=DATES[visit])
    return crawl.content()


async def pairs(deployment: LocalDeployment) -> list[PairEvent]:
    return [event for event in await deployment.events() if not isinstance(event, Retraction)]


@pytest.mark.parametrize("seed", [1, 2])
async def test_a_shuffled_recrawl_links_in_time_order(kafka: str, redis_url: str, tmp_path: Path, seed: int) -> None:
    file = tmp_path / "crawl.warc.gz"
    file.write_bytes(crawled(seed))
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        with deployment.worker():
            sent = deployment.run("produce", str(file))
            assert sent.returncode == 0, sent.stderr

            async def all_are_judged() -> bool:
                return len(await deployment.verdicts()) >= 2 * len(PAGES)

            await until(all_are_judged)
            found = await pairs(deployment)
            links = {(each.newer.id, each.newer.observed_at > each.older.observed_at, type(each)) for each in found}
            assert links == {(f"{SITE}/{number}", True, Version) for number in CHANGES}

            assert deployment.run("remove", REMOVED).returncode == 0

            async def is_retracted() -> bool:
                told = await deployment.events()
                return any(isinstance(each, Retraction) and each.document_id == REMOVED for each in told)

            await until(is_retracted)
            copy = html("A copy", f"{article(min(PAGES), 1)} {words('copy', 9)}")
            later = Crawl()
            later.response("https://b.example/copy", copy, date="2026-03-16T08:15:00Z")
            file.write_bytes(later.content())
            file = file.rename(tmp_path / "later.warc")
            assert deployment.run("produce", str(file)).returncode == 0

            async def the_copy_is_judged() -> bool:
                return any(each.id == "https://b.example/copy" for each in await deployment.verdicts())

            await until(the_copy_is_judged)
            assert len(await pairs(deployment)) == len(found)
        assert await deployment.letters() == []
