"""Lookup tables for the normal form, made from Python's Unicode data.

The tables are frozen at Unicode 14.0, so that every Python gives equal normal forms.
"""

import unicodedata
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from nearstream.streams.fingerprints.unicode14 import NEWER

SPACE = 0x20
COMPLEX = 0xFFFF  # in `BmpTable.units`: the result depends on the neighbours
# An element of `fold_table` has the lower case in the bits of CODE_POINT, and these flags above them.
CODE_POINT = 0x1F_FFFF
BASE = 1 << 24  # a letter or number
MARK = 1 << 25
REPLACED = 1 << 26  # a surrogate, or newer than Unicode 14.0
SPACELESS = 1 << 27  # of a script without spaces between words
MARK_LIKE = 1 << 28  # a mark, or a letter that NFKC turns into one

_CODE_POINTS = 0x110000
_NEWER = frozenset(code for first, last in NEWER for code in range(first, last + 1))
# These ranges contain all letters, numbers and marks of Unicode 14.0. The rest is unassigned or private.
_ASSIGNED = (range(0xD800), range(0xE000, 0x31350), range(0xE0000, 0xE0200))
_SURROGATES = (0xD800, 0xDFFF)
_SPACELESS = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3040, 0x30FF), (0x31F0, 0x31FF),
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF),
)  # fmt: skip
_HALFWIDTH_MARKS = (0xFF9E, 0xFF9F)  # letters that NFKC turns into marks
_JAMO = range(0x1160, 0x1200)  # vowels and final consonants of Hangul, which compose with the code point before them


@dataclass(frozen=True)
class BmpTable:
    """The normal form of each single UTF-16 unit.

    Attributes:
        units: 65,536 units, by unit of the text: the lower case of its NFKC form, a space, or 0xFFFF if the result
            depends on its neighbours.
        spaceless: 65,536 truth values, by unit of the normal form: whether it belongs to a script without spaces.
    """

    units: NDArray[np.uint16]
    spaceless: NDArray[np.bool_]


@cache
def fold_table() -> NDArray[np.uint32]:
    """Return the lower case and the flags of each code point.

    The table has 1,114,112 elements and takes about 4 MB. The low 21 bits of an element are the lower case.
    """
    table = np.arange(_CODE_POINTS, dtype=np.uint32)
    for codes in _ASSIGNED:
        table[codes.start : codes.stop] = [_folded(code) for code in codes]
    for first, last in _SPACELESS:
        table[first : last + 1] |= SPACELESS
    table[table & MARK != 0] |= MARK_LIKE
    table[list(_HALFWIDTH_MARKS)] |= MARK_LIKE
    for first, last in (*NEWER, _SURROGATES):
        table[first : last + 1] = SPACE | REPLACED
    return table


@cache
def bmp_table() -> BmpTable:
    """Return the table of single units, which takes 192 KB."""
    table = fold_table()
    units = np.full(0x10000, SPACE, dtype=np.uint16)
    for codes in (range(0xD800), range(0xE000, 0x10000)):
        units[codes.start : codes.stop] = [_unit(code, table) for code in codes]
    for high in range(0x400):
        if _holds_text(0x10000 + 0x400 * high, table):
            units[_SURROGATES[0] + high] = COMPLEX
    return BmpTable(units, table[:0x10000] & SPACELESS != 0)


def lower_case(character: str) -> str:
    """Return the lower case of a character.

    The character itself is returned if its lower case is not one code point of Unicode 14.0.
    """
    lower = character.lower()
    return lower if len(lower) == 1 and ord(lower) not in _NEWER else character


def _folded(code: int) -> int:
    if code in _NEWER:
        return SPACE
    lower = lower_case(chr(code))
    kind = unicodedata.category(lower)[0]
    return ord(lower) | (BASE if kind in "LN" else MARK if kind == "M" else 0)


def _unit(code: int, table: NDArray[np.uint32]) -> int:
    own = int(table[code])
    if own & REPLACED:
        return SPACE
    if own & MARK_LIKE or code in _JAMO:
        return COMPLEX
    codes = [ord(each) for each in unicodedata.normalize("NFKC", chr(code))]
    folded = [int(table[each]) for each in codes]
    # NFKC turns a spacing accent into a space with marks. The marks have no letter, so all of it becomes a space.
    flags = BASE if codes[0] == SPACE else BASE | MARK
    if not any(each & flags for each in folded):
        return SPACE
    result = folded[0] & CODE_POINT
    alone = len(codes) == 1 and not folded[0] & MARK and codes[0] not in _JAMO and result < 0x10000
    return result if alone else COMPLEX


def _holds_text(first: int, table: NDArray[np.uint32]) -> bool:
    """Return whether one of 1,024 code points becomes more than a space."""
    block = table[first : first + 0x400]
    if np.any(block & (BASE | MARK)):
        return True
    codes = np.flatnonzero(block & REPLACED == 0) + first
    return any(unicodedata.decomposition(chr(code)) for code in codes.tolist())
