"""Which hosts are one site: those below a name that an owner has registered."""

import pytest

from nearstream.workers.crawl import sites
from nearstream.workers.crawl.sites import site_of


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


def test_without_the_list_the_last_two_labels_are_the_site(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sites, "_is_installed", lambda: False)
    found = [site_of(f"https://{host}/") for host in ("m.b.com", "www.b.co.uk", "10.0.0.1")]
    assert found == ["b.com", "co.uk", "10.0.0.1"]
