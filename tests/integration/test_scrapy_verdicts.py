"""`CRAWL_VERDICTS`: each item gets the verdict about its page before it is sent, and a signal has it too."""

import json
from dataclasses import dataclass
from html import escape
from typing import Any

import pytest
from scrapy.utils.test import get_crawler

from nearstream.schemas.documents.record import ProducerRecord
from nearstream.workers.config.settings import load
from nearstream.workers.scrapy.pipeline import PageItem, verdicts
from nearstream.workers.scrapy.signals import verdict_received
from tests.devstack.server import free_ports
from tests.support.api import served
from tests.support.deployment import TEXTS

URL = "https://a.example/flood"
PAGE = f"<html><body><p>{escape(TEXTS[0])}</body></html>".encode()
HEADERS: list[tuple[str, bytes | None]] = [("content-type", b"text/html"), ("nearstream-url", URL.encode())]


@dataclass(frozen=True)
class Frozen:
    """An item that may not be changed."""

    nearstream: dict[str, Any] | None = None


@dataclass
class Bare:
    """An item without a field for the verdict."""

    url: str


def record(value: bytes = PAGE, headers: list[tuple[str, bytes | None]] | None = None) -> ProducerRecord:
    return ProducerRecord("documents", None, value, HEADERS if headers is None else headers)


async def test_an_item_gets_the_verdict_about_its_page_and_a_signal_tells_it(redis_url: str) -> None:
    heard: list[tuple[Any, dict[str, Any]]] = []

    def hear(item: object, verdict: dict[str, Any]) -> None:
        heard.append((item, verdict))

    crawler = get_crawler(settings_dict={"TELNETCONSOLE_ENABLED": False, "CRAWL_ASK_SECONDS": 60})
    crawler.signals.connect(hear, verdict_received)
    async with served(redis_url) as api:
        await api.admit("known", TEXTS[0])
        settings = load({"NEARSTREAM_API": api.address, "NEARSTREAM_API_SECONDS": "60"})
        page, mapping, bare = PageItem(URL, PAGE, "text/html", "2026-03-02T08:15:00Z"), dict[str, Any](), Bare(URL)
        async with verdicts(settings, crawler) as give:
            for item in (page, mapping, bare, Frozen()):
                await give(item, record())
            await give(mapping | {"other": 1}, record(json.dumps({"text": TEXTS[5]}).encode(), []))
    assert page.nearstream is not None
    assert (page.nearstream["verdict"], page.nearstream["match"]["id"]) == ("near_duplicate", "known")
    assert mapping["nearstream"]["match"]["id"] == "known"
    assert [verdict["verdict"] for _, verdict in heard] == ["near_duplicate"] * 4 + ["none"]
    assert [item for item, _ in heard[:3]] == [page, mapping, bare]
    assert crawler.stats is not None
    assert crawler.stats.get_value("nearstream/asked") == 5
    assert crawler.stats.get_value("nearstream/degraded") is None


async def test_without_an_answer_an_item_has_no_verdict(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[object] = []

    def hear(item: object) -> None:
        heard.append(item)

    crawler = get_crawler(settings_dict={"TELNETCONSOLE_ENABLED": False, "CRAWL_ASK_SECONDS": 1})
    crawler.signals.connect(hear, verdict_received)
    (port,) = free_ports(1)
    item = dict[str, Any]()
    async with verdicts(load({"NEARSTREAM_API": f"127.0.0.1:{port}"}), crawler) as give:
        await give(item, record())
    assert (item, heard) == ({}, [])
    assert crawler.stats is not None
    assert crawler.stats.get_value("nearstream/degraded") == 1
    assert "items have no verdict" in caplog.text
