"""Read the content of a file in pieces, unpacked and in UTF-8, and split JSON into the bytes of its documents."""

import codecs
import gzip
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from io import BufferedReader
from itertools import chain
from typing import IO, cast

from nearstream.streams.ingest.parse import INFLATED_MAX_BYTES, INFLATED_MAX_RATIO

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PIECE_BYTES = 64 * 1024
# A longer document is refused anyway, so no more of one is ever held.
DOCUMENT_MAX_BYTES = 8 * 1024 * 1024
_PART_MAX_BYTES = 36 * 1024 * 1024  # of a line with its end: more than a mail may have is refused anyway
PACKED_SUFFIXES = (".gz", ".gzip", ".zst", ".zstd")

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPABLE = b"\x2a\x4d\x18"  # after a byte from 0x50 to 0x5f
START_BYTES = 4  # of the longest mark of a compression or an encoding
# The mark of UTF-32-LE begins with that of UTF-16-LE, so it is tried first.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (codecs.BOM_UTF8, "utf-8"),
)
# A backslash without the character that it escapes matches neither, because that is in the next piece.
_INSIDE_STRING = re.compile(rb'(?>(?:[^"\\]++|\\.){1,1000})|"', re.DOTALL)
_OUTSIDE_STRING = re.compile(rb'[][{},"]|[^][{},"]++')
_STEPS = {b"{": 1, b"[": 1, b"}": -1, b"]": -1}


class UnreadableFileError(Exception):
    """The file holds no documents that can be read, or none from some place on."""


@dataclass
class _Stored:
    stream: BufferedReader  # the rest of the file
    start: bytes  # what was read of the stream to recognise it
    count: int = 0  # bytes read by the decompressor so far

    def read(self, size: int) -> bytes:
        """Read `size` bytes, or fewer at the end."""
        data, self.start = self.start[:size], self.start[size:]
        data += self.stream.read(size - len(data))
        self.count += len(data)
        return data


def read_pieces(stream: BufferedReader, name: str) -> Iterator[bytes]:
    """Yield the content of a file in pieces, unpacked, in UTF-8, with its mark.

    Gzip and zstd are recognised by their first bytes, UTF-16 and UTF-32 by their byte order mark. What arrives through
    a pipe that is not compressed is yielded as soon as it arrives. A file whose name has a suffix of `PACKED_SUFFIXES`
    has to be compressed.
    """
    start = stream.read(START_BYTES)
    if packing := packing_of(start):
        return _in_utf8(_unpacked(_Stored(stream, start), packing))
    if name.lower().endswith(PACKED_SUFFIXES):
        raise UnreadableFileError("expected gzip or zstd, as the name says")
    return _in_utf8(chain([start], iter(partial(stream.read1, PIECE_BYTES), b"")))


def packing_of(start: bytes) -> str:
    """Return `gzip` or `zstd` for the first 4 bytes of a compressed file, else nothing."""
    if start.startswith(_GZIP):
        return "gzip"
    is_skippable = start[1:] == _ZSTD_SKIPPABLE and 0x50 <= start[0] <= 0x5F
    return "zstd" if start == _ZSTD or is_skippable else ""


def with_head(pieces: Iterator[bytes], is_enough: Callable[[bytearray], bool]) -> tuple[bytes, Iterator[bytes]]:
    """Return the beginning of a content, as soon as it is enough, and the whole content.

    If the content breaks off, what precedes is the beginning, and the whole content raises the error.
    """
    head = bytearray()
    try:
        for piece in pieces:
            head += piece
            if is_enough(head):
                break
    except UnreadableFileError as error:
        if not head:
            raise
        pieces = _fail(error)
    return bytes(head), chain([bytes(head)], pieces)


def _fail(error: UnreadableFileError) -> Iterator[bytes]:
    yield b""
    raise error


