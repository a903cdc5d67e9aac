"""A crawler asks the API before each page, and goes on without an answer."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Request, Response
from scrapy.utils.test import get_crawler

from nearstream.workers.config.settings import SettingsError
from nearstream.workers.scrapy import skipping
from nearstream.workers.scrapy.environment import CONDITIONAL
from nearstream.workers.scrapy.signals import page_skipped
from nearstream.workers.scrapy.skipping import NearstreamDownloaderMiddleware
from tests.devstack.server import free_ports
from tests.support.api import served
from tests.support.decisions import page_state, write
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
        await write(
            api, page_state(URL, "copy", 1), page_state(changed, "changed", -1), page_state(passed, "unchanged", -1)
        )
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
        for name in ("nearstream_fetch", "is_start_request"):  # what the spider wants
            assert not await is_ignored(middleware, Request(URL, meta={name: True}))
        assert not await is_ignored(middleware, Request(URL, method="POST"))
        await write(api, page_state(URL, "changed", -1))  # a decision that was made since the spider was opened
        assert not await is_ignored(middleware, Request(URL))


async def test_a_server_is_asked_only_for_a_page_that_has_changed_since_the_index_knows_it(redis_url: str) -> None:
    known = replace(page_state(URL, "changed", -1), etag='"v-1"', modified="Mon, 02 Mar 2026 08:15:00 GMT")
    async with (
        served(redis_url) as api,
        crawling(NEARSTREAM_API=api.address, CRAWL_IF_CHANGED="true") as (middleware, crawler),
    ):
        await write(api, known)
        asked, own = Request(URL), Request(URL, headers={"If-None-Match": "mine"})

        async def is_conditional() -> bool:
            await middleware.process_request(asked)
            return CONDITIONAL in asked.meta

        await until(is_conditional)
        sent = [asked.headers[name].decode() for name in ("If-None-Match", "If-Modified-Since")]
        assert sent == [known.etag, known.modified]
        await middleware.process_request(own)
        assert CONDITIONAL not in own.meta
        with pytest.raises(IgnoreRequest, match="not modified"):
            middleware.process_response(asked, Response(URL, status=304))
        assert crawler.stats is not None
        assert crawler.stats.get_value("nearstream/not_modified") == 1


async def test_a_crawler_asks_about_its_collection_with_its_token(redis_url: str) -> None:
    async with served(redis_url, api_token=f"{TOKEN} news") as api:
        await write(api, page_state(URL, "copy", 1, "news"))
        asked = {"NEARSTREAM_API": api.address, "NEARSTREAM_API_TOKEN": TOKEN}
        async with crawling(**asked, CRAWL_COLLECTION="news") as (middleware, _):
            await until_ignored(middleware, URL)
        async with crawling(**asked) as (middleware, _):
            assert not await is_ignored(middleware, Request(URL))
    wrong: dict[str, str | float]
    for wrong, expected in (
        ({"NEARSTREAM_API_TOKEN": f"{TOKEN}\n{TOKEN}2"}, "NEARSTREAM_API_TOKEN: expected the one token"),
        ({"CRAWL_ASK_SECONDS": 0}, "CRAWL_ASK_SECONDS: expected seconds above 0, got 0"),
    ):
        with pytest.raises(SettingsError, match=expected):
            async with crawling(**wrong):
                pass


async def test_without_an_api_every_page_is_fetched_and_the_log_says_so_once(
    redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    address = f"127.0.0.1:{free_ports(1)[0]}"
    async with crawling(NEARSTREAM_API=address) as (middleware, _):
        assert not any([await is_ignored(middleware, Request(URL)) for _ in range(3)])
        assert caplog.text.count("pages without one are fetched") == 1
        async with served(redis_url, api=address) as api:
            await write(api, page_state(URL, "copy", 1))
            await until_ignored(middleware, URL)


async def test_few_late_answers_stop_no_question_and_an_api_that_hangs_delays_few_pages(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skipping, "PAUSE_SECONDS", 600.0)
    asked = 0

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        await reader.read()
        writer.close()

    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    settings = {"NEARSTREAM_API": f"{host}:{port}", "CRAWL_ASK_SECONDS": 0.2}
    async with served(redis_url) as api, crawling(**settings) as (middleware, crawler):
        await write(api, page_state(URL, "copy", 1))
        client = middleware._client
        assert client is not None
        for _ in range(skipping.LATE_MOST - 1):
            assert not await is_ignored(middleware, Request(URL))
        hanging, client.url, client.seconds = client.url, f"http://{api.address}/v1/skip", 30
        await until_ignored(middleware, URL)
        client.url, client.seconds = hanging, 0.2
        asked = 0
        assert not any([await is_ignored(middleware, Request(URL)) for _ in range(500)])
        assert asked <= skipping.LATE_MOST + 1  # and no other page is held up during the pause
        assert crawler.stats is not None
        assert crawler.stats.get_value("nearstream/degraded") >= 500
    server.close()


async def test_a_burst_of_pages_waits_its_turn_instead_of_being_fetched(redis_url: str) -> None:
    async with served(redis_url) as api, crawling(NEARSTREAM_API=api.address) as (middleware, crawler):
        await write(api, page_state(URL, "copy", 1))
        await until_ignored(middleware, URL)
        assert all(await asyncio.gather(*(is_ignored(middleware, Request(URL)) for _ in range(200))))
        assert crawler.stats is not None
        assert crawler.stats.get_value("nearstream/degraded") is None
