"""Which of several pages with one content is to be read: its canonical page."""

import re
from collections.abc import Collection
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

from nearstream.schemas.documents.evidence import DocumentRef
from nearstream.streams.deciding.states import name_of

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


class UrlForm(NamedTuple):
    """How good a URL is as the name of a page, the best first.

    Attributes:
        has_visit: It has a session id, or a parameter of tracking.
        is_variant: It is the print, AMP or mobile form of a page.
        characters: Length of its path with the query.
    """

    has_visit: bool
    is_variant: bool
    characters: int


def form_of(url: str) -> UrlForm:
    """Return the form of a URL. A text that is no URL is a path."""
    try:
        parts = urlsplit(url[:4096])
        query = parse_qsl(parts.query, keep_blank_values=True, max_num_fields=64)
    except ValueError:
        return UrlForm(True, False, len(url))
    has_visit = bool(_SESSION_IN_PATH.search(parts.path)) or any(_is_visit(*field) for field in query)
    labels = (parts.hostname or "").split(".")
    segments = [segment.lower() for segment in parts.path.split("/")]
    is_variant = (
        labels[0] in ("m", "amp", "mobile", "print")
        or any(_FORM_OF_PATH.fullmatch(segment) for segment in segments)
        or any(_is_form(name.lower(), value.lower()) for name, value in query)
    )
    return UrlForm(has_visit, is_variant, len(parts.path.rstrip("/")) + len(parts.query))


def rank(ref: DocumentRef, declared: Collection[str]) -> tuple[bool, UrlForm, float, int, str]:
    """Return the sort key of pages with one content, the canonical one first.

    Args:
        ref: The page.
        declared: The lineages that pages with this content declare as canonical.
    """
    name = name_of(ref)
    url = name if "://" in name else ref.url or name  # a page that others redirect to has the URL of one of them
    return name_of(ref) not in declared, form_of(url), ref.observed_at.timestamp(), len(url), ref.id


def _is_visit(name: str, value: str) -> bool:
    return bool(_VISIT.fullmatch(name) or _RANDOM.fullmatch(value))


def _is_form(name: str, value: str) -> bool:
    return bool(_FORM_NAME.fullmatch(name) or _FORM_VALUE.fullmatch(value))
