"""The site of a page: the hosts that belong to one owner."""

import re
from functools import cache, lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING

from nearstream.streams.ingest.lineage import host_of

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList

SITE_BYTES = 8  # of the hash of a site
_ADDRESS = re.compile(r"[0-9.]{1,256}|[^/]{0,256}:[^/]{0,256}")
_HOST_CHARACTERS = 253


def site_of(url: str) -> str:
    """Return the part of a host that its owner has registered.

    Of a URL at `www.b.co.uk` it is `b.co.uk`. The names under which others register are those of the public suffix list
    in publicsuffixlist, which needs no network. Hosts of a platform, such as `a.blogspot.com`, are one site, because
    their pages have one frame. Where no such name is known, the last two labels of the host are returned.

    Returns:
        An address for a host that is one. Empty: the URL has no host.
    """
    return _site_of_host(host_of(url)[-_HOST_CHARACTERS:])


def site_hash(url: str | None) -> bytes:
    """Return a hash of the site of a URL, empty if it has none."""
    site = site_of(url) if url else ""
    return blake2b(site.encode("utf-8", "surrogatepass"), digest_size=SITE_BYTES).digest() if site else b""


@lru_cache(4_096)
def _site_of_host(host: str) -> str:
    if _ADDRESS.fullmatch(host):
        return host
    return _list().privatesuffix(host) or ".".join(host.split(".")[-2:])


@cache
def _list() -> "PublicSuffixList":
    from publicsuffixlist import PublicSuffixList  # it takes some time

    return PublicSuffixList(only_icann=True)
