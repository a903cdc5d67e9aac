"""The site of a page: the hosts that belong to one owner."""

import re
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from nearstream.streams.ingest.lineage import host_of

if TYPE_CHECKING:
    from tldextract import TLDExtract

_ADDRESS = re.compile(r"[0-9.]{1,256}|[^/]{0,256}:[^/]{0,256}")


def site_of(url: str) -> str:
    """Return the part of a host that its owner has registered.

    Of a URL at `www.b.co.uk` it is `b.co.uk`.
    The names under which others register are those of the public suffix list in tldextract, which needs no network.
    Hosts of a platform, such as `a.blogspot.com`, are one site, because their pages have one frame. Where no such name
    is known, or without the extra `crawl`, the last two labels of the host are returned.

    Returns:
        An address for a host that is one. Empty: the URL has no host.
    """
    host = host_of(url)
    if _ADDRESS.fullmatch(host):
        return host
    registered = _list().extract_str(host).top_domain_under_public_suffix if _is_installed() else ""
    return registered or ".".join(host.split(".")[-2:])


@cache
def _is_installed() -> bool:
    return find_spec("tldextract") is not None


@cache
def _list() -> "TLDExtract":
    from tldextract import TLDExtract

    return TLDExtract(cache_dir=None, suffix_list_urls=())
