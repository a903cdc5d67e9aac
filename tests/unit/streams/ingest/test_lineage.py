"""Canonical URLs, which are the default lineage."""

import pytest

from nearstream.streams.ingest.defaults import declared_name
from nearstream.streams.ingest.lineage import TRACKING, TRACKING_PREFIXES, canonical_url
from nearstream.streams.ingest.sites import SITE_BYTES, site_hash, site_of

PAGE = "https://a.example/x"


def test_these_are_the_canonical_urls() -> None:
    for url, canonical in {
        "https://a.example/x?utm_source=a&utm_medium=b&id=7": "https://a.example/x?id=7",
        "https://a.example/x?UTM_Source=1&Gclid=2": PAGE,
        "https://a.example/x?utm_%73ource=1": PAGE,
        "https://a.example/x?PHPSESSID=1&jsessionid=2&ASPSESSIONIDABC=3": PAGE,
        "https://a.example/x;jsessionid=0A1B?id=7": "https://a.example/x?id=7",
        "https://a.example/x;v=1;JSESSIONID=0A1B": "https://a.example/x;v=1",
        "https://a.example:443/x": PAGE,
        "http://a.example:80": "http://a.example/",
        "http://a.example:443/": "http://a.example:443/",
        "https://a.example/x?b=2&a=1": "https://a.example/x?a=1&b=2",
        "https://a.example/x?a=1&a=2": "https://a.example/x?a=1&a=2",
        "https://a.example/x?a=&gclid": "https://a.example/x?a=",
        "https://a.example/x#part": PAGE,
        "https://a.example/x#!": PAGE,
        "https://a.example/x#:~:text=a=b": PAGE,
        "https://a.example/x#utm_source=a": PAGE,
        "https://a.example/#/docs/a?_ga=1": "https://a.example/#/docs/a",
        "https://a.example/x?_gl=1#!docs:~:text=a": "https://a.example/x#!docs",
        "https://a.example:443/x#id=7&gclid=2": "https://a.example/x#id=7",
        "https://user:secret@a.example/x": PAGE,
        "//user:p%40@@a.example/x": "//a.example/x",
        "https://a.example/@user": "https://a.example/@user",
        "HTTPS://A.Example/x": PAGE,
        "https://a.example/ä?q=ö": "https://a.example/%C3%A4?q=%C3%B6",
        "no url": "no%20url",
        "http://[::1": "http://[::1",
    }.items():
        assert canonical_url(url) == canonical


def test_a_url_full_of_tracking_parameters_is_done_in_a_moment() -> None:
    url = f"{PAGE}?" + "&".join(f"utm_{chr(97 + number % 26)}{'x' * (number // 26)}=1" for number in range(300))
    assert canonical_url(url) == PAGE


def test_every_tracking_parameter_is_removed() -> None:
    for name in (*TRACKING, *(f"{prefix}x" for prefix in TRACKING_PREFIXES)):
        assert canonical_url(f"{PAGE}?{name}=1&id=7&{name.upper()}=2") == f"{PAGE}?id=7"


@pytest.mark.parametrize(
    ("target", "url"),
    [
        ("/x?utm_source=a#b", PAGE),
        (" //www.a.example/x ", "https://www.a.example/x"),
        ("", "https://a.example/y?page=1"),
        ("http://[::1", ""),
        ("javascript:x", ""),
    ],
)
def test_the_url_of_a_link_is_joined_with_that_of_its_page(target: str, url: str) -> None:
    assert declared_name(target, "https://a.example/y?page=1") == url


@pytest.mark.parametrize(
    ("host", "site"),
    [
        ("www.b.co.uk", "b.co.uk"),
        ("NEWS.c.co.uk:443", "c.co.uk"),
        ("m.b.com", "b.com"),
        ("one.blogspot.com", "blogspot.com"),
        ("user@one.github.io", "github.io"),
        ("a.wiki.internal", "wiki.internal"),
        ("localhost:8000", "localhost"),
        ("co.uk", "co.uk"),
        ("[2001:db8::1]:80", "2001:db8::1"),
    ],
)
def test_a_site_is_what_its_owner_has_registered(host: str, site: str) -> None:
    assert site_of(f"https://{host}/x?y=z.example#a.b") == site


def test_odd_hosts_have_some_site_and_what_has_no_host_has_none() -> None:
    for host in ("a." * 2_000 + "example", "a" * 4_000, "..", "a..b", "\ud800.example", "*.ck", "\u00e9.de"):
        assert len(site_of(f"https://{host}/")) <= 253
    for url in ("", "no URL", "mailto:a@b.example", "https://[bad/", "file:///a/b"):
        assert site_of(url) == ""


def test_the_hash_of_a_site_is_that_of_all_its_hosts() -> None:
    hashes = {
        site_hash(f"https://{host}/{number}") for number, host in enumerate(("m.b.co.uk", "B.co.uk", "b.co.uk:81"))
    }
    assert [len(each) for each in hashes] == [SITE_BYTES]
    assert site_hash("https://c.co.uk/") not in hashes
    assert site_hash(None) == site_hash("") == site_hash("mailto:a@b.example") == b""
