"""Undo the encodings of an HTTP response as a crawler has stored it.

The headers of a stored response often name encodings that it does not have, or not those that it has. So its first
bytes count, where they show the encoding, before what is declared.
"""

import re
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from io import BytesIO
from typing import NamedTuple

from nearstream.streams.ingest.media_type import is_binary

_GZIP, _ZSTD = b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd"
_GZIP_WBITS, _ZLIB_WBITS, _RAW_WBITS = 31, 15, -15
_NAMES = {"x-gzip": "gzip", "x-deflate": "deflate"}
_SHOWN = frozenset({"gzip", "zstd"})  # by so many bytes that no text begins so
_ENCODINGS_MAX = 8
_PIECE_BYTES = 1024  # of the piece in which a body ends too early, FastWARC gives nothing
_LAST_CHUNK = re.compile(rb"\r\n0\r\n(?:\r\n)?\Z")
_LAST_CHUNK_BYTES = 16
_CHUNK_LINE_BYTES = 1_100  # of the line before a chunk, with its extensions


class Body(NamedTuple):
    """The content of a response."""

    content: bytes  # its bytes
    is_cut_off: bool = False  # it ends before its encoding says


def undo(body: bytes, transfer: str, content: str, max_bytes: int) -> Body:
    """Return a body without its transfer and content encodings, as their headers declare these.

    What was stored without an encoding that is declared is left as it is. Without a declaration gzip is unpacked, and
    all chunks are joined if the last one is there. Unknown encodings are passed over. Of a content that is too long one
    byte more than `max_bytes` is unpacked.
    """
    is_cut_off = False
    if "chunked" not in transfer.lower():
        body = _all_chunks(body)
    declared = [name.strip() for name in f"{content},{transfer}".lower().split(",")[:_ENCODINGS_MAX]]
    for name in reversed(declared):
        found = _undone(body, _NAMES.get(name, name), max_bytes)
        body, is_cut_off = found.content, is_cut_off or found.is_cut_off
        if name in _READ and len(body) > max_bytes:
            return Body(body, is_cut_off)
    if body.startswith(_GZIP):
        found = _undone(body, "gzip", max_bytes)
        return Body(found.content, is_cut_off or found.is_cut_off)
    return Body(body, is_cut_off)


def _undone(body: bytes, name: str, max_bytes: int) -> Body:
    """Return a body without one encoding.

    The encodings that show in the first bytes are tried, then, if they are those of no text, the others.
    """
    if name == "chunked":
        return _dechunked(body)
    if name not in _READ or not body:
        return Body(body)
    declared = (name, "raw") if name == "deflate" else (name,)
    tried = [*_shown(body), *([*declared, "br", "raw"] if is_binary(body) else [])]
    for each in dict.fromkeys(tried):
        try:
            found = _READ[each](body, max_bytes)
        except (OSError, zlib.error):
            continue
        if each in _SHOWN or _is_likely(found, is_declared=each in declared):
            return found
    if is_binary(body):
        raise OSError("the body is damaged, or encoded in no known way")
    return Body(body)


def _is_likely(found: Body, *, is_declared: bool) -> bool:
    """Return whether a body can be what an encoding gives that its first bytes do not show."""
    return bool(found.content) and not is_binary(found.content) and (is_declared or not found.is_cut_off)


def _shown(body: bytes) -> list[str]:
    """Return the encoding that the first bytes of a body show, if they do."""
    has_zlib_header = body[0] & 0x0F == 8 and int.from_bytes(body[:2], "big") % 31 == 0
    return ["gzip"] * body.startswith(_GZIP) + ["zstd"] * body.startswith(_ZSTD) + ["deflate"] * has_zlib_header


def _dechunked(body: bytes) -> Body:
    pieces, at = list[bytes](), 0
    while chunk := _chunk_line(body[at : at + _CHUNK_LINE_BYTES]):
        size = int(chunk[1], 16)
        if not size:
            return Body(b"".join(pieces))
        start = at + chunk.end()
        end = start + size
        after = re.match(rb"\r?\n|\Z", body[end : end + 2])
        if after is None:
            break
        pieces.append(body[start:end])
        at = end + after.end()
        if end > len(body):
            break
    return Body(b"".join(pieces), is_cut_off=True) if pieces else Body(body)


def _all_chunks(body: bytes) -> bytes:
    """Return the chunks of a body if it consists of chunks alone, else the body."""
    found = _dechunked(body)
    return body if found.is_cut_off or not _LAST_CHUNK.search(body[-_LAST_CHUNK_BYTES:]) else found.content


def _chunk_line(data: bytes) -> re.Match[bytes] | None:
    return re.match(rb"([0-9a-fA-F]{1,8})[ \t]{0,64}(?:;[^\r\n]{0,1024})?\r?\n", data)


def _inflated(body: bytes, max_bytes: int, wbits: int) -> Body:
    """Unpack gzip, whose members follow each other, or deflate. What else follows is left out."""
    content = bytearray()
    while body:
        stream = zlib.decompressobj(wbits)
        content += stream.decompress(body, max_bytes + 1 - len(content))
        if not stream.eof or len(content) > max_bytes:
            return Body(bytes(content), is_cut_off=not stream.eof and len(content) <= max_bytes)
        if wbits == _RAW_WBITS and stream.unused_data:
            raise zlib.error("nothing follows what has no header and no checksum")
        body = stream.unused_data if stream.unused_data.startswith(_GZIP) else b""
    return Body(bytes(content))


def _from_reader(body: bytes, max_bytes: int, name: str) -> Body:
    from fastwarc.stream_io import BrotliReader, ZstdReader

    reader = {"br": BrotliReader, "zstd": ZstdReader}[name](BytesIO(body))
    content = bytearray()
    try:
        while len(content) <= max_bytes and (piece := reader.read(min(_PIECE_BYTES, max_bytes + 1 - len(content)))):
            content += piece
    except OSError:
        if not content:
            raise
        return Body(bytes(content), is_cut_off=True)
    return Body(bytes(content))


_READ: Mapping[str, Callable[[bytes, int], Body]] = {
    "gzip": partial(_inflated, wbits=_GZIP_WBITS),
    "deflate": partial(_inflated, wbits=_ZLIB_WBITS),
    "raw": partial(_inflated, wbits=_RAW_WBITS),
    "br": partial(_from_reader, name="br"),
    "zstd": partial(_from_reader, name="zstd"),
}
