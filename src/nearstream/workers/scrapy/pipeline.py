"""The item pipeline, which sends pages to the topic `documents`."""

import asyncio
import logging
import time
from asyncio import Semaphore
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self

import msgspec
from itemadapter import ItemAdapter
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider, DropItem
from scrapy.http import HtmlResponse, Response

from nearstream.schemas.documents.document import (
    CONTENT_TYPE_MAX_CHARACTERS,
    DEFAULT_COLLECTION,
    Document,
    without_user,
)
from nearstream.schemas.documents.record import (
    PAGE_ETAG_HEADER,
    PAGE_MODIFIED_HEADER,
    ConsumerRecord,
    Headers,
    PageFacts,
    ProducerRecord,
    as_sent,
    page_headers,
)
from nearstream.schemas.topics.codec import InvalidMessageError, decode_document
from nearstream.schemas.topics.dead_letter import Reason
from nearstream.schemas.topics.table import DOCUMENTS
from nearstream.streams.ingest.defaults import name_of_page
from nearstream.streams.ingest.media_type import PAGE_TYPES, is_binary, media_type_of
from nearstream.streams.ingest.parse import field_headers, parse_record, record_key, removal_of
from nearstream.workers.config.settings import Settings, SettingsError
from nearstream.workers.crawl.warc import PERMANENT
from nearstream.workers.kafka import offsets as kafka_offsets
from nearstream.workers.kafka import records as kafka_records
from nearstream.workers.kafka.errors import KafkaUnreachableError
from nearstream.workers.kafka.records import kept_sender
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.scrapy.environment import (
    COLLECTION_SETTING,
    FETCH,
    KNOWN_AS,
    WAIT_SECONDS,
    count,
    keep_client_out_of_log,
    settings_of,
)

FILE_MAX_BYTES = 1024**3
SOURCE = "crawler"
GONE = (HTTPStatus.NOT_FOUND, HTTPStatus.GONE)
UNSENT_SETTING, UNSENT = "CRAWL_UNSENT", "nearstream-unsent.jsonl"
CLOSED = "nearstream_cannot_send"  # why a spider is closed
PAUSE_SECONDS = 10.0  # in which nothing is sent after a failure
log = logging.getLogger(__name__)
_FIELDS = frozenset(Document.__struct_fields__)


def add_unsent(path: Path, fields: dict[str, Any], max_bytes: int = FILE_MAX_BYTES) -> bool:
    """Add a document as a line of JSON to a file, and return whether the file had room for the line."""
    line = msgspec.json.encode(fields) + b"\n"
    with path.open("ab") as file:
        if file.tell() + len(line) > max_bytes:
            return False
        file.write(line)
    return True


@dataclass
class PageItem:
    """A page that a spider yields. Its bytes are left out where Scrapy logs it."""

    url: str  # what it is found under
    raw: bytes = field(repr=False)  # its bytes
    content_type: str  # as the server sent it
    observed_at: str  # when it was fetched
    id: str | None = None  # its own URL, if another one redirects to it
    lineage: str | None = None  # the lineage of the page, if another URL redirects to it
    collection: str | None = None  # The tenant. None: the default one.
    etag: str | None = None  # what the server sent as ETag
    last_modified: str | None = None


def is_page(response: Response) -> bool:
    """Return whether a response is HTML or plain text, and not binary.

    Its content decides if its Content-Type is missing or invalid.
    """
    return _content_type(response) is not None


def page_item(response: Response) -> PageItem:
    """Return the item of a response, for a spider to yield.

    It has the URL, the bytes with their content type, and the time. If permanent redirects lead to the page, its item
    has the URL that was asked for, and the id and lineage of the page, so that decisions are found under both URLs.
    """
    content_type = _content_type(response) or "text/html"
    item = PageItem(without_user(response.url), response.body, content_type, datetime.now(UTC).isoformat())
    sent = ((response.headers.get(name) or b"").decode("latin-1") for name in ("ETag", "Last-Modified"))
    item.etag, item.last_modified = sent
    asked = _redirected(response)
    if not asked:
        return item
    name = name_of_page(response.url)
    return replace(item, url=without_user(asked), id=name, lineage=name)


