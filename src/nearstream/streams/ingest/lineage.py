"""The default lineage: the canonical form of a URL, under a list of rules."""

import re
from urllib.parse import unquote_plus, urljoin, urlsplit

# A change of the rules gives pages another lineage, so it belongs in the changelog.
TRACKING = frozenset(
    {
        *("gclid", "dclid", "gbraid", "wbraid", "fbclid", "msclkid", "yclid", "igshid", "mc_cid", "mc_eid"),
        *("phpsessid", "jsessionid", "sessionid"),
    }
)
TRACKING_PREFIXES = ("utm_", "aspsessionid")

_ROUNDS_MAX = 8
_PATH_SESSION = re.compile(r";(?:jsessionid|phpsessid)=[^/?#;]*", re.IGNORECASE)
_DEFAULT_PORT = re.compile(r"\A(?:(http://[^/?#]{1,300}):80|(https://[^/?#]{1,300}):443)(?=[/?#]|\Z)")


def canonical_url(url: str) -> str:
    """Return a URL in its canonical form, which is the default lineage.

    Percent-encoding, the case of the host and the order of the query are made uniform. The fragment, default ports,
    tracking parameters and session ids are removed. A text that cannot be parsed as a URL is returned as it is.
    """
    from w3lib.url import canonicalize_url  # on use, since it loads the clients of HTTP of the standard library

    try:
        for _ in range(_ROUNDS_MAX):  # what is removed may leave `..` in a path, or a tracking parameter behind another
            shorter = _without_tracking(str(canonicalize_url(url)))
            if shorter == url:
                break
            url = shorter
    except ValueError:
        pass
    return url


def joined_url(target: str, url: str) -> str:
    """Return the URL of a link on a page. Empty: it leads to no page.

    Args:
        target: As it is written in the page.
        url: Where the page was observed.
    """
    try:
        joined = urljoin(url, target.strip())
        return joined if urlsplit(joined).scheme in ("http", "https") else ""
    except ValueError:
        return ""


def host_of(url: str) -> str:
    """Return the host of a URL, without `www.`. Empty: it has none."""
    try:
        return _host(urlsplit(url).hostname)
    except ValueError:
        return ""


def _host(name: str | None) -> str:
    return (name or "").lower().removeprefix("www.")


def _without_tracking(url: str) -> str:
    base, mark, query = url.partition("?")
    base = _PATH_SESSION.sub("", base)
    kept = [field for field in query.split("&") if not _is_tracking(field)]
    port = _DEFAULT_PORT.match(base)
    if port:
        base = (port[1] or port[2]) + base[port.end() :]
    return base + mark + "&".join(kept) if any(kept) else base


def _is_tracking(field: str) -> bool:
    name = unquote_plus(field.partition("=")[0]).lower()
    return name in TRACKING or name.startswith(TRACKING_PREFIXES)
