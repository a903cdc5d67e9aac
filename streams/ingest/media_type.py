"""The media type of a page, also if its server declares none, or one that is invalid."""

import re

HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
PAGE_TYPES = HTML_TYPES | {"text/plain"}
HTML_START = re.compile(
    rb"\A(?:\xef\xbb\xbf)?\s*+(?:<\?xml\b[^>]{0,200}>\s*+)?(?:<!--(?>.{0,4096}?-->)\s*+)*+"
    rb"(?:<!doctype html|<html)[\s>]",
    re.IGNORECASE | re.DOTALL,
)

_HEAD_BYTES = 64 * 1024
_VALID = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]{1,127}/[!#$%&'*+.^_`|~0-9a-z-]{1,127}")
_UNKNOWN = frozenset({"unknown/unknown", "application/unknown", "*/*"})  # as browsers, which then look at the content


def media_type_of(content_type: str, content: bytes) -> str:
    """Return the media type of a content, in lower case.

    Args:
        content_type: As the server sent it. Of several types the first one counts.
        content: If it begins like HTML and the type is invalid or unknown, its type is `text/html`.

    Returns:
        What was declared, even if it is invalid, for a content that does not begin like HTML.
    """
    declared = content_type.partition(";")[0].partition(",")[0].strip().lower()
    is_known = _VALID.fullmatch(declared) and declared not in _UNKNOWN
    return "text/html" if not is_known and HTML_START.match(content, 0, _HEAD_BYTES) else declared
