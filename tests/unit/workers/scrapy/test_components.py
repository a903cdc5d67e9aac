"""Components for Scrapy: their settings, and what is sent of an item."""

import asyncio
import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
import scrapy
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider, DropItem, IgnoreRequest
from scrapy.http import Headers, HtmlResponse, Request, Response
from scrapy.responsetypes import responsetypes
from scrapy.utils.test import get_crawler

from nearstream.schemas.documents.document import Document
from nearstream.schemas.documents.record import ConsumerRecord, ProducerRecord, page_facts, page_headers
from nearstream.streams.ingest.defaults import DocumentLimits
from nearstream.streams.ingest.parse import ParsedDocument, Removal, parse_record
from nearstream.workers.config.settings import Settings, SettingsError
from nearstream.workers.files.source import Item, read
from nearstream.workers.kafka.errors import KafkaUnreachableError
from nearstream.workers.scrapy.addon import NearstreamAddon
from nearstream.workers.scrapy.environment import CONDITIONAL, FETCH, KNOWN_AS, settings_of
from nearstream.workers.scrapy.pipeline import NearstreamPipeline, add_unsent, is_page, page_item
from nearstream.workers.scrapy.skipping import NearstreamDownloaderMiddleware

NOW = datetime.now(UTC)
URL = "https://a.example/x"
LIMITS = DocumentLimits()


def recorder(pipeline: NearstreamPipeline) -> list[ProducerRecord]:
    """Return a list of what the pipeline sends from now on."""
    records: list[ProducerRecord] = []

    async def send(batch: Sequence[ProducerRecord]) -> None:
        records.extend(batch)

    pipeline._send = send
    return records


async def sent(item: object) -> ProducerRecord:
    """Return the record that the pipeline sends of an item."""
    pipeline = NearstreamPipeline(Settings(), crawler())
    records = recorder(pipeline)
    assert await pipeline.process_item(item) is item
    (record,) = records
    return record


def document_of(record: ProducerRecord) -> Document:
    """Return the document as a worker reads it."""
    received = ConsumerRecord(record.topic, 0, 0, 0, record.key, record.value, record.headers)
    limits = DocumentLimits(clock_skew_seconds=2**40)  # the record has no time
    parsed = parse_record(received, limits)
    assert isinstance(parsed, ParsedDocument)
    assert record.key == (parsed.record_key or "").encode()
    return parsed.document


async def test_pages_are_told_from_other_files_whatever_type_they_have() -> None:
    long = "text/html; x=" + "y" * 200
    for declared, body, sent_type in [
        ("TEXT/HTML; charset=latin-1", "<p>größe".encode("latin-1"), "TEXT/HTML; charset=latin-1"),
        (long, b"<p>a", long[:128]),
        ("", b"<!doctype html><p>a", "text/html"),
        ("html", b"<!doctype html><p>a", "html"),
        ("application/octet-stream", b"<html><body><p>a", "text/html"),  # as Scrapy reads it
        ("text/plain; charset=latin-1", b"a", None),
        ("image/png", b"\x89PNG\r\n", None),
        ("", b"a", None),
    ]:
        headers = {"Content-Type": declared} if declared else {}
        kind = responsetypes.from_args(headers=Headers(headers), url=URL, body=body)
        response = kind(URL, headers=headers, body=body)
        is_text = declared.startswith("text/plain")
        assert is_page(response) is (sent_type is not None or is_text)
        if sent_type is not None or is_text:
            document = document_of(await sent(page_item(response)))
            assert (document.raw, document.text) == ((None, "a") if is_text else (body, None))
            assert document.content_type == sent_type


