"""Pages of WARC files, whatever is broken in them."""

import gzip
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearstream.workers.crawl import warc
from nearstream.workers.crawl.page import payload_of
from nearstream.workers.crawl.warc import RECORD_MAX_BYTES, Broken, PassedOver, Redirect, Redirects, WarcPage, read_warc
from tests.support.warc import Crawl, chunked, packed

HTML = ("Content-Type", "text/html; charset=utf-8")


def pieces(content: bytes, size: int = 1000) -> Iterator[bytes]:
    return (content[start : start + size] for start in range(0, len(content), size))


def found(content: bytes) -> list[WarcPage | Redirect | Broken | PassedOver]:
    records = list(read_warc(pieces(content)))
    assert list(read_warc(pieces(content, 7))) == records
    return records


def pages(content: bytes) -> list[WarcPage]:
    return [record for record in found(content) if isinstance(record, WarcPage)]


def urls(records: list[WarcPage | Redirect | Broken | PassedOver]) -> list[str]:
    return [record.url for record in records if isinstance(record, WarcPage)]


def three() -> bytes:
    crawl = Crawl()
    for number in range(3):
        crawl.response(f"http://a.example/{number}", b"<html><p>page %d</html>" % number)
    return crawl.content()


def test_a_response_is_a_page_with_its_url_and_its_time() -> None:
    crawl = Crawl()
    crawl.response("http://a.example/x", b"<p>text", headers=[("content-type", "TEXT/HTML; charset=latin-1")])
    (page,) = pages(crawl.content())
    observed_at = datetime(2026, 3, 2, 8, 15, tzinfo=UTC)
    assert page[1:6] == ("http://a.example/x", observed_at, "TEXT/HTML; charset=latin-1", b"<p>text", False)
    assert page.payload.startswith(payload_of(b"<p>text") + " <urn:uuid:")
    assert crawl.content()[page.offset :].startswith(b"WARC/1.0\r\n")


GZIP, CHUNKED = ("Content-Encoding", "gzip"), ("Transfer-Encoding", "chunked")


def test_the_encodings_of_a_response_are_undone() -> None:
    crawl = Crawl()
    for encode in [packed, chunked]:
        body, header = encode(b"<p>text")  # type: ignore[operator] # one of two functions
        crawl.response("http://a.example/x", body, headers=[HTML, header])
    crawl.stored("http://a.example/x", gzip.compress(b"<p>text"), "text/html")
    assert [(page.content, page.is_cut_off) for page in pages(crawl.content())] == [(b"<p>text", False)] * 3
    cut = Crawl()
    cut.response("http://a.example/a", gzip.compress(b"<p>text " * 99)[:-9], headers=[HTML, GZIP])
    cut.response("http://a.example/b", b"6\r\n<p>tex\r\n9\r\nt", headers=[HTML, CHUNKED])
    first, second = pages(cut.content())
    assert (first.is_cut_off, second.is_cut_off, second.content) == (True, True, b"<p>text")


def test_headers_with_other_ends_of_lines_are_read() -> None:
    for end in [b"\n", b"\r\n"]:
        block = b"HTTP/1.1 200 OK\nContent-Type: text/html\n\n<p>text"
        fields = (
            b"WARC/1.0",
            b"WARC-Type: response",
            b"WARC-Target-URI: http://a.example/x",
            b"WARC-Date: 2026-03-02T08:15:00Z",
        )
        length = b"Content-Length: %d" % len(block)
        (page,) = pages(end.join((*fields, b"Content-Type: application/http", length, b"", block)))
        assert (page.content, page.content_type) == (b"<p>text", "text/html")


def test_a_record_behind_nul_is_found() -> None:
    first, second = Crawl(), Crawl()
    first.response("http://a.example/1", b"<p>one")
    second.response("http://a.example/2", b"<p>two")
    records = found(first.content() + bytes(512) + second.content())
    assert urls(records) == ["http://a.example/1", "http://a.example/2"]
    assert sum(isinstance(record, Broken) for record in records) == 1


