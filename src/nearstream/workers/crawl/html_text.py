"""HTML to text, within bounds of size and time."""

import html as entities
import re
from collections.abc import Iterator

from nearstream.workers.crawl.html_processes import HtmlProcesses

HTML_MAX_CHARACTERS = 2 * 1024 * 1024
EXTRACTION_FALLBACK = "extraction_fallback"

_PIECE_CHARACTERS = 128 * 1024
_PATTERN_CHARACTERS = 16  # more than any match of a pattern that is searched for, with the character after it
# A tag as browsers read it, with `>` and `<` in quotes, and a bound of attributes, because each takes 100 bytes.
_IN_TAG = r"""[a-zA-Z/!?](?>(?:[^>=]*+=\s*+(?>(?:"[^"]*+"|'[^']*+')?)){0,500000})[^>=]*+>?+"""
_COMMENT = "!--(?:-?>|[^-]{0,200}+--!?>)"  # a plain one
_TAG = re.compile(f"<(?:{_COMMENT}|{_IN_TAG})")
# Elements that hold no tags until their own end, of which only some are seen.
_RAW = "script|style|title|textarea|xmp|iframe|noembed|noframes"
_UNSEEN = frozenset(["script", "style", "title"])
_NAME_END = r"(?![^\s/>])"
_NAMES = re.IGNORECASE | re.ASCII
_ENDS = {name: re.compile(f"</{name}{_NAME_END}", _NAMES) for name in _RAW.split("|")}
_APART = re.compile(f"<(?:({_RAW}){_NAME_END}|!--)", _NAMES)
_XML = re.compile(r"\s{0,64}<\?xml\b")  # in which elements end by `/>`
_COMMENT_END = re.compile("--!?>")
# Text and tags until the next comment or element of these, in bounded pieces, because other threads wait for each.
_MARKUP = re.compile(
    f"(?>(?:[^<]++|<(?:{_COMMENT}|(?!!--|(?:{_RAW}){_NAME_END})(?>(?:{_IN_TAG})?))){{1,1000}})", _NAMES
)
# Longer values hold no text. They are pictures, fonts and paths of drawings.
_LONG_CHARACTERS = 4_096
_ATTRIBUTE = re.compile(r"""(?<![\w-])([\w-]++)\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s"'>]++)""")
_BLANKS = re.compile(r"\s{64,}+")
_SHOWN_VALUES = frozenset(["placeholder", "srcdoc", "value"])
_LONG_RUN = re.compile(rf"""(?<![^\s"'(){{}};])[^\s"'(){{}};]{{{_LONG_CHARACTERS},}}+""")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,30});")


def read_html(html: str, processes: HtmlProcesses) -> tuple[str, tuple[str, ...] | None]:
    """Return the visible text of HTML, and where its links lead.

    There are no links but None if the tags were only stripped, so that hidden text is in the text. That is done in
    linear time with what is too large for a parser, or takes it too long, as deep nesting does, and with everything
    without the extra `html`. This call blocks until a process answers, so an event loop calls it from a thread.
    """
    parsable = for_parser(html) if processes.is_available() else None
    found = None if parsable is None else processes.text(parsable)
    return found or (strip_tags(html), None)


def for_parser(html: str) -> str | None:
    """Return HTML for a parser, or None if it is too large.

    HTML of more than 2 Mi characters loses its comments and scripts, and long values in its styles and attributes.
    """
    if len(html) > HTML_MAX_CHARACTERS:
        html = "".join(_shortened(name, piece) for name, piece in _pieces_apart(html))
    return None if len(html) > HTML_MAX_CHARACTERS else html


def strip_tags(html: str) -> str:
    """Return HTML without tags, comments, scripts and styles, in linear time."""
    return "".join(
        _ENTITY.sub(lambda entity: entities.unescape(entity[0]), _TAG.sub(" ", piece, 1 if name else 0))
        for name, piece in _pieces_apart(html)
        if name not in _UNSEEN
    )


def _pieces_apart(html: str) -> Iterator[tuple[str, str]]:
    """Yield pieces of HTML, and the name of an element that holds no tags.

    Long comments are left out. Without an end they reach to the end of the HTML, as in a browser.
    """
    at, is_xml = 0, _XML.match(html) is not None
    while at < len(html):
        start, name = at, ""
        if markup := _MARKUP.match(html, start):
            at = markup.end()
            yield "", markup[0]
        elif (tag := _APART.match(html, start)) and tag[1]:
            name, tag = tag[1].lower(), _TAG.match(html, start) or tag
            is_empty = is_xml and tag[0].endswith("/>")
            end = None if is_empty else _search(_ENDS[name], html, tag.end())
            at = tag.end() if is_empty else end.start() if end else len(html)
            yield name, html[start:at]
        else:
            end = _search(_COMMENT_END, html, start + 2)  # `<!-->` is a comment too
            at = end.end() if end else len(html)
            yield "", "<!---->"


def _shortened(name: str, piece: str) -> str:
    """Return a piece of HTML without what is long and holds no text."""
    if not name:
        piece = _BLANKS.sub("\n", piece)
        return _TAG.sub(lambda tag: tag[0] if len(tag[0]) < _LONG_CHARACTERS else _ATTRIBUTE.sub(_short, tag[0]), piece)
    return "" if name == "script" else _LONG_RUN.sub("", piece) if name == "style" else piece


def _short(attribute: re.Match[str]) -> str:
    is_long = len(attribute[0]) >= _LONG_CHARACTERS and attribute[1].lower() not in _SHOWN_VALUES
    return f"{attribute[1]}=''" if is_long else attribute[0]


def _search(pattern: re.Pattern[str], html: str, start: int) -> re.Match[str] | None:
    """Search for a short pattern, piece by piece, because other threads wait while a regex searches."""
    for at in range(start, len(html), _PIECE_CHARACTERS):
        found = pattern.search(html, at, at + _PIECE_CHARACTERS + _PATTERN_CHARACTERS)
        if found and found.start() < at + _PIECE_CHARACTERS:
            return found
    return None
