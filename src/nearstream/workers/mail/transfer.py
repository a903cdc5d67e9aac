"""Transfer encodings of mail: what is really sent under their names, decoded alike by every Python."""

import binascii
import re
from collections.abc import Iterator

_PIECES_MAX = 10_000
_BLOCK_BYTES = 256 * 1024  # which are decoded without letting others run
_ALPHABET = b"=+/ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_URL_ALPHABET = _ALPHABET.translate(None, b"+/") + b"-_"  # RFC 4648, section 5
_OF_URL = bytes.maketrans(b"-_", b"+/")
_BASE64_LINES = re.compile(rb"(?>(?:[ \t]*+(?:[A-Za-z0-9+/=]++[ \t]*+(?:\r\n|\n|\r|\Z)|(?:\r\n|\n|\r))){1,1000})")
_NO_BASE64 = bytes({*range(256)} - {*_ALPHABET})
_MARKED_MAX_BYTES = 1024 * 1024  # which take 30 ms
_MARKED = rb"(?:\A|(?<=[\r\n]))[> \t]{0,16}+([A-Za-z0-9+/]{40,}+=*+)!?(?:[ \t]*+)(?:\r\n|\n|\r|\Z)"
_BASE64_LINE = re.compile(_MARKED)  # also quoted, or with what some programs write where they break a long line
# With the last line, which is shorter.
_LAST = rb"(?:[A-Za-z0-9+/]{4}){0,9}[A-Za-z0-9+/]{2}(?:[A-Za-z0-9+/]{2}|[A-Za-z0-9+/]=|==)"
_MARKED_LINES = re.compile(_MARKED + rb"(?:[> \t]{0,16}+(" + _LAST + rb")!?(?=[\r\n]|\Z))?")
_BLANKS = b" \t\r\n"
_TRAILING = re.compile(rb"(?<![ \t])[ \t]++(?=\n)")
_LOOKED_AT_BYTES = 64 * 1024
_UNSOUND_MAX_BYTES = 1024 * 1024  # which are decoded in some 15 ms
# Lines that only base64 has.
_LOOKS_BASE64 = re.compile(rb"\A\s*+(?>(?:[A-Za-z0-9+/]{60,76}+\r?\n){2,})(?:[A-Za-z0-9+/]*+=*+)?\s*+")
_ESCAPE = re.compile(rb"=(?:[0-9A-F]{2}|[ \t]{0,8}\r?\n|[0-9A-F]?\r?\Z)")
_TELLING = re.compile(rb"=(?:[89A-F][0-9A-F]|[ \t]{0,8}\r?\n)")


Transferred = tuple[bytes, bool]  # decoded bytes, and whether they were not encoded as their encoding asks for


def decode_transfer(content: bytes, encoding: str) -> Transferred:
    """Return the content of a part without its transfer encoding. All bytes are decoded somehow."""
    if encoding == "base64":
        return _of_base64(content)
    if encoding == "quoted-printable":
        return _of_quoted(content), False
    return content, False


def decode_blocks(content: bytes, encoding: str) -> Iterator[bytes]:
    """Yield the content of a part without base64 or quoted-printable, in blocks if it is large.

    Of large base64 that is not encoded soundly all characters are left. Empty blocks come too, after which a caller
    that has no time left can stop.
    """
    if encoding == "quoted-printable":
        yield from map(_of_quoted_block, _blocks(content))
        return
    compact = bytearray()
    for start in range(0, len(content), _BLOCK_BYTES):
        compact += content[start : start + _BLOCK_BYTES].translate(None, _BLANKS)
        yield b""
    end = len(compact) - (2 if compact.endswith(b"==") else compact.endswith(b"="))
    starts = range(0, end, _BLOCK_BYTES)  # four characters of base64 are three bytes
    for start in starts:
        if compact[start : min(start + _BLOCK_BYTES, end)].translate(None, _ALPHABET[1:]):
            yield bytes(compact) if len(content) > _UNSOUND_MAX_BYTES else _of_base64(content)[0]
            return
        yield b""
    yield from (_whole(compact[start : min(start + _BLOCK_BYTES, end)]) for start in starts)


