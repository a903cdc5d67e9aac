"""Canonical URLs, which are the default lineage."""

import time

import pytest

from nearstream.streams.ingest.lineage import TRACKING, TRACKING_PREFIXES, URL_RULES, canonical_url, declared_url

PAGE = "https://a.example/x"


def test_these_are_the_canonical_urls_of_version_2_of_the_rules() -> None:
    assert URL_RULES == 2
    for url, canonical in {
        "https://a.example/x?utm_source=a&utm_medium=b&id=7": "https://a.example/x?id=7",
        "https://a.example/x?utm_campaign_id=1": PAGE,
        "https://a.example/x?UTM_Source=1&Gclid=2": PAGE,
        "https://a.example/x?utm_%73ource=1": PAGE,
        "https://a.example/x?gclid=1&fbclid=2&mc_eid=3&msclkid=4": PAGE,
        "https://a.example/x?PHPSESSID=1&jsessionid=2&ASPSESSIONIDABC=3": PAGE,
        "https://a.example/x;jsessionid=0A1B?id=7": "https://a.example/x?id=7",
        "https://a.example/x;v=1;JSESSIONID=0A1B": "https://a.example/x;v=1",
        "https://a.example:443/x": PAGE,
        "http://a.example:80": "http://a.example/",
        "http://a.example:443/": "http://a.example:443/",
        "https://a.example:8443/x": "https://a.example:8443/x",
        "https://a.example/x?b=2&a=1": "https://a.example/x?a=1&b=2",
        "https://a.example/x?a=1&a=2": "https://a.example/x?a=1&a=2",
        "https://a.example/x?a=&gclid": "https://a.example/x?a=",
        "https://a.example/x#part": PAGE,
        "HTTPS://A.Example/x": PAGE,
        "https://a.example/x?": PAGE,
        "https://a.example": "https://a.example/",
        "https://a.example/ä?q=ö": "https://a.example/%C3%A4?q=%C3%B6",
        "https://a.example/x?utmost=1": "https://a.example/x?utmost=1",
        "no url": "no%20url",
        "http://[::1": "http://[::1",
    }.items():
        assert canonical_url(url) == canonical


def test_every_tracking_parameter_is_removed() -> None:
    for name in (*TRACKING, *(f"{prefix}x" for prefix in TRACKING_PREFIXES)):
        assert canonical_url(f"{PAGE}?{name}=1&id=7&{name.upper()}=2") == f"{PAGE}?id=7"


@pytest.mark.parametrize(
    "head",
    [
        "<link rel='canonical' href='https://a.example/x'>",
        '<LINK HREF="/x?utm_source=a" data-x="1" REL="Canonical" />',
        "<link rel=canonical href=//www.a.example/x>",
        "<link rel=stylesheet href=/style><link href=x rel=canonical>",
    ],
)
def test_the_url_that_a_page_declares_is_found(head: str) -> None:
    for html in (f"<html><head>{head}</head>", f"<html><head>{head}<body>".encode()):
        assert str(declared_url(html, "https://a.example/y?page=1")).replace("www.", "") == PAGE


@pytest.mark.parametrize(
    "head",
    [
        "",
        "<link rel=canonical>",
        "<link rel=canonical href='https://b.example/x'>",
        "<link rel=canonical href='https://a.example.b.example/x'>",
        "<link rel=canonical href='https://a.example/'>",
        "<link rel=canonical href='http://[::1'>",
        "<link rel=canonical href='javascript:x'>",
        "<link rel=alternate href=/x>",
        "<link data-rel=canonical href=/x>",
        "</head><link rel=canonical href=/x>",
        "<body><link rel=canonical href=/x>",
        " " * 70_000 + "<link rel=canonical href=/x>",
    ],
)
def test_a_declaration_that_cannot_be_trusted_is_ignored(head: str) -> None:
    assert declared_url(f"<html><head>{head}", "https://a.example/y") is None


def test_hostile_heads_are_read_in_time() -> None:
    for head in ("<link " * 20_000, "<link rel=" + "'" * 60_000, "<link " + "rel = " * 10_000, "<link " + " " * 60_000):
        began = time.process_time()
        declared_url(head, PAGE)
        assert time.process_time() - began < 1
