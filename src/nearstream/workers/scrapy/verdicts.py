"""The verdict about a page, for the item of a spider."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from itemadapter import ItemAdapter
from scrapy.crawler import Crawler

from nearstream.schemas.documents.record import ProducerRecord
from nearstream.workers.config.settings import Settings
from nearstream.workers.http.client import ApiClient, api_client
from nearstream.workers.scrapy.environment import count, seconds_to_ask
from nearstream.workers.scrapy.signals import verdict_received

VERDICTS_SETTING = "CRAWL_VERDICTS"
FIELD = "nearstream"  # of an item


@dataclass(frozen=True)
class Verdicts:
    """Asks what pages are to those that the index knows, before they are sent."""

    client: ApiClient  # asks the HTTP API
    crawler: Crawler  # has the statistics and the signals

    async def give(self, item: Any, record: ProducerRecord) -> None:  # noqa: ANN401 - as Scrapy
        """Give an item the verdict about its page, and send the signal.

        Without an answer the item has none. One that has no such field, or is frozen, gets the signal alone.
        """
        headers = {name: (value or b"").decode("utf-8", "surrogateescape") for name, value in record.headers}
        headers.setdefault("content-type", "application/json")
        answer = await self.client.ask(dict[str, Any], "POST", BytesIO(record.value or b""), headers=headers)
        count(self.crawler, "asked")
        if answer is None:
            count(self.crawler, "degraded")
            return
        with suppress(KeyError, AttributeError):  # it has no such field, or may not be changed
            ItemAdapter(item)[FIELD] = answer
        self.crawler.signals.send_catch_log(verdict_received, item=item, verdict=answer, spider=self.crawler.spider)


@asynccontextmanager
async def verdicts(settings: Settings, crawler: Crawler) -> AsyncIterator[Verdicts]:
    """Yield what asks for verdicts, of an API that need not run yet."""
    asking = api_client(settings, "/v1/check", "items have no verdict", seconds=seconds_to_ask(settings, crawler))
    async with asking as client:
        yield Verdicts(client, crawler)
