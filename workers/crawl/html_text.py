"""HTML to text, within bounds of size, nesting and time."""

import html as entities
import re
from typing import NamedTuple

from nearstream.workers.crawl.html_processes import HtmlProcesses

HTML_MAX_CHARACTERS = 2 * 1024 * 1024
EXTRACTION_FALLBACK = "extraction_fallback"

_MAX_DEPTH = 3_000
_TAG_NAME = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]{0,20})")
# They have no end tag, or parsers close them by themselves.
_UNCOUNTED = frozenset(
    [
        *(
            "area",
            "base",
            "br",
            "col",
            "embed",
            "hr",
            "img",
            "input",
            "link",
            "meta",
            "param",
            "source",
            "track",
            "wbr",
        ),
        *("p", "li", "dt", "dd", "tr", "td", "th", "thead", "tbody", "tfoot", "option", "optgroup", "colgroup"),
        *("html", "head", "body"),
    ]
)
# It stops at the next `<`, so that the time is linear. The last tag may have been cut off.
_TAG = re.compile(r"<[a-zA-Z/!?][^<>]*+(?:>|\Z)")
_SKIPPED = re.compile(r"<(?:(script|style|title)\b|!(--))", re.IGNORECASE)
_ENDS = {name: re.compile(f"</{name}", re.IGNORECASE) for name in ("script", "style", "title")}
_COMMENT_END = re.compile("-->")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,30});")


class HtmlText(NamedTuple):
    """The text of HTML.

    Attributes:
        text: The text, without markup.
        is_fallback: The tags were only stripped, so hidden text is in it.
    """

    text: str
    is_fallback: bool


def read_html(html: str, processes: HtmlProcesses) -> HtmlText:
    """Return the visible text of HTML.

    What is too large or too deeply nested for a parser, or takes it too long, has its tags stripped in linear time. So
    has everything without the extra `html`.

    Args:
        html: Any text. At most `HTML_MAX_CHARACTERS` are read.
        processes: Where Resiliparse runs. This call blocks until a process answers, so an event loop calls it from a
            thread.
    """
    text = None
    if len(html) <= HTML_MAX_CHARACTERS and processes.is_available() and not _is_too_deep(html):
        text = processes.text(html)
    if text is None:
        return HtmlText(strip_tags(html[:HTML_MAX_CHARACTERS]), is_fallback=True)
    return HtmlText(text, is_fallback=False)


def strip_tags(html: str) -> str:
    """Return HTML without tags, comments, scripts and styles, in linear time."""
    pieces, start = [], 0
    while skipped := _SKIPPED.search(html, start):
        pieces.append(html[start : skipped.start()])
        end = (_ENDS[skipped[1].lower()] if skipped[1] else _COMMENT_END).search(html, skipped.end())
        if end is None:
            break
        start = end.end() if skipped[2] else end.start()
    else:
        pieces.append(html[start:])
    text = _TAG.sub(" ", " ".join(pieces))
    return _ENTITY.sub(lambda entity: entities.unescape(entity[0]), text)


def _is_too_deep(html: str) -> bool:
    depth = 0
    for match in _TAG_NAME.finditer(html):
        if match[2].lower() not in _UNCOUNTED:
            depth = max(0, depth - 1) if match[1] else depth + 1
            if depth > _MAX_DEPTH:
                return True
    return False
