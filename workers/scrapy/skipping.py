"""The downloader middleware, which does not fetch what decisions say to skip."""

import logging
import time
from typing import Self

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest

from nearstream.schemas.codec import InvalidMessageError, decode_decision
from nearstream.schemas.record import ConsumerRecord
from nearstream.schemas.topics import DECISIONS
from nearstream.streams.deciding import may_skip
from nearstream.streams.ingest.defaults import name_of_page
from nearstream.workers.kafka.client import consumer
from nearstream.workers.kafka.errors import KafkaUnreachableError
from nearstream.workers.kafka.offsets import partitions
from nearstream.workers.kafka.records import follow
from nearstream.workers.scrapy.environment import WAIT_SECONDS, settings_of

COLLECTION_SETTING = "CRAWL_COLLECTION"
LINEAGES_MAX = 1_000_000  # about 200 bytes each
SKIPPED = "nearstream/skipped"
ALWAYS = "nearstream_fetch"  # a request with this key in its meta is always fetched

log = logging.getLogger(__name__)


class NearstreamDownloaderMiddleware:
    """Ignores requests for pages that need not be fetched yet.

    It reads the topic `decisions` when the spider is opened. If Kafka does not answer, every page is fetched.
    """

    def __init__(self, crawler: Crawler) -> None:
        """Prepare reading.

        Raises:
            SettingsError: A setting of nearstream is invalid.
        """
        self._settings = settings_of(crawler)
        self._crawler = crawler
        self._until_ms: dict[bytes, float] = {}

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make the middleware of a crawler, which reads decisions when the spider is opened."""
        middleware = cls(crawler)
        crawler.signals.connect(middleware.spider_opened, signal=signals.spider_opened)
        return middleware

    async def spider_opened(self) -> None:
        """Read the newest decision of each lineage."""
        topic = self._settings.topic_prefix + DECISIONS.name
        try:
            async with consumer(self._settings, WAIT_SECONDS) as client:
                found = await partitions(self._settings, [topic], WAIT_SECONDS)
                async for record in follow(client, found, since_ms=0, until_end=True):
                    self._learn(record)
        except KafkaUnreachableError as error:
            log.warning("decisions cannot be read, so every page is fetched: %s", error)
        log.info("%d pages need not be fetched yet", len(self._until_ms))

    def process_request(self, request: Request) -> None:
        """Ignore a request for a page that need not be fetched yet.

        Raises:
            IgnoreRequest: The page need not be fetched.
        """
        until_ms = self._until_ms.get(self._key(request.url))
        if until_ms is None or time.time() * 1000 >= until_ms or request.meta.get(ALWAYS):
            return
        if self._crawler.stats is not None:
            self._crawler.stats.inc_value(SKIPPED)
        raise IgnoreRequest(f"nearstream: need not be fetched yet: {request.url}")

    def _learn(self, record: ConsumerRecord) -> None:
        key = record.key or b""
        self._until_ms.pop(key, None)
        if record.value is None or len(self._until_ms) >= LINEAGES_MAX:
            return
        try:
            decision = decode_decision(record.value)
        except InvalidMessageError as error:
            log.warning("a decision cannot be read: %s %d offset %d: %s", *record[:3], error)
            return
        if may_skip(decision, time.time_ns() // 1_000_000):
            self._until_ms[key] = decision.until.timestamp() * 1000

    def _key(self, url: str) -> bytes:
        collection = self._crawler.settings.get(COLLECTION_SETTING, "default")
        return f"{collection}/{name_of_page(url)}".encode("utf-8", "surrogatepass")
