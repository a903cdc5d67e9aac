"""Find the records of a WARC file, of which one at a time is held.

What follows a broken record is read.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

RECORD_MAX_BYTES = 8 * 1024 * 1024
END = b"\r\n\r\n"
LENGTH = re.compile(rb"^content-length[ \t]{0,8}:[ \t]{0,8}(\d{1,15})[ \t]{0,8}\r?$", re.IGNORECASE | re.MULTILINE)

_HEADER_MAX_BYTES = 64 * 1024
_START = re.compile(rb"WARC/[01]\.\d")
_HEADER_END = re.compile(rb"\r?\n\r?\n")
_NEXT = re.compile(rb"[\n\x00](?=WARC/[01]\.\d\r?\n)")  # files that were allotted in blocks have NUL between records
_NEXT_BYTES = 32  # the most bytes that `_NEXT` looks at
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


def split(pieces: Iterator[bytes]) -> Iterator[Record | Broken | PassedOver]:
    """Yield the records of a file.

    After a broken one the next line that begins a record is searched for.

    Args:
        pieces: The unpacked file.
    """
    buffer = _Buffer(pieces)
    while buffer.fill(1):
        while blank := len(buffer.data) - len(buffer.data.lstrip(b"\r\n")):
            buffer.drop(blank)
            buffer.fill(1)
        if not buffer.data:
            return
        offset = buffer.offset
        found = _next_record(buffer)
        if isinstance(found, str):
            yield Broken(offset, found)
            _drop_to_next(buffer)
        else:
            yield found


def _next_record(buffer: _Buffer) -> Record | PassedOver | str:
    """Take the record from the start of the buffer.

    A broken record is left there.

    Returns:
        What is wrong with it, for a broken record.
    """
    header = _header(buffer)
    if isinstance(header, str):
        return header
    if header.length > RECORD_MAX_BYTES:
        _drop_to_next(buffer)  # the length may be wrong
        return PassedOver("too_large")
    whole = header.size + header.length
    if not buffer.fill(whole):
        return "the record is cut off"
    buffer.fill(whole + len(END))
    if buffer.data[whole : whole + len(END)].strip(b"\r\n"):
        return "another Content-Length than its block has"
    data = header.as_warc + bytes(buffer.data[header.size : whole]) + END
    record = Record(buffer.offset, header.kind, data)
    buffer.drop(whole)
    return record


def _drop_to_next(buffer: _Buffer) -> None:
    """Drop everything before the next line that begins a record, at least one byte."""
    start = 1
    while not (found := _NEXT.search(buffer.data, start - 1)):
        start = max(1, len(buffer.data) - _NEXT_BYTES)
        if start > RECORD_MAX_BYTES:
            buffer.drop(start)
            start = 1
        if not buffer.fill(len(buffer.data) + 1):
            buffer.drop(len(buffer.data))
            return
    buffer.drop(found.end())


def _header(buffer: _Buffer) -> _Header | str:
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
