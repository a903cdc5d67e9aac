"""The text of a message, and the parts that are no text."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from w3lib.encoding import html_body_declared_encoding

from nearstream.streams.fingerprints.plain_letters import without_fillers
from nearstream.streams.ingest.charset import decode
from nearstream.workers.crawl.html_processes import HtmlProcesses
from nearstream.workers.crawl.html_text import EXTRACTION_FALLBACK, read_html
from nearstream.workers.mail.headers import HTML, TEXT, UNKNOWN
from nearstream.workers.mail.structure import STRUCTURE_REPAIRED, TRUNCATED, Part, read_structure
from nearstream.workers.mail.transfer import decode_text

TEXT_MAX_BYTES = 1024 * 1024
ALTERNATIVES_DIFFER = "alternatives_differ"
CHARSET_REPLACED = "charset_replaced"

_CONTENT_MAX_BYTES = 8 * TEXT_MAX_BYTES  # of which no text of the most characters takes more, in any encoding
_XHTML = "application/xhtml+xml"
_SHOWN = frozenset({TEXT, HTML})
# Of these kinds mail programs show no text with the message.
_NOT_SHOWN = frozenset(
    f"text/{kind}"
    for kind in (
        *("calendar", "css", "csv", "directory", "javascript", "rfc822-headers", "rtf", "vcard", "watch-html"),
        *("x-amp-html", "x-vcalendar", "x-vcard", "xml"),
    )
)
_MARKED_UP = frozenset({"text/enriched", "text/richtext"})
# Programs call a text by other names, but these are no texts that a person reads.
_FOR_PROGRAMS = re.compile(
    r"application/(?!.*html).*(?:json|xml|script|rtf|pgp|pkcs|calendar|ics|sql|csv|sh|edi|latex|vcard|form)|(?!application/)"
)
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_BLANKS_MIN = 7  # of a text of 8 words
_BYTES_PER_WORD_MAX = 25  # of a text, which what is encrypted has not
_PARAMETER = re.compile(rb"<param>(?>[^<]{0,1000})</param>", re.IGNORECASE)
_COMPARED_BYTES = 16 * 1024  # of an alternative that is not shown
_WORD = re.compile(r"[^\W\d]{3,}")
_WORDS_MIN = 8
_LOOKED_AT_BYTES = 64 * 1024
_HTML = re.compile(
    rb"\A\s*+(?:<!doctype|<\?xml|<!--|<(?:html|head|body|meta|style|p|div|table|center|font|span|br|h[1-6])\b)"
    rb"|</(?:p|div|a|span|table|body|td|font|b|i|ul|h[1-6])\s*+>",
    re.IGNORECASE,
)
_INVISIBLE = dict.fromkeys([0xAD, *range(0x200B, 0x2010)])


class Body(NamedTuple):
    """What was read of a message."""

    text: str  # its text
    unread: tuple[Part, ...]  # its parts that are not in the text: attachments, pictures, what is encrypted
    links: tuple[str, ...] | None  # Addresses up to their host. None: it has HTML whose links were not read.
    degraded: frozenset[str]  # what was incomplete


def read_body(raw: bytes, html: HtmlProcesses) -> Body:
    """Return the text of a message, and what is not in it.

    Of alternatives the last one of HTML is read, or else the last one with a text, which is what mail programs show.
    Attachments are left out but for HTML, unless there is no other text: then the first one is read that is a text.
    """
    root, degraded = read_structure(raw)
    reading = _Reading(html, degraded)
    text = reading.read(root)
    if not text.strip():
        for part in sorted(reading.unread, key=lambda part: part.head.kind not in _SHOWN):
            if _may_be_text(part) and (text := reading.leaf(part)).strip():
                reading.degraded.add(STRUCTURE_REPAIRED)
                reading.unread.remove(part)
                break
    return Body(text, tuple(reading.unread), reading.links, frozenset(reading.degraded))


class _Reading:
    """The reading of one message, with what is left of its bounds."""

    def __init__(self, html: HtmlProcesses, degraded: set[str]) -> None:
        self.degraded = degraded
        self.unread: list[Part] = []
        self.links: tuple[str, ...] | None = ()
        self._html = html
        self._bytes = TEXT_MAX_BYTES

    def read(self, part: Part) -> str:
        """Return the text of a part and of the parts in it."""
        kind = part.head.kind
        if kind == "multipart/alternative":
            return self._best(part.parts)
        if part.parts:
            return "\n".join(text for inner in part.parts if (text := self.read(inner)))
        if not _is_text(part):
            self.unread.append(part)
            return ""
        return self.leaf(part)

    def leaf(self, part: Part) -> str:
        """Return the text of a part that has no parts."""
        if self._bytes <= 0:
            self.degraded.add(TRUNCATED)
            return ""
        if len(part.content) > _CONTENT_MAX_BYTES:
            self.degraded.add(TRUNCATED)
        content, is_repaired = decode_text(part.content[:_CONTENT_MAX_BYTES], part.head.encoding)
        kind = part.head.kind
        if kind in _MARKED_UP:
            content = _PARAMETER.sub(b"", content.replace(b"<<", b"&lt;"))
        is_html = kind in (HTML, _XHTML) or (kind != TEXT and _HTML.search(content, 0, _LOOKED_AT_BYTES) is not None)
        labels = [part.head.label, html_body_declared_encoding(content) or "" if is_html else ""]
        text, is_replaced = decode(content, labels)
        links: tuple[str, ...] | None = ()
        if is_html or kind in _MARKED_UP:
            text, links = read_html(text, self._html)
        self.links = None if self.links is None or links is None else self.links + links
        self.degraded |= {STRUCTURE_REPAIRED} if is_repaired or kind not in _SHOWN else set()
        self.degraded |= {CHARSET_REPLACED} if is_replaced else set()
        self.degraded |= {EXTRACTION_FALLBACK} if links is None else set()
        return self._taken(text)

    def _best(self, parts: Sequence[Part]) -> str:
        unread = len(self.unread)
        best, others = "", list(sorted(parts, key=_has_html))
        while others and not best.strip():
            best = self.read(others.pop())
        if best.strip():
            del self.unread[unread:]
            if any(_says_other(best, part) for part in others):
                self.degraded.add(ALTERNATIVES_DIFFER)
        return best

    def _taken(self, text: str) -> str:
        beginning = text[: self._bytes]  # of which nothing more is needed, and to look at all of it takes long
        visible = without_fillers(beginning.translate(_INVISIBLE))
        taken = _cut(visible, self._bytes)
        if len(beginning) < len(text) or len(taken) < len(visible):
            self.degraded.add(TRUNCATED)
        self._bytes -= len(taken.encode("utf-8", "replace")) + 1
        return taken


def _has_html(part: Part) -> bool:
    return part.head.kind == HTML or any(map(_has_html, part.parts))


def _says_other(best: str, part: Part) -> bool:
    """Return whether most words of a plain text are not in the text of another alternative."""
    if part.head.kind != TEXT or part.parts:
        return False
    content, _ = decode_text(part.content[:_COMPARED_BYTES], part.head.encoding)
    words = set(_WORD.findall(decode(content, [part.head.label]).text.lower()))
    return len(words) >= _WORDS_MIN and 2 * len(words.intersection(_WORD.findall(best.lower()))) < len(words)


def _is_text(part: Part) -> bool:
    """Return whether mail programs show a part as a text, or open it as a page."""
    kind = part.head.kind
    if part.head.is_attachment:
        return kind in (HTML, _XHTML)
    if kind in _SHOWN or kind == UNKNOWN:
        return True
    return not part.head.is_named and (kind == _XHTML or (kind.startswith("text/") and kind not in _NOT_SHOWN))


def _may_be_text(part: Part) -> bool:
    """Return whether a part that is not shown with a message is a text, where there is no other."""
    kind = part.head.kind
    if kind.startswith("text/"):
        return kind not in _NOT_SHOWN
    if _FOR_PROGRAMS.match(kind):
        return False
    beginning, _ = decode_text(part.content[:_LOOKED_AT_BYTES], part.head.encoding)
    blanks = beginning.count(b" ")
    return not _BINARY.search(beginning) and blanks >= max(_BLANKS_MIN, len(beginning) / _BYTES_PER_WORD_MAX)


def _cut(text: str, max_bytes: int) -> str:
    if 4 * len(text) <= max_bytes:
        return text
    return text.encode("utf-8", "replace")[:max_bytes].decode("utf-8", "ignore")
