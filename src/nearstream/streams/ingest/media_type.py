"""The media type of a page, also if its server declares none, or one that is invalid."""

import re
from collections import Counter

HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
PAGE_TYPES = HTML_TYPES | {"text/plain"}
HTML_START = re.compile(
    rb"\A(?:\xef\xbb\xbf)?\s*+(?:<\?xml\b[^>]{0,200}>\s*+)?(?>(?:<!--(?>.{0,4096}?-->)\s*+)*)"
    rb"(?:<!doctype html|<html)[\s>]",
    re.IGNORECASE | re.DOTALL,
)

# How contents begin that are no text, and what to do about them.
_FORMATS = (
    (b"%PDF-", "binary (PDF): send its text"),
    (b"PK\x03\x04", "binary (zip archive or office document): send its text"),
    (b"\xd0\xcf\x11\xe0", "binary (office document or Outlook message): send its text"),
    (b"\x89PNG\r\n", "binary (PNG image)"),
    (b"\xff\xd8\xff", "binary (JPEG image)"),
    (b"GIF87a", "binary (GIF image)"),
    (b"GIF89a", "binary (GIF image)"),
    (b"\x1f\x8b", "binary (compressed twice): unpack it first"),
    (b"\x28\xb5\x2f\xfd", "binary (compressed twice): unpack it first"),
    (b"\x04\x22\x4d\x18", "binary (lz4): unpack it first"),
    (b"\xfd7zXZ", "binary (xz): unpack it first"),
    (b"7z\xbc\xaf", "binary (7z archive): unpack it first"),
)
_BZIP2_START = re.compile(rb"BZh[1-9]1AY&SY")
_HEAD_BYTES = 64 * 1024
_SAMPLE_BYTES = 1024
# No text has them, after https://mimesniff.spec.whatwg.org/#binary-data-byte. Here it may shift in and out.
_NO_TEXT_BYTES = bytes({*range(9), 0x0B, *range(0x10, 0x1B), *range(0x1C, 0x20)})
_SHORT_BYTES = 16
_NO_TEXT_SHARE = 0.02  # a tenth of the bytes of what is compressed
_WIDE_SHARE = 0.08  # such letters as of Polish have any lower byte
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
_VALID = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]{1,127}/[!#$%&'*+.^_`|~0-9a-z-]{1,127}")
_UNKNOWN = frozenset({"unknown/unknown", "application/unknown", "*/*"})  # as browsers, which then look at the content


def media_type_of(content_type: str, content: bytes) -> str:
    """Return the media type of a content, in lower case.

    Of several declared types the first one counts. If the type is invalid or unknown, a content that begins like HTML
    is `text/html`, and any other one is what was declared.
    """
    declared = content_type.partition(";")[0].partition(",")[0].strip().lower()
    is_known = _VALID.fullmatch(declared) and declared not in _UNKNOWN
    return "text/html" if not is_known and HTML_START.match(content, 0, _HEAD_BYTES) else declared


def binary_format(content: bytes) -> str:
    """Return which format a content has that is no text, and what to do about it. Empty: it has none of those known."""
    if _BZIP2_START.match(content):
        return "binary (bzip2): unpack it first"
    return next((reason for start, reason in _FORMATS if content.startswith(start)), "")


def is_binary(content: bytes) -> bool:
    """Return whether a content is no text in any charset, by its first bytes.

    A few control characters, and UTF-16 and UTF-32 also without a byte order mark, are a text.
    """
    head = content[:_SAMPLE_BYTES]
    if head.startswith(b"%PDF-"):
        return True
    if head.startswith(_WIDE_MARKS):
        return False
    # Of a wide text every other byte is mostly the same, such as NUL.
    halves = [half for half in (head[::2], head[1::2]) if half]
    varied = b"".join(half for half in halves if half.count(Counter(half).most_common(1)[0][0]) * 2 < len(half))
    is_wide = len(head) > _SHORT_BYTES and 0 < len(varied) < len(head)
    counted, share = (varied, _WIDE_SHARE) if is_wide else (head, _NO_TEXT_SHARE)
    return len(counted) - len(counted.translate(None, _NO_TEXT_BYTES)) > max(1, share * len(counted))
