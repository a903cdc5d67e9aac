"""The item pipeline, which sends pages to the topic `documents`."""

from asyncio import Semaphore
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Self

import msgspec
from itemadapter import ItemAdapter
from scrapy.crawler import Crawler
from scrapy.exceptions import DropItem
from scrapy.http import HtmlResponse, Response

from nearstream.schemas.codec import InvalidMessageError, decode_document
from nearstream.schemas.document import CONTENT_TYPE_MAX_CHARACTERS, Document
from nearstream.schemas.record import ConsumerRecord, Headers, ProducerRecord
from nearstream.schemas.topics import DOCUMENTS
from nearstream.streams.ingest.defaults import name_of_page
from nearstream.streams.ingest.media_type import PAGE_TYPES, media_type_of
from nearstream.streams.ingest.parse import ParsedDocument, field_headers, parse_record
from nearstream.workers.config.settings import Settings, SettingsError
from nearstream.workers.crawl.redirects import PERMANENT
from nearstream.workers.kafka import offsets as kafka_offsets
from nearstream.workers.kafka import records as kafka_records
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.scrapy.environment import WAIT_SECONDS, keep_pages_out_of_log, settings_of

SOURCE = "crawler"
_FIELDS = frozenset(Document.__struct_fields__)


@dataclass(frozen=True)
class PageItem:
    """A page that a spider yields. Its bytes are left out where Scrapy logs it.

    Attributes:
        url: What it is found under.
        raw: Its bytes.
        content_type: As the server sent it.
        observed_at: When it was fetched.
        id: Its own URL, if another one redirects to it.
        lineage: The lineage of the page, if another URL redirects to it.
        collection: The tenant. None: the default one.
    """

    url: str
    raw: bytes = field(repr=False)
    content_type: str
    observed_at: str
    id: str | None = None
    lineage: str | None = None
    collection: str | None = None


def is_page(response: Response) -> bool:
    """Return whether a response is HTML or plain text.

    Its content decides if its Content-Type is missing or invalid.
    """
    return _content_type(response) is not None


def page_item(response: Response) -> PageItem:
    """Return the item of a response, for a spider to yield.

    It has the URL, the bytes with their content type, and the time. If permanent redirects lead to the page, its item
    has the URL that was asked for, and the id and lineage of the page, so that decisions are found under both URLs.
    """
    content_type = _content_type(response) or "text/html"
    item = PageItem(response.url, response.body, content_type, datetime.now(UTC).isoformat())
    asked = _redirected(response)
    if not asked:
        return item
    name = name_of_page(response.url)
    return replace(item, url=asked, id=name, lineage=name)


def _content_type(response: Response) -> str | None:
    """Return the content type to send, None if a response is no page."""
    declared = (response.headers.get("Content-Type") or b"").decode("latin-1")
    if media_type_of(declared, response.body) in PAGE_TYPES:
        return declared[:CONTENT_TYPE_MAX_CHARACTERS] or "text/html"
    return "text/html" if isinstance(response, HtmlResponse) else None


def _redirected(response: Response) -> str | None:
    """Return the URL that was asked for, if it redirects to this page for good."""
    meta = response.request.meta if response.request else {}
    reasons = meta.get("redirect_reasons", [])
    return meta["redirect_urls"][0] if reasons and PERMANENT.issuperset(reasons) else None


class NearstreamPipeline:
    """Sends items with the fields of a document, and passes all items on.

    An item has its content in `raw` (bytes, with `content_type`), `html` or `text`. Other fields than those of a
    document are left out. An item that is no document is dropped, and the log says why. Each item waits until the
    broker has confirmed it. At most 1,000 are sent at a time, and the others wait for them.
    """

    def __init__(self, settings: Settings) -> None:
        """Prepare sending.

        Raises:
            SettingsError: The deployment takes JSON with the fields of another program.
        """
        if settings.fields:
            raise SettingsError("NEARSTREAM_FIELDS: expected nothing, because items of Scrapy have our fields")
        self._deployment = Deployment.of(settings)
        self._topic = self._deployment.topic(DOCUMENTS)
        self._stack = AsyncExitStack()
        self._send: Callable[[Sequence[ProducerRecord]], Awaitable[None]] | None = None
        self._in_flight = Semaphore(kafka_records.IN_FLIGHT)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make the pipeline of a crawler.

        Raises:
            SettingsError: A setting of nearstream is invalid.
        """
        return cls(settings_of(crawler))

    async def open_spider(self) -> None:
        """Connect to Kafka.

        Raises:
            KafkaUnreachableError: No broker answered.
            SettingsError: The topic does not exist.
        """
        keep_pages_out_of_log()
        settings = self._deployment.settings
        await kafka_offsets.partitions(settings, [self._topic], WAIT_SECONDS)
        self._send = await self._stack.enter_async_context(kafka_records.sender(settings, WAIT_SECONDS))

    async def process_item(self, item: Any) -> Any:  # noqa: ANN401 - as Scrapy
        """Send an item and return it.

        Raises:
            DropItem: It is no document.
            KafkaUnreachableError: The broker did not confirm it in time.
        """
        if self._send is None:
            raise RuntimeError("the spider is not open")
        fields = {name: value for name, value in ItemAdapter(item).items() if name in _FIELDS and value is not None}
        try:
            record = self._record(fields)
        except InvalidMessageError as error:
            raise DropItem(f"no document: {error}") from None
        async with self._in_flight:
            await self._send([record])
        return item

    async def close_spider(self) -> None:
        """Disconnect from Kafka."""
        await self._stack.aclose()

    def _record(self, fields: dict[str, Any]) -> ProducerRecord:
        now_ms = int(datetime.now(UTC).timestamp() * 1000)
        value, headers = _value(fields)
        record = ConsumerRecord(self._topic, 0, 0, now_ms, None, value, headers)
        parsed = parse_record(record, self._deployment.document_limits)
        key = parsed.record_key if isinstance(parsed, ParsedDocument) else None
        return ProducerRecord(self._topic, key.encode() if key else None, value, headers)


def _value(fields: dict[str, Any]) -> tuple[bytes, Headers]:
    """Return the value and the headers of a record.

    A page is sent as its bytes, because base64 in JSON takes a third more.

    Raises:
        InvalidMessageError: A field of a page is invalid.
    """
    given = {"source": SOURCE, **fields}
    content, content_type = given.get("raw"), given.get("content_type")
    if not (isinstance(content, bytes) and isinstance(content_type, str) and content):
        return msgspec.json.encode(given), []
    if media_type_of(content_type, content) not in PAGE_TYPES:
        return msgspec.json.encode(given), []
    document = decode_document(msgspec.json.encode({name: value for name, value in given.items() if name != "raw"}))
    return content, [("content-type", content_type.encode("latin-1", "replace")), *field_headers(document)]
