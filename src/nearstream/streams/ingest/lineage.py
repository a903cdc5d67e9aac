"""The default lineage of a page: its URL in a canonical form."""

import re
from urllib.parse import unquote_plus, urljoin, urlsplit

from nearstream.schemas.documents.document import without_user

# A change of the rules gives pages another lineage, so it belongs in the changelog.
TRACKING = frozenset(
    {
        *("gclid", "gclsrc", "dclid", "gbraid", "wbraid", "gad_source", "gad_campaignid", "srsltid", "_gl", "_ga"),
        *("fbclid", "msclkid", "yclid", "_openstat", "igshid", "igsh", "ttclid", "twclid", "li_fat_id", "epik"),
        *("mc_cid", "mc_eid", "mkt_tok", "_hsenc", "_hsmi", "__hstc", "__hssc", "__hsfp", "hsctatracking"),
        *("vero_id", "vero_conv", "oly_anon_id", "oly_enc_id", "wickedid", "rb_clickid", "spm"),
        *("phpsessid", "jsessionid", "sessionid"),
    }
)
TRACKING_PREFIXES = ("utm_", "mtm_", "pk_", "aspsessionid")

_ROUNDS_MAX = 8
_PATH_SESSION = re.compile(r";(?:jsessionid|phpsessid)=[^/?#;]*", re.IGNORECASE)
_DEFAULT_PORT = re.compile(r"\A(?:(http://[^/?#]{1,300}):80|(https://[^/?#]{1,300}):443)(?=[/?#]|\Z)")


def canonical_url(url: str) -> str:
    """Return a URL in its canonical form, which is the default lineage.

    Percent-encoding, the case of the host and the order of the query are made uniform. User and password, default
    ports, tracking parameters, session ids, and a fragment that names a place in the page are removed. A text that
    cannot be parsed as a URL is returned as it is.
    """
    from w3lib.url import canonicalize_url  # on use, since it loads the clients of HTTP of the standard library

    url = without_user(url)
    try:
        for _ in range(_ROUNDS_MAX):  # what is removed may leave `..` in a path, or a tracking parameter behind another
            base, mark, fragment = str(canonicalize_url(url, keep_fragments=True)).partition("#")
            shorter = _without_tracking(base) + mark + _route(fragment)
            shorter = shorter.removesuffix("#")
            if shorter == url:
                break
            url = shorter
    except ValueError:
        pass
    return url


def _route(fragment: str) -> str:
    """Return the part of a fragment that chooses what a script shows, or an empty text."""
    fragment = fragment.partition(":~:")[0]  # which names words to be marked
    if fragment.startswith(("!", "/")):
        return _without_tracking(fragment) if fragment.strip("!/") else ""
    return "&".join(field for field in fragment.split("&") if not _is_tracking(field)) if "=" in fragment else ""


def joined_url(target: str, url: str) -> str:
    """Return the absolute URL of a link. Empty: the link leads to no page."""
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
