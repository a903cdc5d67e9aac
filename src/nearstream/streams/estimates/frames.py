"""Hashes of the parts of a page: paragraphs, rows of tables, targets of links."""

import re
from collections.abc import Sequence
from functools import lru_cache
from struct import Struct
from typing import NamedTuple

from nearstream.streams.fingerprints.hashing import HashKey

PARTS_MAX = 512  # of a page; one with more is compared as a whole
ADDRESS = "@"  # with which the target of a link and the address of an image begin
_PACKED = Struct("<IIB")
_WORDS_MAX = 127
_MAIN = 128
_SHORT = 200  # characters
# Ids of builds, visits and files, which say nothing of what a page shows.
_TOKEN = re.compile(r"\b(?=\w{0,512}\d)(?=\w{0,512}[a-f])[0-9a-f]{8,}\b")
_HEXADECIMAL = re.compile("[0-9a-f]{8}")
_NUMBER = re.compile(r"\*|(?<![a-z\d])[a-z]{0,64}\d[a-z\d]*")  # or an id, which `*` may stand for


class Part(NamedTuple):
    """A part of a page, such as a paragraph, a heading or a line of a list."""

    exact: int  # hash of its text
    form: int  # hash of its text with 0 for each number or id, so that a counter or a date keeps its form
    words: int  # how many words it has, at most 127, and 0 of an address
    is_main: bool = False  # it is in the main content


def pack_parts(parts: Sequence[tuple[str, bool]], key: HashKey) -> bytes:
    """Return hashes of parts, 9 bytes each, or nothing if a page has too many.

    Each part comes with whether it is in the main content. Addresses are left out first.
    """
    if len(parts) > PARTS_MAX:
        parts = [part for part in parts if not part[0].startswith(ADDRESS)]
    if len(parts) > PARTS_MAX:
        return b""
    return b"".join((_packed if len(text) > _SHORT else _known)(text, key, is_main) for text, is_main in parts)


def _packed(text: str, key: HashKey, is_main: bool) -> bytes:
    text = masked(text)
    has_digits = not text.isascii() or any(digit in text for digit in "0123456789*")
    words = 0 if text.startswith(ADDRESS) else max(1, min(len(text.split()), _WORDS_MAX))
    exact, form = _hash(text, key), _NUMBER.sub("0", text) if has_digits else text
    return _PACKED.pack(exact, exact if form == text else _hash(form, key), words + _MAIN * is_main)


_known = lru_cache(1 << 15)(_packed)  # menus and teasers are on many pages of a site


def masked(text: str) -> str:
    """Return a part in lower case, with `*` for each hexadecimal token."""
    text = text.lower()
    return _TOKEN.sub("*", text) if _HEXADECIMAL.search(text) else text  # a fifth of the time


def _hash(text: str, key: HashKey) -> int:
    return int.from_bytes(key.digest(text.encode("utf-8", "surrogatepass"))[:4], "little")
