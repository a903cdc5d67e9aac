"""The downloader middleware asks the API before each page, and lets every page be fetched without an answer."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Request
from scrapy.utils.test import get_crawler

from nearstream.workers.config.settings import SettingsError
from nearstream.workers.scrapy import skipping
from nearstream.workers.scrapy.signals import page_skipped
from nearstream.workers.scrapy.skipping import AT_ONCE, NearstreamDownloaderMiddleware
from tests.devstack.server import free_ports
from tests.support.api import served
from tests.support.decisions import decision, write
from tests.support.deployment import until

URL = "https://a.example/flood"
TOKEN = "a-token-of-twenty-characters"  # noqa: S105 - of the test


@asynccontextmanager
async def crawling(**settings: str | float) -> AsyncIterator[tuple[NearstreamDownloaderMiddleware, Crawler]]:
    crawler = get_crawler(settings_dict={"TELNETCONSOLE_ENABLED": False, "CRAWL_ASK_SECONDS": 30, **settings})
    middleware = NearstreamDownloaderMiddleware.from_crawler(crawler)
    await middleware.spider_opened()
    try:
        yield middleware, crawler
    finally:
        await middleware.spider_closed()


async def is_ignored(middleware: NearstreamDownloaderMiddleware, request: Request) -> bool:
    try:
        await middleware.process_request(request)
    except IgnoreRequest:
        return True
    return False


async def until_ignored(middleware: NearstreamDownloaderMiddleware, url: str) -> None:
    """Wait for an answer of Redis that is in time, which a busy machine misses now and then."""

    async def is_so() -> bool:
        return await is_ignored(middleware, Request(url))

    await until(is_so)


async def test_a_page_that_need_not_be_fetched_is_ignored_under_all_of_its_urls(
    redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "nearstream.workers.scrapy.skipping")
    heard: list[tuple[Request, str, str]] = []

    def hear(request: Request, because: str, canonical: str) -> None:
        heard.append((request, because, canonical))

    async with served(redis_url) as api, crawling(NEARSTREAM_API=api.address) as (middleware, crawler):
        crawler.signals.connect(hear, page_skipped)
        assert not await is_ignored(middleware, Request(URL))
        changed, passed = f"{URL}/changed", f"{URL}/passed"
        await write(api, decision(URL, "skip", 1), decision(changed, "refresh", 1), decision(passed, "keep", -1))
        for url in (URL, URL + "?utm_source=a", "https://A.example:443/flood#part"):
            await until_ignored(middleware, url)
        assert crawler.stats is not None
        assert crawler.stats.get_value("nearstream/skipped") == 3
        assert crawler.stats.get_value("nearstream/skipped/copy") == 3
        assert crawler.stats.get_value("nearstream/asked") >= 4
        assert [skipped[1:] for skipped in heard] == [("copy", "https://b.example/")] * 3
        assert caplog.text.count("copy, canonical page https://b.example/") == 3
        for url in (changed, passed, f"{URL}?id=7", "https://a.example/" + "x" * 5_000):
            assert not await is_ignored(middleware, Request(url))
        await write(api, decision(URL, "refresh", 1))  # a decision that was made since the spider was opened
        assert not await is_ignored(middleware, Request(URL))


async def test_what_the_spider_wants_and_what_is_sent_is_always_fetched(redis_url: str) -> None:
    async with served(redis_url) as api, crawling(NEARSTREAM_API=api.address) as (middleware, _):
        await write(api, decision(URL, "skip", 1))
        await until_ignored(middleware, URL)
        for name in ("nearstream_fetch", "is_start_request"):
            assert not await is_ignored(middleware, Request(URL, meta={name: True}))
        assert not await is_ignored(middleware, Request(URL, method="POST"))


async def test_a_crawler_asks_about_its_collection_with_its_token(redis_url: str) -> None:
    async with served(redis_url, api_token=f"{TOKEN} news") as api:
        await write(api, decision(URL, "skip", 1, "news"))
        asked = {"NEARSTREAM_API": api.address, "NEARSTREAM_API_TOKEN": TOKEN}
        async with crawling(**asked, CRAWL_COLLECTION="news") as (middleware, _):
            await until_ignored(middleware, URL)
        async with crawling(**asked) as (middleware, _):
            assert not await is_ignored(middleware, Request(URL))
    with pytest.raises(SettingsError, match="NEARSTREAM_API_TOKEN: expected the one token"):
        async with crawling(NEARSTREAM_API_TOKEN=f"{TOKEN}\n{TOKEN}2"):
            pass


async def test_without_an_api_every_page_is_fetched_and_the_log_says_so_once(
    redis_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    address = f"127.0.0.1:{free_ports(1)[0]}"
    async with crawling(NEARSTREAM_API=address) as (middleware, _):
        assert not any([await is_ignored(middleware, Request(URL)) for _ in range(3)])
        assert caplog.text.count("every page is fetched") == 1
        async with served(redis_url, api=address) as api:
            await write(api, decision(URL, "skip", 1))
            assert not await is_ignored(middleware, Request(URL))  # the API is not asked again at once
            monkeypatch.setattr(skipping, "PAUSE_SECONDS", 0.0)
            middleware._asks_at = 0.0
            await until_ignored(middleware, URL)


async def test_an_api_that_hangs_delays_few_pages() -> None:
    asked = 0

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        await reader.read()
        writer.close()

    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    address = f"{host}:{port}"
    async with crawling(NEARSTREAM_API=address, CRAWL_ASK_SECONDS=0.2) as (middleware, crawler):
        assert not any([await is_ignored(middleware, Request(URL)) for _ in range(500)])
        assert asked == 1  # and no other page is held up for the next ten seconds
        assert crawler.stats is not None
        assert crawler.stats.get_value("nearstream/degraded") == 500
    server.close()


async def test_a_burst_of_pages_waits_its_turn_instead_of_being_fetched(redis_url: str) -> None:
    async with served(redis_url) as api:
        under_way = most = 0

        async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            """Pass a connection on to the API, and count how many are open."""
            nonlocal under_way, most
            under_way, most = under_way + 1, max(most, under_way + 1)
            host, port = api.address.rsplit(":", 1)
            ours, theirs = await asyncio.open_connection(host, int(port))
            await asyncio.gather(_copy(reader, theirs), _copy(ours, writer))
            under_way -= 1

        server = await asyncio.start_server(count, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        await write(api, decision(URL, "skip", 1))
        async with crawling(NEARSTREAM_API=f"{host}:{port}") as (middleware, crawler):
            await until_ignored(middleware, URL)
            burst = [is_ignored(middleware, Request(URL)) for _ in range(200)]
            assert all(await asyncio.gather(*burst))
            assert most <= AT_ONCE
            assert crawler.stats is not None
            assert crawler.stats.get_value("nearstream/degraded") is None
        server.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
    writer.close()


async def test_no_time_to_ask_is_refused() -> None:
    with pytest.raises(SettingsError, match="CRAWL_ASK_SECONDS: expected seconds above 0, got 0"):
        async with crawling(CRAWL_ASK_SECONDS=0):
            pass