def decode_text(content: bytes, encoding: str) -> Transferred:
    """Return the content of a text without its transfer encoding, which may be another than the declared one."""
    beginning = content[:_LOOKED_AT_BYTES]
    if encoding == "quoted-printable" and _LOOKS_BASE64.fullmatch(beginning):
        return _of_base64(content)[0], True
    if not encoding:
        if _LOOKS_BASE64.fullmatch(beginning):
            return _of_base64(content)[0], True
        if content.isascii() and _TELLING.search(beginning) and b"=" not in _ESCAPE.sub(b"", beginning):
            return _of_quoted(content), True
    return decode_transfer(content, encoding)


def _of_base64(content: bytes) -> Transferred:
    """Decode base64, perhaps in several pieces that are padded each, with junk between lines or a text behind them.

    Programs of mailing lists append their footers to encoded texts too.
    """
    compact = content.translate(None, _BLANKS)
    if not compact.translate(None, _ALPHABET):
        return _pieces(compact), False
    if not compact.translate(None, _URL_ALPHABET):
        return _pieces(compact.translate(_OF_URL)), True
    end = _end_of_base64(content)
    if _BASE64_LINE.search(content, end, end + _LOOKED_AT_BYTES):
        return _of_marked(content), True
    if not end:
        return decode_text(content, "")[0], True
    return _pieces(content[:end].translate(None, _BLANKS)) + b"\n" + content[end:], True


def _of_marked(content: bytes) -> bytes:
    """Decode the lines of base64 among others, which follow the decoded text."""
    if len(content) > _MARKED_MAX_BYTES:
        return _pieces(content.translate(None, _NO_BASE64))
    encoded, others = list[bytes](), list[bytes]()
    for block in _blocks(content):
        between = _MARKED_LINES.split(block)
        others += between[::3]
        encoded += (line for pair in zip(between[1::3], between[2::3], strict=True) for line in pair if line)
    rest = b"".join(others).strip()
    return _pieces(b"".join(encoded)) + b"\n" * bool(rest) + rest


def _end_of_base64(content: bytes) -> int:
    """Return where the lines of base64 at the start of a content end."""
    end = 0
    while lines := _BASE64_LINES.match(content, end):
        end = lines.end()
    return end


def _pieces(compact: bytes) -> bytes:
    compact = compact.rstrip(b"=")
    if b"=" not in compact:  # a search by an expression takes four times as long as all else
        return _whole(compact)
    *pieces, rest = re.split(rb"=++", compact, maxsplit=_PIECES_MAX)
    return b"".join(_whole(piece) for piece in (*pieces, rest.translate(None, b"=")))


def _whole(piece: bytes | bytearray) -> bytes:
    piece = piece[: len(piece) - (len(piece) % 4 == 1)]
    return binascii.a2b_base64(piece + b"=" * (-len(piece) % 4))


def _of_quoted(content: bytes) -> bytes:
    return b"".join(_of_quoted_block(block) for block in _blocks(content))


def _of_quoted_block(block: bytes) -> bytes:
    block = block.replace(b"\r\n", b"\n").replace(b"=\r", b"=\n")  # behind a bare one Python leaves out all of the line
    if b" \n" in block or b"\t\n" in block:
        # Blanks at the end of a line were added on the way, and hide that its break is none.
        block = _TRAILING.sub(b"", block)
    return binascii.a2b_qp(block)


def _blocks(content: bytes) -> Iterator[bytes]:
    """Yield blocks of a content, which end with a line where there are lines, and never within an escape."""
    start = 0
    while start < len(content):
        end = start + _BLOCK_BYTES
        if end < len(content):
            newline, escape = content.rfind(b"\n", start, end), content.rfind(b"=", end - 2, end)
            end = newline + 1 if newline >= 0 else escape if escape > start else end
        yield content[start:end]
        start = end