async def test_at_most_a_thousand_items_are_sent_at_a_time() -> None:
    sending, may_end = 0, asyncio.Event()

    async def send(_: Sequence[ProducerRecord]) -> None:
        nonlocal sending
        sending += 1
        await may_end.wait()

    pipeline = NearstreamPipeline(Settings(), crawler())
    pipeline._send = send
    items = [asyncio.create_task(pipeline.process_item({"text": "one"})) for _ in range(1_500)]
    async with asyncio.timeout(60):
        while sending < 1_000:
            await asyncio.sleep(0.001)
    for _ in range(5):  # in which others would have begun
        await asyncio.sleep(0.001)
    assert sending == 1_000
    may_end.set()
    await asyncio.gather(*items)
    assert sending == 1_500


async def test_a_page_is_sent_under_its_url_and_one_that_redirects_to_it_for_good() -> None:
    for reasons, is_alias in [([], False), ([301], True), ([308, 301], True), ([302], False), ([301, 307], False)]:
        old = [f"https://a.example/old/{number}" for number in range(len(reasons))]
        request = Request(URL, meta={"redirect_urls": old, "redirect_reasons": reasons})
        item = page_item(
            HtmlResponse(f"{URL}?utm_source=a#b", body=b"<link rel=canonical href=/y><p>", request=request)
        )
        assert "raw" not in repr(item)  # Scrapy prints each item to its log
        record = await sent(item)
        document = document_of(record)
        assert (document.url, document.lineage) == (old[0] if is_alias else f"{URL}?utm_source=a#b", URL)
        assert (document.id, record.key, record.topic) == (URL, URL.encode(), "nearstream.documents.v1")
        assert document.source == "crawler"
        assert document.observed_at is not None
        assert document.observed_at >= NOW


async def test_items_of_every_kind_are_sent_with_the_fields_of_a_document() -> None:
    @dataclass
    class Page:
        url: str
        html: str
        price: int

    class Item(scrapy.Item):
        url = scrapy.Field()
        text = scrapy.Field()
        observed_at = scrapy.Field()

    assert document_of(await sent(Page(URL, "<p>one", 3))).html == "<p>one"
    record = await sent(Item(url=URL, text="one", observed_at=NOW))
    assert document_of(record).observed_at == NOW
    body = b"<p>" + b"a " * (2 * 1024 * 1024 - 2)  # four mebibytes
    fields = {"id": "größe", "lineage": "l", "url": URL, "collection": "news", "observed_at": NOW}
    fields |= {"labels": {"team": "größe"}, "recipient_hashes": ("0" * 16, "1" * 16)}
    record = await sent({"raw": body, "content_type": "text/html", "price": 3, **fields})
    document = document_of(record)
    assert record.value == document.raw == body
    assert {name: getattr(document, name) for name in fields} == fields


async def test_an_item_that_is_no_document_is_dropped() -> None:
    page = {"raw": b"<p>a", "content_type": "text/html"}
    wrong = [{"url": 5}, {"observed_at": "today"}, {"labels": {"A": "b"}}, {"id": ""}]
    for item in [{}, {"url": URL}, {"text": "a", "html": "b"}, *({**page, **fields} for fields in wrong)]:
        with pytest.raises(DropItem, match="no document"):
            await sent(item)
    with pytest.raises(DropItem, match="unsupported_content_type"):
        await sent({"raw": b'{"text": "one"}', "content_type": "application/json"})
    for content_type in ("text/plain", "text/html"):
        binary = {"raw": bytes(range(256)) * 12, "content_type": content_type}
        assert not is_page(Response(URL, headers={"Content-Type": content_type}, body=binary["raw"]))
        with pytest.raises(DropItem, match="binary"):
            await sent({"url": URL, **binary})
    # The JSON that is sent has our own names of fields.
    with pytest.raises(SettingsError, match="NEARSTREAM_FIELDS"):
        NearstreamPipeline(Settings(fields="text=content"), crawler())


def crawler(**settings: str) -> Crawler:
    return get_crawler(settings_dict={"TELNETCONSOLE_ENABLED": False, **settings})


