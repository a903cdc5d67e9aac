"""The default lineage: the canonical form of a URL, under a versioned list of rules."""

import re
from urllib.parse import unquote_plus, urljoin, urlsplit

from w3lib.url import canonicalize_url

# A change of the rules gives pages another lineage, so it is a new version and belongs in the changelog.
URL_RULES = 2
TRACKING = frozenset(
    {
        *("gclid", "dclid", "gbraid", "wbraid", "fbclid", "msclkid", "yclid", "igshid", "mc_cid", "mc_eid"),
        *("phpsessid", "jsessionid", "sessionid"),
    }
)
TRACKING_PREFIXES = ("utm_", "aspsessionid")

_HEAD_CHARACTERS = 64 * 1024
_ROUNDS_MAX = 8
_PATH_SESSION = re.compile(r";(?:jsessionid|phpsessid)=[^/?#;]*", re.IGNORECASE)
_DEFAULT_PORT = re.compile(r"\A(?:(http://[^/?#]{1,300}):80|(https://[^/?#]{1,300}):443)(?=[/?#]|\Z)")
_LINK = re.compile(r"<link\s([^<>]{1,4096})>", re.IGNORECASE)
_HEAD_END = re.compile(r"</head\s*>|<body[\s>]", re.IGNORECASE)
_REL = re.compile(r"""(?<![-\w])rel\s{0,8}=\s{0,8}(["']?)\s{0,8}canonical\s{0,8}\1(?=[\s/]|$)""", re.IGNORECASE)
_HREF = re.compile(
    r"""(?<![-\w])href\s{0,8}=\s{0,8}(?:"([^"]{1,4096})"|'([^']{1,4096})'|([^\s"'>]{1,4096}))""", re.IGNORECASE
)


def canonical_url(url: str) -> str:
    """Return a URL in its canonical form, which is the default lineage.

    Percent-encoding, the case of the host and the order of the query are made uniform. The fragment, default ports,
    tracking parameters and session ids are removed. A text that cannot be parsed as a URL is returned as it is.
    """
    try:
        for _ in range(_ROUNDS_MAX):  # what is removed may leave `..` in a path, or a tracking parameter behind another
            shorter = _without_tracking(str(canonicalize_url(url)))
            if shorter == url:
                break
            url = shorter
    except ValueError:
        pass
    return url


def declared_url(html: str | bytes, url: str) -> str | None:
    """Return the canonical form of the URL that a page declares by `rel=canonical`.

    Args:
        html: The page, of which the head is read.
        url: Where it was observed.

    Returns:
        None if the page declares none, or one on another host, which others may own, or the start of its own host,
        which sites declare by mistake.
    """
    head = html[:_HEAD_CHARACTERS]
    text = head.decode("utf-8", "replace") if isinstance(head, bytes) else head
    end = _HEAD_END.search(text)
    for link in _LINK.finditer(text, 0, end.start() if end else len(text)):
        target = _HREF.search(link[1])
        if target and _REL.search(link[1]):
            return _trusted(next(filter(None, target.groups())), url)
    return None


def _trusted(target: str, url: str) -> str | None:
    try:
        declared = canonical_url(urljoin(url, target.strip().replace("&amp;", "&")))
        theirs, ours = urlsplit(declared), urlsplit(url)
    except ValueError:
        return None
    is_start = theirs.path in ("", "/") and not theirs.query and ours.path not in ("", "/")
    return declared if _host(theirs.hostname) == _host(ours.hostname) and not is_start else None


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