def _content_type(response: Response) -> str | None:
    declared = (response.headers.get("Content-Type") or b"").decode("latin-1")
    if is_binary(response.body):
        return None
    if media_type_of(declared, response.body) in PAGE_TYPES:
        return declared[:CONTENT_TYPE_MAX_CHARACTERS] or "text/html"
    return "text/html" if isinstance(response, HtmlResponse) else None


def _redirected(response: Response) -> str | None:
    """Return the URL that was asked for, if it redirects to this page for good."""
    meta = response.request.meta if response.request else {}
    reasons = meta.get("redirect_reasons", [])
    return meta["redirect_urls"][0] if reasons and PERMANENT.issuperset(reasons) else None


def _has_moved(request: Request) -> bool:
    """Return whether a page that is known under its own URL redirects here for good.

    Then this request is sent also if the page here was fetched before, so that decisions are found under both URLs.
    """
    urls, reasons = (request.meta.get(f"redirect_{each}") or [""] for each in ("urls", "reasons"))
    known_as, name = request.meta.pop(KNOWN_AS, None), name_of_page(urls[-1])
    if known_as not in ("", name) or reasons[-1] not in PERMANENT or name == name_of_page(request.url):
        return False
    request.dont_filter = True
    request.meta[FETCH] = True
    return bool(known_as)


