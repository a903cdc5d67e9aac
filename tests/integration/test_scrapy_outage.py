"""Kafka is killed in the middle of a crawl: no page is lost, and few lines of the log say what happened."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nearstream.schemas.documents.record import header
from nearstream.schemas.topics.table import DOCUMENTS
from tests.devstack.server import LocalServer, free_ports
from tests.support.crawled_site import served
from tests.support.deployment import LocalDeployment, deployed, until

pytestmark = pytest.mark.foreign

PAGES, BEFORE = 40, 10
SPIDER = """
import sys
import scrapy
from scrapy.crawler import CrawlerProcess
from nearstream.workers.kafka import records
from nearstream.workers.scrapy.pipeline import is_page, page_item

records.SEND_SECONDS, records.SILENCE_SECONDS = float(sys.argv[2]), 0.5

class Spider(scrapy.Spider):
    name = "site"
    start_urls = [sys.argv[1]]

    def parse(self, response):
        if is_page(response):
            yield page_item(response)
        if response.url == sys.argv[1]:
            yield from response.follow_all(response.css("a")[:int(sys.argv[3])])

process = CrawlerProcess({
    "ADDONS": {"nearstream.workers.scrapy.addon.NearstreamAddon": 0},
    "TELNETCONSOLE_ENABLED": False,
    "DOWNLOAD_DELAY": 0.05,
})
process.crawl(Spider)
process.start()
"""


@contextmanager
def crawling(start: str, seconds: float, deployment: LocalDeployment) -> Iterator[subprocess.Popen[bytes]]:
    """Run the spider, which gives a page up after so many seconds. Its log and its file are with the other logs."""
    command = [sys.executable, "-c", SPIDER, start, str(seconds), str(PAGES)]
    with (deployment.logs / "spider.log").open("wb") as log:
        spider = subprocess.Popen(command, env=deployment.environment, cwd=deployment.logs, stderr=log)
    try:
        yield spider
    finally:
        spider.kill()
        spider.wait()


@pytest.mark.parametrize("comes_back", [True, False])
async def test_no_page_is_lost_if_kafka_is_killed_in_a_crawl(
    broker: LocalServer, redis_url: str, tmp_path: Path, *, comes_back: bool
) -> None:
    address = f"127.0.0.1:{free_ports(1)[0]}"
    async with deployed(broker.address, redis_url, tmp_path, api=address) as deployment:
        try:
            with served() as site, crawling(f"{site.address}/", 120 if comes_back else 2, deployment) as spider:

                async def has_begun() -> bool:
                    return len(site.requests) >= BEFORE or spider.poll() is not None

                async def has_ended() -> bool:
                    return spider.poll() is not None

                await until(has_begun, 60)
                await asyncio.to_thread(broker.kill)
                if comes_back:
                    await asyncio.to_thread(broker.start)
                await until(has_ended, 120)
                assert spider.returncode == 0
        finally:
            await asyncio.to_thread(broker.start)
        sent = {
            (header(each.headers, "nearstream-url") or b"").decode() for each in await deployment.read(DOCUMENTS.name)
        }
    file, told = tmp_path / "nearstream-unsent.jsonl", (tmp_path / "spider.log").read_text()
    unsent = {json.loads(line)["url"] for line in file.read_text().splitlines()} if file.exists() else set[str]()
    assert bool(unsent) is not comes_back
    assert {site.address + path for path in site.requests} == sent | unsent
    assert len(site.requests) == PAGES + 1
    assert "Traceback" not in told
    assert " ERROR: " not in told
    assert told.count("aiokafka") == 0
    assert told.count("has not confirmed") <= 3  # once when they are late, and when some are given up
