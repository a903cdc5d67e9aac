"""The text of a message, within bounds of its size, its parts and the work of parsing it."""

from collections.abc import Iterator, Sequence
from email.message import Message
from email.parser import BytesParser
from email.policy import compat32
from typing import cast

from w3lib.encoding import html_body_declared_encoding

from nearstream.streams.ingest.charset import decode
from nearstream.workers.crawl.html_processes import HtmlProcesses
from nearstream.workers.crawl.html_text import EXTRACTION_FALLBACK, read_html

HEADERS_MAX_BYTES = 256 * 1024
TEXT_MAX_BYTES = 1024 * 1024
CHARSET_REPLACED = "charset_replaced"
PARSE_FALLBACK = "parse_fallback"
TRUNCATED = "truncated"

_PLAIN, _HTML = "text/plain", "text/html"
_BOUNDARIES_MAX = 100
_PARTS_MAX = 200
_LINES_MAX = 300_000  # 16 MiB in lines of base64 have 220,000
_LINE_TESTS_MAX = 3_000_000  # the parser compares each line with the boundary of every part around it
_LONG_FIELDS_MAX = 200
# The parser takes quadratic time for the parameters of these headers, so few may be long and none very long.
_FIELDS = (b"content-type", b"content-disposition")
_LONG, _VERY_LONG = 256, 2_048  # bytes of a field
_FIELDS_MAX = 5_000  # occurrences that are looked at, and a message with more is not parsed
_BLANKS = b" \t"
_INVISIBLE = dict.fromkeys([0xAD, *range(0x200B, 0x2010)])


def split_headers(raw: bytes) -> tuple[bytes, bytes]:
    """Return the header block of a message, and its body."""
    if raw[:1] in (b"\n", b"\r"):
        return b"", raw
    # An expression would hold the interpreter while it searches, and `find` is a hundred times faster.
    ends = [(at, at + len(blank)) for blank in (b"\n\n", b"\n\r\n", b"\r\r") if (at := raw.find(blank)) >= 0]
    _, end = min(ends, default=(0, len(raw)))
    return raw[:end], raw[end:]


def read_text(raw: bytes, html: HtmlProcesses) -> tuple[str, tuple[str, ...]]:
    """Return the text of a message, and what was incomplete about reading it.

    Of alternatives the last one with a text is read, which is what mail programs show. Attachments are left out. A
    message that cannot be parsed within the bounds has its raw body as text.

    Args:
        raw: The message.
        html: Where HTML parts become text.
    """
    head, body = split_headers(raw)
    reading = _Reading(html)
    if len(head) <= HEADERS_MAX_BYTES and _is_bounded(raw):
        try:
            text = reading.read(BytesParser(policy=compat32).parsebytes(raw))
            return text, tuple(sorted(reading.degraded))
        except (RecursionError, LookupError, ValueError):
            pass
    return _raw_text(body)


def _raw_text(body: bytes) -> tuple[str, tuple[str, ...]]:
    text = _cut(body[:TEXT_MAX_BYTES].decode("latin-1").translate(_INVISIBLE), TEXT_MAX_BYTES)
    is_cut = len(text) < len(body)
    return text, (PARSE_FALLBACK, TRUNCATED) if is_cut else (PARSE_FALLBACK,)


def _is_bounded(raw: bytes) -> bool:
    """Return whether the work of parsing a message has a small bound."""
    lower = raw.lower()
    boundaries = _boundaries(lower)
    lines = raw.count(b"\n") + raw.count(b"\r") - raw.count(b"\r\n")
    return (
        boundaries <= _BOUNDARIES_MAX
        and lines <= _LINES_MAX
        and lines * (1 + boundaries) <= _LINE_TESTS_MAX
        and _has_short_fields(lower)
    )


def _boundaries(lower: bytes) -> int:
    """Return how many boundaries a message may declare, which is too many where the word occurs too often."""
    found = 0
    for number, at in enumerate(_places(lower, b"boundary")):
        if number == _FIELDS_MAX:
            return _BOUNDARIES_MAX + 1
        after = lower[at + len(b"boundary") : at + len(b"boundary") + 21]
        found += after.lstrip(b"*0123456789 \t").startswith(b"=")
    return found