def test_a_refused_page_is_not_quoted() -> None:
    crawl = Crawl()
    damaged = gzip.compress(b"secret " * 50, 0).replace(b"secret", b"public", 1)
    crawl.response("http://a.example/x", damaged, headers=[HTML, GZIP])
    crawl.response("http://a.example/y", b"<html>")
    (_, broken, page) = found(crawl.content())
    assert isinstance(broken, Broken)
    assert "secret" not in broken.reason
    assert crawl.content()[broken.offset :].startswith(b"WARC/1.0")
    assert isinstance(page, WarcPage)


def test_a_page_that_the_crawler_has_cut_off_is_marked() -> None:
    whole = three()
    for field in (b"WARC-Truncated: length", b"WARC-Segment-Number: 1"):
        cut = whole.replace(b"WARC-Type: response", field + b"\r\nWARC-Type: response", 1)
        assert [page.is_cut_off for page in pages(cut)] == [True, False, False]


def test_resources_and_conversions_are_pages_by_the_type_of_their_record() -> None:
    crawl = Crawl()
    crawl.stored("http://a.example/a", b"<p>text", "text/html; charset=utf-8")
    crawl.stored("file:///b.txt", b"text", "text/plain")
    crawl.stored("urn:text:http://a.example/c", b"text", "text/plain")
    crawl.stored("http://a.example/d", b"<p>text", "application/xhtml+xml", "conversion")
    crawl.stored("http://a.example/e e", b"<html>text", "unknown/unknown")
    crawl.stored("ftp://a.example/f", b"text", "text/plain", "response")
    assert [(page.url, page.content_type) for page in pages(crawl.content())] == [
        ("http://a.example/a", "text/html; charset=utf-8"),
        ("file:///b.txt", "text/plain"),
        ("urn:text:http://a.example/c", "text/plain"),
        ("http://a.example/d", "application/xhtml+xml"),
        ("http://a.example/e%20e", "unknown/unknown"),
        ("ftp://a.example/f", "text/plain"),
    ]


def test_what_is_no_page_is_passed_over_with_a_reason() -> None:
    crawl = Crawl()
    crawl.revisit("http://a.example/a")
    crawl.response("http://a.example/b", b"", status="301 Moved", headers=[HTML])
    crawl.response("http://a.example/c", b"x", headers=[("Content-Type", "image/png")])
    crawl.response("http://a.example/d", b"x", headers=[])
    crawl.response("http://a.example/e", b"<p>" + bytes(RECORD_MAX_BYTES))
    crawl.response("http://a.example/f", gzip.compress(bytes(RECORD_MAX_BYTES)), headers=[HTML, GZIP])
    crawl.response("http://a.example/g", b"<!DOCTYPE html><p>without a type", headers=[])
    crawl.response("http://a.example/h", b"<html><p>of a wrong type", headers=[("Content-Type", "html")])
    crawl.response("http://a.example/i", b"")
    crawl.stored("metadata://gnu.org/software/wget/warc/wget_arguments.txt", b"--mirror", "text/plain")
    crawl.stored("http://a.example/j", b"x", "image/png")
    crawl.stored("http://a.example/k", b"", "text/plain")
    crawl.stored("http://a.example/l", b"<p>" + bytes(5_000_000), "text/html")
    crawl.stored("dns:a.example", b"20260302081500\na.example. 300 IN A 192.0.2.1", "text/dns", "response")
    for content in [b"%PDF-1.4 text", b"\x89PNG\r\n\x1a\n" + bytes(99), bytes(range(256)) * 4]:
        crawl.response("http://a.example/m", content)
        crawl.stored("http://a.example/n", content, "text/plain")
    reasons = ["no_response", "revisit", "http_status", "media_type", "media_type", "too_large", "too_large", "empty"]
    reasons += ["no_response", "media_type", "empty", "too_large", "media_type", *["media_type"] * 6]
    records = list(read_warc(pieces(crawl.content(), 65536)))
    others = [each for each in records if not isinstance(each, WarcPage)]
    assert others == reasons
    types = {each.url: each.content_type for each in records if isinstance(each, WarcPage)}
    assert types == {"http://a.example/g": "text/html", "http://a.example/h": "html"}


