"""Split JSON Lines and JSON arrays into the bytes of their documents, without parsing these."""

import re
from collections.abc import Iterator

from nearstream.workers.files.content import DOCUMENT_MAX_BYTES, UnreadableFileError

# A backslash without the character that it escapes matches neither, because that is in the next piece.
_INSIDE_STRING = re.compile(rb'(?>(?:[^"\\]++|\\.){1,1000})|"', re.DOTALL)
_OUTSIDE_STRING = re.compile(rb'[][{},"]|[^][{},"]++')
_STEPS = {b"{": 1, b"[": 1, b"}": -1, b"]": -1}


def split_lines(pieces: Iterator[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield each line that is not blank, with its number from 1.

    Of a line longer than `DOCUMENT_MAX_BYTES` only the beginning is kept.
    """
    number, line = 1, bytearray()
    for piece in pieces:
        *ended, rest = piece.split(b"\n")
        for part in ended:
            _extend(line, part)
            if value := line.strip():
                yield number, bytes(value)
            line.clear()
            number += 1
        _extend(line, rest)
    if value := line.strip():
        yield number, bytes(value)


def split_values(pieces: Iterator[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield each value of a JSON array, or of JSON values in succession, with the line where it begins.

    Only brackets and quotation marks are looked at, so a value that closes its own is split from the next one even if
    it is no JSON. A missing or additional comma is ignored. Of a value longer than `DOCUMENT_MAX_BYTES` only the
    beginning is kept.

    Raises:
        UnreadableFileError: After the last value: the array is not closed.
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