def _has_short_fields(lower: bytes) -> bool:
    long = looked_at = 0
    for name in _FIELDS:
        for at in _places(lower, name):
            looked_at += 1
            size = _field_size(lower, at, at + len(name))
            long += size >= _LONG
            if size >= _VERY_LONG or long > _LONG_FIELDS_MAX or looked_at > _FIELDS_MAX:
                return False
    return True


def _field_size(lower: bytes, start: int, colon: int) -> int:
    """Return how long the field is that may begin here, with its folded lines, at most `_VERY_LONG`.

    Args:
        lower: The message in lower case.
        start: Where its name begins.
        colon: Where its name ends.
    """
    end = start + _VERY_LONG
    if not lower[colon : colon + 21].lstrip(_BLANKS).startswith(b":"):
        return 0
    at = colon
    while True:
        feed, back = lower.find(b"\n", at, end), lower.find(b"\r", at, end)
        stops = [stop for stop in (feed, back) if stop >= 0]
        if not stops:
            return min(len(lower), end) - start
        stop = min(stops)
        after = stop + 2 if lower[stop : stop + 2] == b"\r\n" else stop + 1
        if not lower[after : after + 1] or lower[after] not in _BLANKS:
            return stop - start
        at = after


def _places(text: bytes, word: bytes) -> Iterator[int]:
    at = text.find(word)
    while at >= 0:
        yield at
        at = text.find(word, at + len(word))


class _Reading:
    """The reading of one message: what is left of its bounds, and what was incomplete."""

    def __init__(self, html: HtmlProcesses) -> None:
        self.degraded: set[str] = set()
        self._html = html
        self._parts = _PARTS_MAX
        self._bytes = TEXT_MAX_BYTES

    def read(self, part: Message) -> str:
        """Return the text of a part and of the parts in it."""
        if self._parts <= 0 or self._bytes <= 0:
            self.degraded.add(TRUNCATED)
            return ""
        self._parts -= 1
        kind = part.get_content_type()
        if part.is_multipart():
            if part.get_content_maintype() == "message" and kind != "message/rfc822":
                return ""  # a report of delivery has only headers
            inner = cast(Sequence[Message], part.get_payload())  # which is a list of messages, since it is multipart
            return self._best(inner) if kind == "multipart/alternative" else self._joined(inner)
        if kind not in (_PLAIN, _HTML) or part.get_content_disposition() == "attachment":
            return ""
        text = self._decoded(part, kind)
        if kind == _HTML:
            text, is_fallback = read_html(text, self._html)
            self.degraded |= {EXTRACTION_FALLBACK} if is_fallback else set()
        return self._taken(text)

    def _joined(self, parts: Sequence[Message]) -> str:
        texts = []
        for part in parts:
            texts.append(self.read(part))
            if TRUNCATED in self.degraded:
                break
        return "\n".join(text for text in texts if text)

    def _best(self, parts: Sequence[Message]) -> str:
        return next((text for part in reversed(parts) if (text := self.read(part)).strip()), "")

    def _decoded(self, part: Message, kind: str) -> str:
        payload = part.get_payload(decode=True)
        data = payload if isinstance(payload, bytes) else b""
        labels = [part.get_content_charset() or "", html_body_declared_encoding(data) or "" if kind == _HTML else ""]
        text, is_replaced = decode(data, labels)
        if is_replaced:
            self.degraded.add(CHARSET_REPLACED)
        return text

    def _taken(self, text: str) -> str:
        beginning = text[: self._bytes]  # of which nothing more is needed, and to look at all of it takes long
        visible = beginning.translate(_INVISIBLE)
        taken = _cut(visible, self._bytes)
        if len(beginning) < len(text) or len(taken) < len(visible):
            self.degraded.add(TRUNCATED)
        self._bytes -= len(taken.encode("utf-8", "replace")) + 1
        return taken


def _cut(text: str, max_bytes: int) -> str:
    """Return the beginning of a text that has at most so many bytes of UTF-8."""
    if 4 * len(text) <= max_bytes:
        return text
    return text.encode("utf-8", "replace")[:max_bytes].decode("utf-8", "ignore")
