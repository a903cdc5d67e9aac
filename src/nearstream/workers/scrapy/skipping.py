"""The downloader middleware, which does not fetch what decisions say to skip."""

import logging
import time
from asyncio import Semaphore
from contextlib import AsyncExitStack
from http import HTTPStatus
from typing import Self

import msgspec
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response

from nearstream.schemas.documents.document import without_user
from nearstream.workers.http.client import ApiClient, api_client
from nearstream.workers.scrapy.environment import (
    COLLECTION_SETTING,
    CONDITIONAL,
    FETCH,
    KNOWN_AS,
    count,
    seconds_to_ask,
    settings_of,
)
from nearstream.workers.scrapy.signals import page_skipped

AT_ONCE = 8  # questions under way, and others wait for their turn: all at once would all be late
IF_CHANGED_SETTING = "CRAWL_IF_CHANGED"
ALWAYS = (FETCH, "is_start_request")  # requests with one of these keys in their meta are always fetched
LATE_MOST = 5  # more late answers than others, after which one question is asked in each pause
PAUSE_SECONDS = 1.0

log = logging.getLogger(__name__)


class Answer(msgspec.Struct, frozen=True):
    """The fields of a `SkipAnswer` that a crawler needs. Every version of the API sends these fields."""

    skip: bool  # whether the page need not be fetched now
    lineage: str  # what names the page
    action: str | None = None  # None: there is no decision about the page
    because: str = ""  # why, such as `copy` or `unchanged`
    canonical: str | None = None  # URL of the page that has the content
    etag: str | None = None  # what the server sent with it
    last_modified: str | None = None


class NearstreamDownloaderMiddleware:
    """Ignores requests for pages that need not be fetched yet.

    It asks the HTTP API before each page, about a few pages at a time. A page is fetched if there is no answer within
    half a second, or `CRAWL_ASK_SECONDS`, and counts as degraded. The pages that a spider starts from are always
    fetched, because without their links it would find no other page.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._settings = settings_of(crawler)
        self._crawler = crawler
        self._stack = AsyncExitStack()
        self._client: ApiClient | None = None
        self._late, self._asks_at = 0, 0.0
        self._turns = Semaphore(AT_ONCE)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make the middleware of a crawler, which connects to the API while a spider is open."""
        middleware = cls(crawler)
        crawler.signals.connect(middleware.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(middleware.spider_closed, signal=signals.spider_closed)
        return middleware

    async def spider_opened(self) -> None:
        """Prepare a connection to the API, which need not run yet."""
        seconds = seconds_to_ask(self._settings, self._crawler)
        asking = api_client(self._settings, "/v1/skip", "pages without one are fetched", seconds=seconds)
        self._client = await self._stack.enter_async_context(asking)

    async def spider_closed(self) -> None:
        """Disconnect from the API."""
        await self._stack.aclose()

    async def process_request(self, request: Request) -> None:
        """Ignore a request for a page that need not be fetched yet."""
        for name in request.meta.pop(CONDITIONAL, ()):  # of the page that redirects to this one
            request.headers.pop(name, None)
        request.meta.pop(KNOWN_AS, None)
        if request.method != "GET" or any(map(request.meta.get, ALWAYS)):
            return
        answer = await self._answer(request.url)
        if answer is None:
            return
        request.meta[KNOWN_AS] = answer.lineage if answer.action else ""
        if not answer.skip:
            if self._crawler.settings.getbool(IF_CHANGED_SETTING):
                _ask_for_a_change(request, answer)
            return
        because = answer.because or "unknown"
        count(self._crawler, "skipped")
        count(self._crawler, f"skipped/{because}")
        url = without_user(request.url)
        log.debug("skipped %s: %s, canonical page %s", url, because, answer.canonical)
        details = {"request": request, "because": because, "canonical": answer.canonical}
        self._crawler.signals.send_catch_log(page_skipped, **details, spider=self._crawler.spider)
        raise IgnoreRequest(f"nearstream: need not be fetched yet, {because}: {url}")

    def process_response(self, request: Request, response: Response) -> Response:
        """Pass a response on, unless it says that the page has not changed."""
        if response.status != HTTPStatus.NOT_MODIFIED or CONDITIONAL not in request.meta:
            return response
        count(self._crawler, "not_modified")
        raise IgnoreRequest(f"nearstream: not modified: {without_user(request.url)}")

    async def _answer(self, url: str) -> Answer | None:
        if self._client is None:
            return None
        collection = self._crawler.settings.get(COLLECTION_SETTING, "default")
        async with self._turns:
            if self._late >= LATE_MOST:
                now = time.monotonic()
                if now < self._asks_at:
                    count(self._crawler, "degraded")
                    return None
                self._asks_at = now + PAUSE_SECONDS  # others do not wait for the answer to this question
            count(self._crawler, "asked")
            answer = await self._client.ask(Answer, query={"url": url, "collection": collection})
            is_late = self._client.failing
            self._late = min(self._late + 1, LATE_MOST) if is_late else max(self._late - 1, 0)
            if is_late:
                count(self._crawler, "degraded")
        return answer


def _ask_for_a_change(request: Request, answer: Answer) -> None:
    """Ask a server only for a changed page, unless the spider already does."""
    given = {"If-None-Match": answer.etag, "If-Modified-Since": answer.last_modified}
    if not any(given.values()) or any(name in request.headers for name in given):
        return
    request.headers.update({name: value for name, value in given.items() if value})
    request.meta[CONDITIONAL] = list(given)
