"""How good a URL is as the name of a page."""

import re
from collections.abc import Collection
from urllib.parse import parse_qsl, urlsplit

from nearstream.streams.deciding.states import Kept

# Parameters that name a visit and no page. Those that `canonical_url` removes are not here.
_VISIT = re.compile(
    r"(?:.{0,16}[_-])?(?:s|sess|session|visit|visitor|click|track|tracking|auth)[_-]?(?:id|key|token)?"
    r"|(?:.{0,16}[_-])?(?:sid|token|ref|referer|referrer|source|src|from|campaign|affiliate|aff|partner|cid|pk_.{1,16})",
    re.IGNORECASE,
)
_RANDOM = re.compile(r"(?=.{0,64}\d)(?=.{0,64}[a-z])[0-9a-z_-]{20,}", re.IGNORECASE)
_SESSION_IN_PATH = re.compile(r";[^/]{0,64}(?:sid|sess)[^/]{0,16}=|/\(S\([0-9a-z]+\)\)/", re.IGNORECASE)
_FORM = r"print|printable|printer|amp|mobile|mobil|m|text-only|textonly"
_EXTENSION = r"(?:\.[a-z]{2,5})?"
_FORM_OF_PATH = re.compile(rf"(?:{_FORM}){_EXTENSION}|.{{1,200}}[._-](?:print|printable|amp|mobile){_EXTENSION}")
_FORM_NAME = re.compile(rf"(?:{_FORM})(?:able|_?view|_?version)?")
_FORM_VALUE = re.compile(r"print|printable|printer|amp|mobile|text-only|textonly")


def form_of(url: str) -> tuple[bool, bool, int]:
    """Return a sort key of URLs as names of a page, the best first.

    A text that is no URL is a path.

    Returns:
        Whether the URL has a session id or a parameter of tracking, whether it is the print, AMP or mobile form of a
        page, and the length of its path with the query.
    """
    try:
        parts = urlsplit(url[:4096])
        query = parse_qsl(parts.query, keep_blank_values=True, max_num_fields=64)
    except ValueError:
        return True, False, len(url)
    has_visit = bool(_SESSION_IN_PATH.search(parts.path)) or any(_is_visit(*field) for field in query)
    labels = (parts.hostname or "").split(".")
    segments = [segment.lower() for segment in parts.path.split("/")]
    is_variant = (
        labels[0] in ("m", "amp", "mobile", "print")
        or any(_FORM_OF_PATH.fullmatch(segment) for segment in segments)
        or any(_is_form(name.lower(), value.lower()) for name, value in query)
    )
    return has_visit, is_variant, len(parts.path.rstrip("/")) + len(parts.query)


def is_proper(name: str, declared: str) -> bool:
    """Return whether neither its URL nor what it declares makes a page a variant."""
    return declared in ("", name) and form_of(name)[:2] == (False, False)


def rank(page: Kept, since_ms: int, declared: Collection[str]) -> tuple[bool, tuple[bool, bool, int], int, int, str]:
    """Return the sort key of pages with one content, the canonical one first.

    The lineages are those that pages with this content declare as canonical.
    """
    name = page.name
    url = name if "://" in name else page.address or name  # a page that others redirect to has the URL of one of them
    return name not in declared, form_of(url), since_ms, len(url), page.id


def _is_visit(name: str, value: str) -> bool:
    return bool(_VISIT.fullmatch(name) or _RANDOM.fullmatch(value))


def _is_form(name: str, value: str) -> bool:
    return bool(_FORM_NAME.fullmatch(name) or _FORM_VALUE.fullmatch(value))
