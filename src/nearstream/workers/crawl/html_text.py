"""HTML to text, within bounds of size, nesting and time."""

import html as entities
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate
from operator import sub

import numpy as np

from nearstream.workers.crawl.html_processes import HtmlProcesses

HTML_MAX_CHARACTERS = 2 * 1024 * 1024
EXTRACTION_FALLBACK = "extraction_fallback"

_MAX_DEPTH = 3_000
_PIECE_CHARACTERS = 128 * 1024
_COUNTED_BYTES = 16 * 1024
_PATTERN_CHARACTERS = 16  # more than any match of a pattern that is searched for, with the character after it
_CHANGES_MAX = 10_000
_TAG_NAME = re.compile(r"<(/?[a-zA-Z][a-zA-Z0-9]{0,20})")
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
# Both stop at the next `<`, so that the time is linear.
_TAG = re.compile(r"<[a-zA-Z/!?][^<>]*+>")
_CUT_TAG = re.compile(r"<[a-zA-Z/!?][^<>]*+\Z")
_SKIPPED = re.compile(r"<(?:(script|style|title)\b|!(--))", re.IGNORECASE)
_ENDS = {name: re.compile(f"</{name}", re.IGNORECASE) for name in ("script", "style", "title")}
_COMMENT_END = re.compile("-->")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,30});")


def read_html(html: str, processes: HtmlProcesses) -> tuple[str, bool]:
    """Return the visible text of HTML, and whether its tags were only stripped, so that hidden text is in it.

    That is done in linear time with what is too large or too deeply nested for a parser, or takes it too long, and with
    everything without the extra `html`. This call blocks until a process answers, so an event loop calls it from a
    thread.
    """
    text = processes.text(html) if processes.is_available() and is_parsable(html) else None
    if text is None:
        return strip_tags(html[:HTML_MAX_CHARACTERS]), True
    return text, False


def is_parsable(html: str) -> bool:
    """Return whether HTML is small and flat enough for a parser."""
    return len(html) <= HTML_MAX_CHARACTERS and not _is_too_deep(html)


def strip_tags(html: str) -> str:
    """Return HTML without tags, comments, scripts and styles, in linear time."""
    pieces, start = [], 0
    while skipped := _search(_SKIPPED, html, start):
        pieces.append(html[start : skipped.start()])
        end = _search(_ENDS[skipped[1].lower()] if skipped[1] else _COMMENT_END, html, skipped.end())
        if end is None:
            break
        start = end.end() if skipped[2] else end.start()
    else:
        pieces.append(html[start:])
    return "".join(
        _ENTITY.sub(lambda entity: entities.unescape(entity[0]), _TAG.sub(" ", piece))
        for piece in _pieces(_without_cut_tag(" ".join(pieces)))
    )


def _without_cut_tag(html: str) -> str:
    """Return HTML without a last tag that has no end, because the HTML was cut off."""
    last = html.rfind("<")
    return html[:last] + " " if last >= 0 and _CUT_TAG.match(html, last) else html


def _search(pattern: re.Pattern[str], html: str, start: int) -> re.Match[str] | None:
    """Search for a short pattern, piece by piece, because other threads wait while a regex searches."""
    for at in range(start, len(html), _PIECE_CHARACTERS):
        found = pattern.search(html, at, at + _PIECE_CHARACTERS + _PATTERN_CHARACTERS)
        if found and found.start() < at + _PIECE_CHARACTERS:
            return found
    return None


def _pieces(html: str) -> Iterator[str]:
    """Yield HTML in pieces that begin with a tag, so that other threads run between them."""
    start = 0
    while start < len(html):
        end = html.find("<", start + _PIECE_CHARACTERS)
        end = len(html) if end < 0 else end
        yield html[start:end]
        start = end


def _is_too_deep(html: str) -> bool:
    """Return whether more than `_MAX_DEPTH` elements are open at one place."""
    if _depth_at_most(html) <= _MAX_DEPTH:
        return False
    depth = lowest = 0
    for piece in _pieces(html):
        depths = list(accumulate(map(_change, _TAG_NAME.findall(piece)), initial=depth))
        lows = list(accumulate(depths, min, initial=lowest))[1:]  # an end tag without a start tag closes nothing
        if max(map(sub, depths, lows)) > _MAX_DEPTH:
            return True
        depth, lowest = depths[-1], lows[-1]
    return False


def _depth_at_most(html: str) -> int:
    """Return an upper bound of how many elements are open at once.

    It holds if each end tag closes an element. A page may hide its depth by end tags that close nothing. Its parser
    then takes too long, and is killed. To count the tags of pieces takes a small part of the time of finding each tag.
    """
    characters = np.frombuffer(html.encode("utf-8", "replace"), np.uint8)
    depth = most = 0
    for start in range(0, len(characters), _COUNTED_BYTES):
        piece = characters[start : start + _COUNTED_BYTES + 1]  # with the character after a last `<`
        tags = piece == ord("<")
        ends = int(np.count_nonzero(tags[:-1] & (piece[1:] == ord("/"))))
        starts = int(np.count_nonzero(tags[:_COUNTED_BYTES])) - ends
        most = max(most, depth + starts)
        depth = max(depth - ends, 0) + starts
    return most


@lru_cache(_CHANGES_MAX)
def _change(tag: str) -> int:
    """Return by how much the depth changes at a tag, such as `div` or `/div`."""
    is_counted = tag.removeprefix("/").lower() not in _UNCOUNTED
    return is_counted * (-1 if tag.startswith("/") else 1)