def test_settings_come_from_the_project_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARSTREAM_KAFKA", "a.example:1")
    monkeypatch.setenv("NEARSTREAM_TOPIC_PREFIX", "p.")
    found = settings_of(crawler(NEARSTREAM_KAFKA="b.example:2"))
    assert (found.kafka, found.topic_prefix) == ("b.example:2", "p.")
    with pytest.raises(SettingsError, match="NEARSTREAM_KAFKAA: no such setting"):
        settings_of(crawler(NEARSTREAM_KAFKAA="b.example:2"))


def test_the_addon_adds_what_a_project_does_not_set_itself() -> None:
    own = {"nearstream.workers.scrapy.pipeline.NearstreamPipeline": 7}
    settings = scrapy.settings.Settings({"ITEM_PIPELINES": own})
    NearstreamAddon().update_settings(settings)
    assert dict(settings.getdict("ITEM_PIPELINES")) == own
    assert settings.getdict("DOWNLOADER_MIDDLEWARES")[NearstreamDownloaderMiddleware] == 543
    assert settings.getint("DOWNLOAD_MAXSIZE") == 4 * 1024 * 1024


async def test_without_kafka_the_spider_is_closed_and_one_line_says_why(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("nearstream.workers.scrapy.pipeline.WAIT_SECONDS", 0.1)
    pipeline = NearstreamPipeline.from_crawler(crawler(NEARSTREAM_KAFKA="127.0.0.1:1"))
    with pytest.raises(CloseSpider):
        await pipeline.open_spider()
    (record,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert "127.0.0.1:1" in record.getMessage()
    assert record.exc_info is None
    with pytest.raises(DropItem):
        await pipeline.process_item({"text": "one"})


async def test_a_page_that_kafka_does_not_take_is_written_to_a_file_that_can_be_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is sent for a while after a failure, so that items do not each wait for it."""
    file, tries = tmp_path / "unsent.jsonl", 0

    async def fail(_: Sequence[ProducerRecord]) -> None:
        nonlocal tries
        tries += 1
        raise KafkaUnreachableError("no broker answered")

    made = crawler(CRAWL_UNSENT=str(file))
    pipeline = NearstreamPipeline.from_crawler(made)
    pipeline._send = fail
    pages = [page_item(HtmlResponse(f"{URL}/{number}", body=b"<p>one \xff")) for number in range(5)]
    for page in pages:
        assert await pipeline.process_item(page) is page
    assert (tries, caplog.text.count("are written to")) == (1, 1)
    items = [item for item in read([str(file)]) if isinstance(item, Item)]
    documents = [parse_record(item.record, DocumentLimits()) for item in items]
    assert [(each.document.url, each.document.raw) for each in documents if isinstance(each, ParsedDocument)] == [
        (page.url, page.raw) for page in pages
    ]
    monkeypatch.setattr(pipeline, "_sends_at", 0.0)
    records = recorder(pipeline)
    await pipeline.process_item(pages[0])
    assert len(records) == 1
    assert made.stats is not None
    assert (made.stats.get_value("nearstream/unsent"), made.stats.get_value("nearstream/sent")) == (5, 1)


async def test_a_page_that_finds_no_room_in_the_file_is_counted_as_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = crawler(CRAWL_UNSENT=str(tmp_path / "missing" / "unsent.jsonl"))
    pipeline = NearstreamPipeline.from_crawler(made)
    recorder(pipeline)
    pipeline._sends_at = math.inf
    await pipeline.process_item({"text": "one"})
    assert made.stats is not None
    assert made.stats.get_value("nearstream/lost") == 1
    assert "a page is lost" in caplog.text
    assert not add_unsent(tmp_path / "unsent.jsonl", {"text": "one"}, 10)


async def test_validators_of_the_server_are_sent_with_a_page_if_they_are_valid() -> None:
    for etag, modified, facts in (
        ('W/"a\xfc"', "Mon, 02 Mar 2026 08:15:00 GMT", ("", "Mon, 02 Mar 2026 08:15:00 GMT")),
        ('"v-1"', "a\tb", ('"v-1"', "")),
        ('"' + "x" * 127 + '"', "x" * 41, ("", "")),
        ("", "", ("", "")),
    ):
        headers = {"ETag": etag.encode("latin-1"), "Last-Modified": modified}
        record = await sent(page_item(HtmlResponse(URL, body=b"<p>one", headers=headers)))
        found = page_facts(record.headers)
        assert (found.etag, found.modified) == facts
        assert [each for each in record.headers if each[0].startswith("nearstream-page")] == page_headers(found)


async def test_the_headers_for_one_page_are_not_sent_for_another_one() -> None:
    middleware, headers = NearstreamDownloaderMiddleware(crawler()), {"If-None-Match": '"v-1"', "Accept": "text/html"}
    added = Request(URL, headers=headers, meta={CONDITIONAL: ["If-None-Match", "If-Modified-Since"], KNOWN_AS: URL})
    own = Request(URL, headers=headers)
    for request, names in ((added, {b"Accept"}), (own, {b"Accept", b"If-None-Match"})):
        await middleware.process_request(request)
        assert (set(request.headers), request.meta) == (names, {})
    unchanged = Response(URL, status=304)
    assert middleware.process_response(own, unchanged) is unchanged  # for which the spider has asked
    with pytest.raises(IgnoreRequest, match="not modified"):
        middleware.process_response(Request(URL, meta={CONDITIONAL: []}), unchanged)


async def test_pages_that_are_gone_are_removed_and_no_others() -> None:
    pipeline = NearstreamPipeline.from_crawler(crawler(CRAWL_COLLECTION="news"))
    records = recorder(pipeline)
    for status in (200, 304, 401, 403, 404, 410, 429, 451, 500, 503):
        for known_as in (None, "", URL, f"{URL}/moved"):
            meta = {} if known_as is None else {KNOWN_AS: known_as}
            page = f"{URL}?gclid={status}#part"
            pipeline.note_response(Response(page, status=status), Request(page, meta=meta))
    await pipeline.close_spider()
    removals = [parse_record(ConsumerRecord("t", 0, 0, 0, each.key, None, each.headers), LIMITS) for each in records]
    assert removals == [Removal("news", URL, 0)] * 4  # of each status once without an answer, and once with a decision


async def test_a_page_that_has_moved_for_good_is_removed_and_the_page_there_fetched_once_more() -> None:
    pipeline = NearstreamPipeline.from_crawler(crawler())
    records, moved = recorder(pipeline), f"{URL}/moved"
    for reason, known_as, target, is_removed, is_forced in (
        (301, URL, moved, True, True),
        (308, "", moved, False, True),
        (301, moved, moved, False, False),  # decisions are found under both
        (301, None, moved, False, False),  # nothing answers
        (302, URL, moved, False, False),
        (301, URL, f"{URL}?gclid=1", False, False),
    ):
        meta = {"redirect_urls": ["https://a.example/first", URL], "redirect_reasons": [302, reason]}
        request = Request(target, meta=meta if known_as is None else {**meta, KNOWN_AS: known_as})
        pipeline.note_request(request)
        pipeline.note_request(request)  # again, as when it is tried again
        await asyncio.gather(*pipeline._removing)
        assert [each.key for each in records] == [URL.encode()] * is_removed
        assert (request.dont_filter, FETCH in request.meta, KNOWN_AS in request.meta) == (is_forced, is_forced, False)
        records.clear()


async def test_a_removal_that_kafka_does_not_take_is_left_to_the_next_crawl() -> None:
    made = crawler()
    pipeline = NearstreamPipeline.from_crawler(made)
    pipeline._send = partial(_fail, KafkaUnreachableError("no broker answered"))
    pipeline.note_response(Response(URL, status=404), Request(URL))
    await pipeline.close_spider()
    assert made.stats is not None
    assert made.stats.get_value("nearstream/removed") is None


async def _fail(error: Exception, _: Sequence[ProducerRecord]) -> None:
    raise error
