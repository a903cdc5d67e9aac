"""Find the records of a WARC or ARC file, of which one at a time is held.

What follows a broken record is read.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from nearstream.workers.crawl import arc

RECORD_MAX_BYTES = 8 * 1024 * 1024
END = b"\r\n\r\n"
LENGTH = re.compile(rb"^content-length[ \t]{0,8}:[ \t]{0,8}(\d{1,15})[ \t]{0,8}\r?$", re.IGNORECASE | re.MULTILINE)

_HEADER_MAX_BYTES = 64 * 1024
_START = re.compile(rb"WARC/[01]\.\d")
_HEADER_END = re.compile(rb"\r?\n\r?\n")
_NEXT = re.compile(rb"[\n\x00](?=WARC/[01]\.\d\r?\n)")  # files that were allotted in blocks have NUL between records
_TYPE = re.compile(rb"^warc-type[ \t]{0,8}:[ \t]{0,8}([a-z]{1,20})", re.IGNORECASE | re.MULTILINE)


class Record(NamedTuple):
    """A record as WARC stores it.

    Attributes:
        offset: Byte of the unpacked file at which it begins.
        kind: Its type, in lower case.
        data: Its header and its block.
    """

    offset: int
    kind: bytes
    data: bytes


class Broken(NamedTuple):
    """A record that cannot be read.

    Attributes:
        offset: Byte of the unpacked file at which it begins.
        reason: What is wrong with it.
    """

    offset: int
    reason: str


class PassedOver(NamedTuple):
    """A record that holds no page to send.

    Attributes:
        reason: `revisit`, `no_response` (requests, metadata), `http_status`, `media_type`, `empty` or `too_large`.
    """

    reason: str


class _Header(NamedTuple):
    """The header of a record.

    Attributes:
        size: Its bytes in the file.
        length: Bytes of the block.
        kind: The type of the record.
        as_warc: The header as WARC has it.
    """

    size: int
    length: int
    kind: bytes
    as_warc: bytes


class _Buffer:
    """The part of a file that has been read and is still needed.

    Attributes:
        offset: Byte of the file at which the part begins.
        data: The part.
    """

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self.offset = 0
        self.data = bytearray()
        self._pieces = pieces

    def fill(self, size: int) -> bool:
        """Read until the part has at least this many bytes.

        Returns:
            Whether the file has that many.
        """
        while len(self.data) < size:
            piece = next(self._pieces, None)
            if piece is None:
                return False
            self.data += piece
        return True

    def drop(self, size: int) -> None:
        """Forget the first bytes of the part."""
        del self.data[:size]
        self.offset += size


class _Format(NamedTuple):
    """How records follow each other in a file.

    Attributes:
        header: Returns the header at the start of a part, or what is wrong with it.
        next: The end of a line, where the next one begins a record.
        line_bytes: The most bytes that `next` looks at.
        end_bytes: How many bytes after a block are ends of lines.
    """

    header: Callable[[_Buffer], _Header | str]
    next: re.Pattern[bytes]
    line_bytes: int
    end_bytes: int


def split(pieces: Iterator[bytes]) -> Iterator[Record | Broken | PassedOver]:
    """Yield the records of a file.

    After a broken one the next line that begins a record is searched for.

    Args:
        pieces: The unpacked file.
    """
    buffer = _Buffer(pieces)
    buffer.fill(arc.HEADER_MAX_BYTES)
    file_format = _ARC if arc.begins(bytes(buffer.data[: arc.HEADER_MAX_BYTES])) else _WARC
    while buffer.fill(1):
        while blank := len(buffer.data) - len(buffer.data.lstrip(b"\r\n")):
            buffer.drop(blank)
            buffer.fill(1)
        if not buffer.data:
            return
        offset = buffer.offset
        found = _next_record(buffer, file_format)
        if isinstance(found, str):
            yield Broken(offset, found)
            _drop_to_next(buffer, file_format)
        else:
            yield found


def _next_record(buffer: _Buffer, file_format: _Format) -> Record | PassedOver | str:
    """Take the record from the start of the buffer.

    A broken record is left there.

    Returns:
        What is wrong with it, for a broken record.
    """
    header = file_format.header(buffer)
    if isinstance(header, str):
        return header
    if header.length > RECORD_MAX_BYTES:
        _drop_to_next(buffer, file_format)  # the length may be wrong
        return PassedOver("too_large")
    whole = header.size + header.length
    if not buffer.fill(whole):
        return "the record is cut off"
    buffer.fill(whole + file_format.end_bytes)
    if buffer.data[whole : whole + file_format.end_bytes].strip(b"\r\n"):
        return "another Content-Length than its block has"
    data = header.as_warc + bytes(buffer.data[header.size : whole]) + END
    record = Record(buffer.offset, header.kind, data)
    buffer.drop(whole)
    return record


def _drop_to_next(buffer: _Buffer, file_format: _Format) -> None:
    """Drop everything before the next line that begins a record, at least one byte."""
    start = 1
    while not (found := file_format.next.search(buffer.data, start - 1)):
        start = max(1, len(buffer.data) - file_format.line_bytes)
        if start > RECORD_MAX_BYTES:
            buffer.drop(start)
            start = 1
        if not buffer.fill(len(buffer.data) + 1):
            buffer.drop(len(buffer.data))
            return
    buffer.drop(found.end())


def _warc_header(buffer: _Buffer) -> _Header | str:
    end = None
    for size in (4_096, _HEADER_MAX_BYTES):
        buffer.fill(size)
        end = end or _HEADER_END.search(buffer.data, 0, size)
    if end is None or not _START.match(buffer.data):
        return "expected the header of a WARC record"
    header = bytes(buffer.data[: end.end()])
    length, kind = LENGTH.search(header), _TYPE.search(header)
    if length is None or kind is None:
        return "expected Content-Length and WARC-Type"
    return _Header(len(header), int(length[1]), kind[1].lower(), header.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))


def _arc_header(buffer: _Buffer) -> _Header | str:
    buffer.fill(arc.HEADER_MAX_BYTES)
    header = arc.read_header(bytes(buffer.data[: arc.HEADER_MAX_BYTES]))
    if header is None:
        return "expected the header of an ARC record"
    as_warc = b"".join(b"%s: %s\r\n" % field for field in header.fields)
    return _Header(header.size, header.length, header.fields[0][1], b"WARC/1.0\r\n" + as_warc + b"\r\n")


_WARC = _Format(_warc_header, _NEXT, line_bytes=32, end_bytes=len(END))
_ARC = _Format(_arc_header, arc.NEXT, line_bytes=arc.HEADER_MAX_BYTES, end_bytes=1)
