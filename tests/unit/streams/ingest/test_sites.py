"""Which hosts are one site: those below a name that an owner has registered."""

import pytest

from nearstream.streams.ingest.lineage import SITE_BYTES, site_hash, site_of


@pytest.mark.parametrize(
    ("host", "site"),
    [
        ("www.b.co.uk", "b.co.uk"),
        ("NEWS.c.co.uk:443", "c.co.uk"),
        ("a.b.com.au", "b.com.au"),
        ("m.b.com", "b.com"),
        ("one.blogspot.com", "blogspot.com"),
        ("user@one.github.io", "github.io"),
        ("xn--mnchen-3ya.de", "xn--mnchen-3ya.de"),
        ("a.wiki.internal", "wiki.internal"),
        ("localhost:8000", "localhost"),
        ("co.uk", "co.uk"),
        ("127.0.0.1:8000", "127.0.0.1"),
        ("[2001:db8::1]:80", "2001:db8::1"),
    ],
)
def test_a_site_is_what_its_owner_has_registered(host: str, site: str) -> None:
    assert site_of(f"https://{host}/x?y=z.example#a.b") == site


@pytest.mark.parametrize("url", ["", "no URL", "mailto:a@b.example", "https://[bad/", "file:///a/b"])
def test_what_has_no_host_has_no_site(url: str) -> None:
    assert site_of(url) == ""


def test_the_hash_of_a_site_is_that_of_all_its_hosts() -> None:
    hashes = {
        site_hash(f"https://{host}/{number}") for number, host in enumerate(("m.b.co.uk", "B.co.uk", "b.co.uk:81"))
    }
    assert [len(each) for each in hashes] == [SITE_BYTES]
    assert site_hash("https://c.co.uk/") not in hashes
    assert site_hash(None) == site_hash("") == site_hash("mailto:a@b.example") == b""


@pytest.mark.parametrize(
    "host", ["a." * 2_000 + "example", "a" * 4_000, "..", "a..b", "\ud800.example", "*.ck", "\u00e9.de"]
)
def test_odd_hosts_have_some_site(host: str) -> None:
    assert len(site_of(f"https://{host}/")) <= 253
