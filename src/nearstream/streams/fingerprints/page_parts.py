"""Hashes of the parts of a web page, so that two fetches of it can be compared part by part."""

import re
from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from nearstream.streams.fingerprints.hashing import HashKey

PARTS_MAX = 512  # of a page; one with more is compared as a whole
_PACKED = Struct("<IIB")
_WORDS_MAX = 255
_DIGITS = re.compile(r"\d+")


class Part(NamedTuple):
    """A part of a page, such as a paragraph, a heading or a line of a list.

    Attributes:
        exact: Hash of its text.
        form: Hash of its text with each number replaced by 0, so that a counter or a date keeps its form.
        words: How many words it has, at most 255.
    """

    exact: int
    form: int
    words: int


def pack_parts(texts: Sequence[str], key: HashKey) -> bytes:
    """Return the hashes of the parts of a page, 9 bytes each, in order.

    Args:
        texts: The parts.
        key: The key of the hashes.

    Returns:
        Nothing for a page of too many parts.
    """
    if len(texts) > PARTS_MAX:
        return b""
    return b"".join(
        _PACKED.pack(_hash(text, key), _hash(_DIGITS.sub("0", text), key), min(len(text.split()), _WORDS_MAX))
        for text in texts
    )


def unpack_parts(packed: bytes) -> list[Part]:
    """Return the parts of a page. Bytes that are no parts give none."""
    if len(packed) % _PACKED.size or len(packed) > PARTS_MAX * _PACKED.size:
        return []
    return [Part(*fields) for fields in _PACKED.iter_unpack(packed)]


def _hash(text: str, key: HashKey) -> int:
    return int.from_bytes(key.digest(text.encode("utf-8", "surrogatepass"))[:4], "little")