def _unpacked(stored: _Stored, packing: str) -> Iterator[bytes]:
    """Decompress a stream, which may have several members or frames.

    Only a piece is held at a time, so a limit on the expansion bounds the work that a small file can cause.
    """
    total = 0
    try:
        # Both only call `read` when they read on from the start, but their types ask for more.
        file = cast(IO[bytes], stored)
        with gzip.GzipFile(fileobj=file) if packing == "gzip" else zstd.ZstdFile(file) as stream:
            while piece := stream.read1(PIECE_BYTES):
                total += len(piece)
                if total > max(INFLATED_MAX_BYTES, INFLATED_MAX_RATIO * stored.count):
                    raise UnreadableFileError(
                        f"the {packing} stream expands to more than {INFLATED_MAX_RATIO} times its size. If this is "
                        "right, unpack it and send it through a pipe"
                    )
                yield piece
    except EOFError:
        raise UnreadableFileError(f"the {packing} stream is cut off") from None
    except gzip.BadGzipFile:  # its text quotes bytes of the file
        raise UnreadableFileError("the gzip stream is damaged, or something else follows it") from None
    except (zlib.error, zstd.ZstdError) as error:
        needs_dictionary = "dictionary" in str(error).lower()
        wrong = "needs a dictionary: unpack it with zstd -d -D" if needs_dictionary else f"is damaged ({error})"
        raise UnreadableFileError(f"the {packing} stream {wrong}") from None


def _in_utf8(pieces: Iterator[bytes]) -> Iterator[bytes]:
    start, pieces = with_head(pieces, lambda head: len(head) >= START_BYTES)
    for mark, encoding in _BYTE_ORDER_MARKS:
        if start.startswith(mark):
            next(pieces)
            return chain([codecs.BOM_UTF8], _decoded(chain([start.removeprefix(mark)], pieces), encoding))
    return pieces


def _decoded(pieces: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    if encoding == "utf-8":
        yield from pieces
        return
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        for piece in pieces:
            yield decoder.decode(piece).encode()
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        raise UnreadableFileError(f"expected {encoding} as its byte order mark says") from None


def lines_with_ends(content: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of a content with their ends, and a very long line in pieces."""
    rest = bytearray()
    for piece in content:
        first, *others = piece.split(b"\n")
        rest += first
        for other in others:
            yield bytes(rest) + b"\n"
            rest = bytearray(other)
        if len(rest) > _PART_MAX_BYTES:
            yield bytes(rest)
            rest = bytearray()
    if rest:
        yield bytes(rest)


def split_lines(pieces: Iterator[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield each line that is not blank without its line feed, with its number from 1.

    Of a line longer than `DOCUMENT_MAX_BYTES` only the beginning is kept.
    """
    number, line = 1, bytearray()
    for piece in pieces:
        *ended, rest = piece.split(b"\n")
        for part in ended:
            _extend(line, part)
            if line.strip():
                yield number, bytes(line)
            line.clear()
            number += 1
        _extend(line, rest)
    if line.strip():
        yield number, bytes(line)


def split_values(pieces: Iterator[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield each value of a JSON array, or of JSON values in succession, with the line where it begins.

    Only brackets and quotation marks are looked at, so a value that closes its own is split from the next one even if
    it is no JSON. A missing or additional comma is ignored. Of a value longer than `DOCUMENT_MAX_BYTES` only the
    beginning is kept.
    """
    array_line = 0
    tokens = _tokens(pieces)
    for line, token, step in tokens:
        if token == b"[" and not array_line:
            array_line = line
        elif token == b"]" and array_line:
            array_line = 0
        elif token != b"," and token.strip():
            yield line, _rest_of_value(token, step, tokens)
    if array_line:
        raise UnreadableFileError(f"the array that begins in line {array_line} is not closed")


def _rest_of_value(token: bytes, depth: int, tokens: Iterator[tuple[int, bytes, int]]) -> bytes:
    value = bytearray(token)
    while depth > 0 and (following := next(tokens, None)):
        _, token, step = following
        _extend(value, token)
        depth += step
    return bytes(value.strip())


def _tokens(pieces: Iterator[bytes]) -> Iterator[tuple[int, bytes, int]]:
    """Split JSON at brackets, commas and quotation marks.

    Yields:
        The line of a token, its bytes, and by how much the depth changes with it. Strings count like brackets.
    """
    line, is_string, rest = 1, False, b""
    for piece in pieces:
        part, at = rest + piece, 0
        while match := (_INSIDE_STRING if is_string else _OUTSIDE_STRING).match(part, at):
            token, at = match[0], match.end()
            if token == b'"':
                step = -1 if is_string else 1
                is_string = not is_string
            else:
                step = 0 if is_string else _STEPS.get(token, 0)
            yield line, token, step
            line += token.count(b"\n")
        rest = part[at:]
    if rest:
        yield line, rest, 0


def _extend(kept: bytearray, more: bytes) -> None:
    kept += more[: DOCUMENT_MAX_BYTES - len(kept)]
