"""The benchmark of decisions crawls sites that change, and counts what decisions save."""

import asyncio
import json

import pytest

from benchmarks.crawl.decisions import main
from benchmarks.crawl.site import FOUR_CRAWLS, measure
from benchmarks.crawl.site_pages import site_of_80_pages
from benchmarks.crawl.web import Web, is_marked
from benchmarks.stream.prose import Prose, sources


def test_sites_are_the_same_for_a_seed_and_change_where_they_should() -> None:
    web, again = (Web(Prose(sources(None), 7), 120, 7) for _ in range(2))
    assert [page.article for page in web.pages] == [page.article for page in again.pages]
    assert web.html(web.pages[0]) == again.html(again.pages[0])
    assert web.html(web.pages[0]) != web.html(web.pages[0])  # another date, other teasers
    before = [list(page.article) for page in web.pages]
    web.change()
    for page, article in zip(web.pages, before, strict=True):
        assert page.is_lively == (page.article != article)
    copies = [page for page in web.pages if page.original != page.url]
    assert copies
    assert not any(page.is_lively for page in copies)


def test_decisions_save_the_fetches_that_are_not_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--pages", "80"]) == 0
    found = json.loads(capsys.readouterr().out)
    marked = found["main"]["36h"]["marked"]
    assert marked["pages"] == sum(is_marked(number % 2) for number in range(80)) == 40
    for figures in (marked, found["main"]["120h"]["all"]):
        assert figures["precision"] >= 0.999
        assert figures["recall"] >= 0.95
    surprise = found["main"]["surprise"]
    assert surprise["found"] == surprise["fetched"] == surprise["pages"] > 0
    pages = {content: found[content]["a_page"] for content in ("main", "all")}
    assert pages["main"]["events"] < pages["all"]["events"]


def test_a_site_with_an_outage_is_crawled_as_decisions_say() -> None:
    figures = asyncio.run(measure(site_of_80_pages(7), FOUR_CRAWLS, is_clairvoyant=False))
    assert (figures["asked"], figures["changes_late"]) == (320, 0)
    assert figures["fetched_again_within_30_minutes"] == figures["lost_to_outage"] > 40
    assert figures["canonical_right"] >= 0.98
    assert figures["saved_over_oracle"] >= 0.9


def test_pages_behind_a_wall_are_fetched_again_soon() -> None:
    """Also where the text of the wall is another one for each request."""
    figures = asyncio.run(measure(site_of_80_pages(7, "captcha"), FOUR_CRAWLS, is_clairvoyant=False))
    assert figures["fetched_again_within_30_minutes"] == figures["lost_to_outage"] > 40
    assert figures["changes_late"] == 0
