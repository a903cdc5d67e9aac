"""Find the charset of a web page, and decode it."""

import codecs
from collections.abc import Callable, Iterator

from w3lib.encoding import html_body_declared_encoding, http_content_type_encoding, read_bom

from nearstream.streams.ingest.parse import NOT_CHARSETS

CONTENT_TYPE_MAX_CHARACTERS = 256
_SAMPLE_BYTES = 64 * 1024


def decode_page(data: bytes, content_type: str, detect: Callable[[bytes], str | None]) -> tuple[str, bool]:
    """Decode the bytes of a web page.

    The charset is that of the byte order mark. Without one it is UTF-8 if the bytes are valid UTF-8 and not ASCII,
    whatever is declared, because a text in another charset is hardly ever valid UTF-8. Else it is the charset of the
    content type, else that of a meta element, if all bytes fit it, else the detected one.

    Args:
        data: The page.
        content_type: As the server sent it, with or without a charset.
        detect: Returns the charset that bytes seem to have, None if it is not known.

    Returns:
        The text, and whether characters were replaced because no charset fits.
    """
    mark_charset, mark = read_bom(data)
    if mark_charset is not None and mark is not None:
        return _replaced(data[len(mark) :], mark_charset)
    declared = list(_declared(data, content_type))
    for charset in [*_utf8_of(data), *declared]:
        try:
            return data.decode(charset), False
        except UnicodeDecodeError:
            pass
    detected = detect(data[:_SAMPLE_BYTES])
    usable = [charset for charset in (detected, *declared) if charset and _is_charset(charset)]
    return _replaced(data, usable[0] if usable else "utf-8")


def _utf8_of(data: bytes) -> Iterator[str]:
    """Yield UTF-8 if it is worth a try before what is declared."""
    if not data.isascii() and b"\0" not in data:
        yield "utf-8"


def _declared(data: bytes, content_type: str) -> Iterator[str]:
    """Yield the declared charsets. A page that declares none is tried as UTF-8."""
    of_header = http_content_type_encoding(content_type[:CONTENT_TYPE_MAX_CHARACTERS])
    of_page = html_body_declared_encoding(data)
    if of_page is not None and of_page.startswith(("utf-16", "utf-32")):
        of_page = None  # The declaration was read as ASCII, so it cannot be true.
    found = [charset for charset in (of_header, of_page) if charset and _is_charset(charset)]
    yield from found or ["utf-8"]


def _is_charset(name: str) -> bool:
    try:
        codec = codecs.lookup(name)
    except LookupError:
        return False
    # Python has codecs that turn bytes into bytes, which no decoding to text accepts.
    return codec.name not in NOT_CHARSETS and getattr(codec, "_is_text_encoding", True)


def _replaced(data: bytes, charset: str) -> tuple[str, bool]:
    try:
        return data.decode(charset), False
    except UnicodeDecodeError:
        return data.decode(charset, "replace"), True