class NearstreamPipeline:
    """Sends items with the fields of a document, and passes all items on.

    An item has its content in `raw` (bytes, with `content_type`), `html` or `text`. Other fields than those of a
    document are left out. An item that is no document is dropped, and the log says why. Each item waits until the
    broker has confirmed it. At most 1,000 are sent at a time, and the others wait for them. What could not be sent is
    written to a file.
    """

    def __init__(self, settings: Settings, crawler: Crawler) -> None:
        """Prepare sending, if the deployment takes JSON with our fields."""
        if settings.fields:
            raise SettingsError("NEARSTREAM_FIELDS: expected nothing, because items of Scrapy have our fields")
        self._deployment = Deployment.of(settings)
        self._crawler = crawler
        self._topic = self._deployment.topic(DOCUMENTS)
        self._stack = AsyncExitStack()
        self._send: Callable[[Sequence[ProducerRecord]], Awaitable[None]] | None = None
        self._unsent = Path(crawler.settings.get(UNSENT_SETTING, UNSENT))
        self._sends_at = 0.0
        self._in_flight = Semaphore(kafka_records.IN_FLIGHT)
        self._removing: set[asyncio.Task[None]] = set()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make the pipeline of a crawler, and connect the signals of requests and responses."""
        pipeline = cls(settings_of(crawler), crawler)
        crawler.signals.connect(pipeline.note_request, signal=signals.request_scheduled)
        crawler.signals.connect(pipeline.note_response, signal=signals.response_received)
        return pipeline

    def note_request(self, request: Request) -> None:
        """Remove a page that has moved for good."""
        if request.meta.get("redirect_reasons") and _has_moved(request):
            self._remove(request.meta["redirect_urls"][-1])

    def note_response(self, response: Response, request: Request) -> None:
        """Remove a page that is gone, unless an answer says that it is not known."""
        if response.status in GONE and request.meta.get(KNOWN_AS) in (None, name_of_page(response.url)):
            self._remove(response.url)

    async def open_spider(self) -> None:
        """Connect to Kafka."""
        keep_client_out_of_log()
        settings = self._deployment.settings
        try:
            await kafka_offsets.partitions(settings, [self._topic], WAIT_SECONDS)
            opening = kept_sender(settings, WAIT_SECONDS, PAUSE_SECONDS, _report)
            sending = await self._stack.enter_async_context(opening)
            async with asyncio.timeout(WAIT_SECONDS):
                await sending.is_connected.wait()
        except (KafkaUnreachableError, SettingsError, TimeoutError) as error:
            await self._stack.aclose()
            log.error("the spider is closed, because pages cannot be sent: %s", error)  # noqa: TRY400 - one line
            raise CloseSpider(CLOSED) from None
        self._send = sending.send

    async def process_item(self, item: Any) -> Any:  # noqa: ANN401 - as Scrapy
        """Send an item and return it."""
        if self._send is None:
            raise DropItem("pages cannot be sent")
        fields = {name: value for name, value in ItemAdapter(item).items() if name in _FIELDS and value is not None}
        try:
            record = self._record(fields, _validators(ItemAdapter(item)))
        except InvalidMessageError as error:
            count(self._crawler, "dropped")
            raise DropItem(f"no document: {error}") from None
        async with self._in_flight:
            await self._deliver(record, fields)
        return item

    async def close_spider(self) -> None:
        """Disconnect from Kafka."""
        await asyncio.gather(*self._removing)
        await self._stack.aclose()

    def _remove(self, url: str) -> None:
        task = asyncio.ensure_future(self._send_removal(url))
        self._removing.add(task)
        task.add_done_callback(self._removing.discard)

    async def _send_removal(self, url: str) -> None:
        """Send the removal of a page.

        If Kafka does not take it, the next crawl finds the page gone again.
        """
        collection = self._crawler.settings.get(COLLECTION_SETTING, DEFAULT_COLLECTION)
        async with self._in_flight:
            if await self._is_sent(removal_of(self._topic, name_of_page(url), collection)):
                count(self._crawler, "removed")

    async def _deliver(self, record: ProducerRecord, fields: dict[str, Any]) -> None:
        """Send a record, or write its document to the file if Kafka does not take it."""
        if await self._is_sent(record):
            count(self._crawler, "sent")
        else:  # sent later, it would have the time of that
            self._set_aside({"source": SOURCE, "observed_at": datetime.now(UTC), **fields})

    async def _is_sent(self, record: ProducerRecord) -> bool:
        """Send a record, and return whether Kafka has taken it.

        After a failure nothing is sent for some seconds.
        """
        if self._send is None or time.monotonic() < self._sends_at:
            return False
        try:
            await self._send([record])
        except (KafkaUnreachableError, SettingsError) as error:
            if time.monotonic() >= self._sends_at:
                log.warning("pages are written to %s until Kafka takes them: %s", self._unsent, error)
            self._sends_at = time.monotonic() + PAUSE_SECONDS
            return False
        return True

    def _set_aside(self, fields: dict[str, Any]) -> None:
        try:
            is_written, why = add_unsent(self._unsent, fields), "it is full"
        except OSError as error:
            is_written, why = False, error.strerror or str(error)
        count(self._crawler, "unsent" if is_written else "lost")
        if not is_written:
            log.error("the spider is closed, because a page is lost: %s: %s", self._unsent, why)
            if self._crawler.crawling:  # it closes while the item is passed on
                self._closing = asyncio.ensure_future(self._crawler.engine.close_spider_async(reason=CLOSED))

    def _record(self, fields: dict[str, Any], further: Headers) -> ProducerRecord:
        now_ms = int(datetime.now(UTC).timestamp() * 1000)
        value, headers = _value(fields)
        headers += further
        record = ConsumerRecord(self._topic, 0, 0, now_ms, None, value, headers)
        key = record_key(parse_record(record, self._deployment.document_limits))
        return ProducerRecord(self._topic, key, value, headers)


def _validators(item: ItemAdapter) -> Headers:
    named = ((PAGE_ETAG_HEADER, item.get("etag")), (PAGE_MODIFIED_HEADER, item.get("last_modified")))
    given: Headers = [(name, value.encode("latin-1", "replace")) for name, value in named if isinstance(value, str)]
    return page_headers(as_sent(PageFacts(), given))  # which are valid


def _report(error: Exception) -> None:
    log.debug("there is no connection to Kafka: %s", error)


def _value(fields: dict[str, Any]) -> tuple[bytes, Headers]:
    """Return the value and the headers of a record.

    A page is sent as its bytes, because base64 in JSON takes a third more.
    """
    given = {"source": SOURCE, **fields}
    content, content_type = given.get("raw"), given.get("content_type")
    if not (isinstance(content, bytes) and isinstance(content_type, str) and content):
        return msgspec.json.encode(given), []
    if media_type_of(content_type, content) not in PAGE_TYPES:
        return msgspec.json.encode(given), []
    if is_binary(content):
        raise InvalidMessageError(Reason.EXTRACTION_FAILED, "expected a page, found binary")
    document = decode_document(msgspec.json.encode({name: value for name, value in given.items() if name != "raw"}))
    return content, [("content-type", content_type.encode("latin-1", "replace")), *field_headers(document)]
