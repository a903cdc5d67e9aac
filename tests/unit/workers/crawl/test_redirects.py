"""Permanent redirects on their way to the page that they lead to."""

from nearstream.workers.crawl import warc
from nearstream.workers.crawl.warc import Redirects

A, B, C = (f"https://{name}.example/page" for name in "abc")


def test_a_page_has_the_urls_that_redirect_to_it_once() -> None:
    met = Redirects()
    met.add(A, B)
    met.add(C, f"{B}?utm_source=mail#top")
    met.add(A, B)
    assert met.take(B) == [A, C]
    assert met.take(B) == met.take(A) == []


def test_a_chain_leads_to_its_end() -> None:
    met = Redirects()
    met.add(A, B)
    met.add(B, "//c.example/page")
    assert met.take(C) == [A, B]


def test_a_target_may_be_relative() -> None:
    met = Redirects()
    met.add("https://a.example/old/", "../new")
    assert met.take("https://a.example/new") == ["https://a.example/old/"]


def test_a_redirect_to_another_form_of_its_url_is_none() -> None:
    met = Redirects()
    met.add(f"{A}?PHPSESSID=1", A)
    met.add(A, "https://[broken")
    assert met.take(A) == []


def test_redirects_in_a_circle_name_a_page_of_the_circle_if_it_comes() -> None:
    met = Redirects()
    met.add(A, B)
    met.add(B, A)
    assert met.take(A) == [A, B]
    assert met.take(B) == []


def test_what_is_remembered_is_bounded() -> None:
    met = Redirects()
    for number in range(9):
        met.add(f"{A}/{number}", B)
    assert len(met.take(B)) == warc._SOURCES_MAX
    for number in range(warc._TARGETS_MAX + 1):
        met.add(f"{A}/{number}", f"{B}/{number}")
    assert met.take(f"{B}/0") == []
    assert met.take(f"{B}/1") == [f"{A}/1"]
