"""A spider as a user would write it: `python spider.py START [DAYS]`. Its settings are those of docs/crawler.md.

With days, its pages say that they were fetched so many days ago.
"""

import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from scrapy.crawler import CrawlerProcess
from scrapy.http import Response
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

from nearstream.workers.scrapy.pipeline import PageItem, is_page, page_item

SETTINGS = {
    "ADDONS": {"nearstream.workers.scrapy.addon.NearstreamAddon": 0},
    "DEPTH_LIMIT": 18,
    "CRAWL_ASK_SECONDS": 60,  # longer than a busy machine may keep the API
    "CRAWL_IF_CHANGED": True,
    "TELNETCONSOLE_ENABLED": False,
}


class Spider(CrawlSpider):
    name = "site"
    rules = (Rule(LinkExtractor(), callback="parse_page", follow=True),)

    def parse_start_url(self, response: Response, **_: object) -> Iterator[PageItem]:
        yield self._item(response)

    def parse_page(self, response: Response) -> Iterator[PageItem]:
        if is_page(response):
            yield self._item(response)

    def _item(self, response: Response) -> PageItem:
        item = page_item(response)
        ago = timedelta(days=int(sys.argv[2]) if len(sys.argv) > 2 else 0)
        return replace(item, observed_at=(datetime.fromisoformat(item.observed_at) - ago).isoformat())


if __name__ == "__main__":
    process = CrawlerProcess(SETTINGS)
    process.crawl(Spider, start_urls=[sys.argv[1]])
    process.start()
