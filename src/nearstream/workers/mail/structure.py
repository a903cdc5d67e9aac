"""The parts of a message, also of one whose structure is broken."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from nearstream.workers.mail.headers import HEAD_MAX_BYTES, TEXT, UNKNOWN, Head, read_head, split_head
from nearstream.workers.mail.transfer import decode_transfer

STRUCTURE_REPAIRED = "structure_repaired"
PARSE_FALLBACK = "parse_fallback"
TRUNCATED = "truncated"

PARTS_MAX = 200
_LEVELS_MAX = 100
_LINES_MAX = 100_000  # that begin like a boundary of the part around them
_DECODED_MAX_BYTES = 32 * 1024 * 1024  # of messages that are encoded as a whole, together
_MESSAGES = frozenset({"message/rfc822", "message/global", "message/news", "message/partial"})
_CLOSE = re.compile(rb"(--)?[ \t]{0,32}+(?:\r\n|\n|\r|\Z)")
_GUESSED_WITHIN_BYTES = 256 * 1024
_LINE_START = rb"(?:\A|(?<=[\r\n]))"
# A line like a delimiter, with the header of a part below it, or with a blank line. Lines of dashes alone are none.
_GUESSES = tuple(
    re.compile(_LINE_START + rb"--(?=-{0,70}+[^\s-])([^\r\n]{1,200})(?:\r\n|\n|\r)" + below, re.IGNORECASE)
    for below in (rb"content-[a-z-]{1,30}[ \t]{0,8}+:", rb"[\r\n]")
)


class Part(NamedTuple):
    """A part of a message."""

    head: Head  # what its header says, or what is known better
    content: bytes = b""  # Its bytes as they were sent. Empty if it has parts.
    parts: tuple["Part", ...] = ()  # The parts of a multipart. A message within a message is its only part.


def read_structure(raw: bytes) -> tuple[Part, set[str]]:
    """Return a message as a part with parts, and what was wrong with it.

    That is `structure_repaired`, `parse_fallback` (below 100 levels, and behind a header of more than 256 KiB, all is
    text), or `truncated` (there are more parts than are read).

    Where a declared boundary is not used, the one that is used is looked for, and a multipart without parts is a text.
    The time is linear in the size of the message and in the depth of its parts, of which there are at most 100 levels.
    """
    splitting = _Splitting()
    root = splitting.part(raw, 0, len(raw), TEXT, 0)
    return root, splitting.degraded


class _Splitting:
    def __init__(self) -> None:
        self.degraded: set[str] = set()
        self._parts = PARTS_MAX
        self._lines = _LINES_MAX
        self._decoded = _DECODED_MAX_BYTES

    def part(self, data: bytes, start: int, end: int, default: str, level: int) -> Part:
        """Return the part that lies between two places, with the parts in it."""
        self._parts -= 1
        after, begin = split_head(data, start, end)
        is_open = start < after == begin < end  # a type may be in what is no field
        head = read_head(data[start:after], UNKNOWN if is_open and default == TEXT else default)
        self._note(STRUCTURE_REPAIRED, not head.is_valid)
        self._note(PARSE_FALLBACK, after - start >= HEAD_MAX_BYTES)
        is_multipart = head.kind.startswith("multipart/")
        if not is_multipart and head.kind not in _MESSAGES:
            return Part(head, data[begin:end])
        if level == _LEVELS_MAX:
            self.degraded.add(PARSE_FALLBACK)
            return Part(head._replace(kind=TEXT, encoding=""), data[begin:end])
        return (self._multipart if is_multipart else self._message)(head, data, begin, end, level)

    def _multipart(self, head: Head, data: bytes, start: int, end: int, level: int) -> Part:
        if head.encoding and not (head.boundary and self._pieces(data, start, end, head.boundary)):
            data = self._decode(data[start:end], head.encoding)
            start, end = 0, len(data)
        pieces = self._pieces(data, start, end, head.boundary) if head.boundary else []
        if not pieces:
            self.degraded.add(STRUCTURE_REPAIRED)
            boundary = _guessed_boundary(data, start, end)
            pieces = self._pieces(data, start, end, boundary) if boundary else []
        if not pieces:
            return Part(head._replace(kind=UNKNOWN), data[start:end])
        default = "message/rfc822" if head.kind == "multipart/digest" else TEXT
        parts = []
        for begin, stop in pieces:
            if self._parts <= 0:
                self.degraded.add(TRUNCATED)
                break
            parts.append(self.part(data, begin, stop, default, level + 1))
        return Part(head, parts=tuple(parts))

    def _message(self, head: Head, data: bytes, start: int, end: int, level: int) -> Part:
        if head.encoding:
            data = self._decode(data[start:end], head.encoding)
            start, end = 0, len(data)
        if self._parts <= 0:
            self.degraded.add(TRUNCATED)
            return Part(head)
        self._note(STRUCTURE_REPAIRED, head.kind != "message/rfc822")
        return Part(head, parts=(self.part(data, start, end, TEXT, level + 1),))

    def _note(self, reason: str, is_so: bool) -> None:
        self.degraded |= {reason} if is_so else set()

    def _decode(self, content: bytes, encoding: str) -> bytes:
        """Decode what should not be encoded, within a bound for all of a message."""
        if len(content) > self._decoded:
            self.degraded.add(TRUNCATED)
            return b""
        self._decoded -= len(content)
        return decode_transfer(content, encoding)[0]

    def _pieces(self, data: bytes, start: int, end: int, boundary: bytes) -> list[tuple[int, int]]:
        """Return where each part of a multipart begins and ends, at most one more than are read.

        Parts behind its end are read too: they are there where a multipart and one in it have one boundary.
        """
        pieces: list[tuple[int, int]] = []
        begin: int | None = None
        is_ended = False
        for line, after, is_last in self._delimiters(data, start, end, boundary):
            if begin is not None:
                pieces.append((begin, max(begin, line)))
            begin = None if is_last else after
            self._note(STRUCTURE_REPAIRED, is_ended and not is_last)
            is_ended |= is_last
            if len(pieces) > self._parts:
                break
        return pieces if begin is None else [*pieces, (begin, end)]

    def _delimiters(self, data: bytes, start: int, end: int, boundary: bytes) -> Iterator[tuple[int, int, bool]]:
        """Yield where the content before a delimiter ends, where that after it begins, and whether it is the last."""
        delimiter = b"--" + boundary
        newline = b"\n" if data.find(b"\n" + delimiter, start, end) >= 0 else b"\r"
        at: int | None = (
            start if data.startswith(delimiter, start, end) else _behind(data, newline, delimiter, start, end)
        )
        while at is not None:
            if self._lines <= 0:
                self.degraded.add(TRUNCATED)
                return
            self._lines -= 1
            if found := _CLOSE.match(data, at + len(delimiter), end):
                yield at - 1 - (data[at - 2 : at] == b"\r\n"), found.end(), bool(found[1])
            at = _behind(data, newline, delimiter, at + len(delimiter), end)


def _guessed_boundary(data: bytes, start: int, end: int) -> bytes:
    """Return the boundary that a multipart seems to use, or an empty one."""
    for guess in _GUESSES:
        found = guess.search(data, start, min(end, start + _GUESSED_WITHIN_BYTES))
        boundary = found[1].rstrip() if found else b""
        if boundary and (guess is _GUESSES[0] or data.find(b"--" + boundary + b"--", start, end) >= 0):
            return boundary
    return b""


def _behind(data: bytes, newline: bytes, delimiter: bytes, start: int, end: int) -> int | None:
    """Return where the next line begins that begins with a delimiter."""
    found = data.find(newline + delimiter, start, end)
    return None if found < 0 else found + len(newline)