def test_a_permanent_redirect_names_where_it_leads() -> None:
    crawl = Crawl()
    for status in ("301 Moved", "308 Permanent", "302 Found"):
        crawl.response("http://a.example/old", b"moved", status=status, headers=[("location", "/new")])
        crawl.revisit("http://a.example/old", status, [("Location", "/new")])
    leads = Redirect("http://a.example/old", "/new")
    assert found(crawl.content())[1:] == [*[leads] * 4, "http_status", "revisit"]


def test_a_broken_record_is_named_with_its_offset_and_the_others_are_read() -> None:
    for old, new in [
        (b"WARC/1.0\r\nWARC", b"XXXX/1.0\r\nWARC"),
        (b"Content-Length: ", b"Content-Length: 9"),
        (b"Content-Length: ", b"Content-Length: 5\r\nX: "),
        (b"Content-Length: ", b"Content-Length: x"),
        (b"WARC-Type: response", b"WARC-Type: ?"),
        (b"WARC-Date: 2", b"WARC-Date: x"),
        (b"application/http", b"application/nothing"),
    ]:
        whole = three()
        start = whole.rindex(b"WARC/1.0", 0, whole.index(b"http://a.example/1"))
        changed = whole[start:].replace(old, new, 1)
        records = found(whole[:start] + changed)
        assert [record.offset for record in records if isinstance(record, Broken)] == [start]
        assert urls(records) == ["http://a.example/0", "http://a.example/2"]


def test_a_record_that_says_to_be_too_large_hides_no_other() -> None:
    content = three().replace(b"Content-Length: ", b"Content-Length: 99999999999", 2)
    records = found(content)
    assert records[:2] == ["too_large"] * 2
    assert urls(records) == ["http://a.example/1", "http://a.example/2"]


def test_a_file_that_is_cut_off_gives_what_precedes() -> None:
    whole = three()
    records = found(whole[:-40])
    assert urls(records) == ["http://a.example/0", "http://a.example/1"]
    assert isinstance(records[-1], Broken)


def test_what_is_no_warc_gives_no_page() -> None:
    for content in [b"", b"\r\n" * 50, b"WARC/1.0\r\n" + b"x" * 200_000, b"no warc", b"\nWARC/1.0\r\n"]:
        assert urls(list(read_warc(pieces(content)))) == []


@settings(max_examples=200)
@given(st.data())
def test_no_change_of_a_file_does_more_than_break_records(data: st.DataObject) -> None:
    content = bytearray(three())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    assert len(list(read_warc(pieces(bytes(content))))) < 20


def test_only_one_record_is_held() -> None:
    crawl = Crawl()
    crawl.response("http://a.example/x", b"<p>" + b"word " * 100_000)
    record = crawl.content()
    tracemalloc.start()
    try:
        assert sum(1 for each in read_warc(record for _ in range(40)) if isinstance(each, WarcPage)) == 40
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * len(record)


A, B, C = (f"https://{name}.example/page" for name in "abc")


def leading(*redirects: tuple[str, str]) -> Redirects:
    met = Redirects()
    for source, target in redirects:
        met.add(source, target)
    return met


def test_a_page_has_the_urls_that_redirect_to_it_once() -> None:
    met = leading((A, B), (C, f"{B}?utm_source=mail#top"), (A, B))
    assert met.take(B) == [A, C]
    assert met.take(B) == met.take(A) == []
    assert leading((f"{A}?PHPSESSID=1", A), (A, "https://[broken")).take(A) == []  # another form of a URL is none
    circle = leading((A, B), (B, A))
    assert (circle.take(A), circle.take(B)) == ([A, B], [])
    assert leading((A, "/page?old"), (f"{A}?old", "//c.example/page")).take(C) == [A, f"{A}?old"]


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warc, "_TARGETS_MAX", 50)
    met = leading(*((f"{A}/{number}", B) for number in range(9)))
    assert len(met.take(B)) == warc._SOURCES_MAX
    met = leading(*((f"{A}/{number}", f"{B}/{number}") for number in range(51)))
    assert (met.take(f"{B}/0"), met.take(f"{B}/1")) == ([], [f"{A}/1"])
