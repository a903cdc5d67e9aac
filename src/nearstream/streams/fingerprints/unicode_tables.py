"""Lookup tables for the normal form, made from Python's Unicode data, and packed for C.

The tables are frozen at Unicode 14.0, so that every Python gives equal normal forms.
"""

import unicodedata
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from nearstream.streams.native import UnicodeTables, native

# Code points that were assigned after Unicode 14.0, as ranges of (first, last), both included, with 28,111 code points
# up to Unicode 18.0. They are those that `unicodedata2` 18.0.0 assigns (a category other than Cn) and the `unicodedata`
# of Python 3.11 does not. A newer Unicode only adds ranges. A test counts the assigned code points outside them.
# fmt: off
NEWER: tuple[tuple[int, int], ...] = (
    (0x0558, 0x0558), (0x058B, 0x058C), (0x05C8, 0x05C9), (0x088F, 0x088F), (0x0897, 0x0897), (0x0B53, 0x0B54),
    (0x0C5C, 0x0C5C), (0x0CDC, 0x0CDC), (0x0CF3, 0x0CF3), (0x0ECE, 0x0ECE), (0x1ACF, 0x1AF0), (0x1B4E, 0x1B4F),
    (0x1B7F, 0x1B7F), (0x1C89, 0x1C8A), (0x208F, 0x208F), (0x209D, 0x209F), (0x20C1, 0x20C4), (0x2427, 0x2429),
    (0x2B96, 0x2B96), (0x2E60, 0x2E63), (0x2FFC, 0x2FFF), (0x31E4, 0x31E5), (0x31EF, 0x31EF), (0xA7CB, 0xA7CF),
    (0xA7D2, 0xA7D2), (0xA7D4, 0xA7D4), (0xA7DA, 0xA7DD), (0xA7E2, 0xA7E2), (0xA7F1, 0xA7F1), (0xAB6C, 0xAB6D),
    (0xFBC3, 0xFBD2), (0xFD90, 0xFD91), (0xFDC8, 0xFDCE), (0x105C0, 0x105F3), (0x107BB, 0x107BF), (0x10940, 0x10959),
    (0x10D40, 0x10D65), (0x10D69, 0x10D85), (0x10D8E, 0x10D8F), (0x10EC2, 0x10EC7), (0x10EC9, 0x10EEE),
    (0x10EF0, 0x10EFF), (0x1123F, 0x11241), (0x11380, 0x11389), (0x1138B, 0x1138B), (0x1138E, 0x1138E),
    (0x11390, 0x113B5), (0x113B7, 0x113C0), (0x113C2, 0x113C2), (0x113C5, 0x113C5), (0x113C7, 0x113CA),
    (0x113CC, 0x113D5), (0x113D7, 0x113D8), (0x113E1, 0x113E2), (0x116D0, 0x116E3), (0x11B00, 0x11B0A),
    (0x11B60, 0x11B67), (0x11BC0, 0x11BE1), (0x11BF0, 0x11BF9), (0x11DB0, 0x11DDB), (0x11DE0, 0x11DE9),
    (0x11DF0, 0x11DF1), (0x11F00, 0x11F10), (0x11F12, 0x11F3A), (0x11F3E, 0x11F5A), (0x1246F, 0x1246F),
    (0x12475, 0x1247F), (0x12550, 0x12686), (0x1342F, 0x1342F), (0x13439, 0x13455), (0x13460, 0x143FA),
    (0x16100, 0x16139), (0x16D40, 0x16D79), (0x16EA0, 0x16EB8), (0x16EBB, 0x16ED3), (0x16FF2, 0x16FF6),
    (0x187F8, 0x187FF), (0x18CD6, 0x18CDA), (0x18CFF, 0x18CFF), (0x18D09, 0x18D20), (0x18D80, 0x18DF2),
    (0x18E00, 0x19191), (0x191A0, 0x191D2), (0x1B123, 0x1B128), (0x1B132, 0x1B132), (0x1B155, 0x1B155),
    (0x1B168, 0x1B168), (0x1CC00, 0x1CCFC), (0x1CD00, 0x1CEB3), (0x1CEBA, 0x1CED0), (0x1CED2, 0x1CED4),
    (0x1CEDD, 0x1CEFD), (0x1D127, 0x1D128), (0x1D1EB, 0x1D1FF), (0x1D250, 0x1D281), (0x1D2C0, 0x1D2D3),
    (0x1D6A6, 0x1D6A6), (0x1DB00, 0x1DB1C), (0x1DF1F, 0x1DF81), (0x1DF90, 0x1DF96), (0x1DFCD, 0x1DFFF),
    (0x1E030, 0x1E06D), (0x1E08F, 0x1E08F), (0x1E4D0, 0x1E4F9), (0x1E5D0, 0x1E5FA), (0x1E5FF, 0x1E5FF),
    (0x1E6C0, 0x1E6DE), (0x1E6E0, 0x1E6F5), (0x1E6FE, 0x1E6FF), (0x1F1AE, 0x1F1AE), (0x1F6D8, 0x1F6D9),
    (0x1F6DC, 0x1F6DC), (0x1F774, 0x1F77F), (0x1F7D9, 0x1F7DB), (0x1F7F1, 0x1F7FF), (0x1F8B2, 0x1F8BB),
    (0x1F8C0, 0x1F8C1), (0x1F8D0, 0x1F8D8), (0x1FA54, 0x1FA57), (0x1FA75, 0x1FA77), (0x1FA87, 0x1FA8F),
    (0x1FAAD, 0x1FAAF), (0x1FABB, 0x1FABF), (0x1FAC6, 0x1FAC6), (0x1FAC8, 0x1FAC8), (0x1FACC, 0x1FACF),
    (0x1FADA, 0x1FADD), (0x1FADF, 0x1FADF), (0x1FAE8, 0x1FAEB), (0x1FAEF, 0x1FAEF), (0x1FAF7, 0x1FAFA),
    (0x1FBCB, 0x1FBEF), (0x1FBFA, 0x1FBFA), (0x2B739, 0x2B73F), (0x2B81E, 0x2B81E), (0x2CEA2, 0x2CEAD),
    (0x2EBF0, 0x2EE5D), (0x31350, 0x33479), (0x3D000, 0x3FC3F),
)
# fmt: on


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

_NEEDS_NEIGHBOURS = 1 << 29  # COMPLEX of unicode.h: needs its neighbours, or folds to several code points
_PAGE = 256  # code points
_SUPPLEMENTARY = 0x10000  # first code point that takes two units in UTF-16
# Code points with a decomposition. Hangul syllables are left out because C computes theirs.
_DECOMPOSING = (range(0xAC00), range(0xF900, 0x31350))
_COMPATIBILITY = "<"  # first character of a decomposition that NFKC applies and NFC does not

_Parts = dict[int, list[int]]


@dataclass(frozen=True)
class BmpTable:
    """The normal form of each single UTF-16 unit."""

    # 65,536 units, by unit of the text: the lower case of its NFKC form, a space, or 0xFFFF if the result depends on
    # its neighbours.
    units: NDArray[np.uint16]
    # 65,536 truth values, by unit of the normal form: whether it belongs to a script without spaces.
    spaceless: NDArray[np.bool_]


@cache
def unicode_tables() -> UnicodeTables:
    """Return the tables as a C object of under 2 MB."""
    return native.unicode(packed_tables())


def packed_tables() -> bytes:
    """Return the counts of pages, parts and pairs, then the arrays.

    `find_tables` in native/signing/unicode.h reads them in this order.
    """
    fold = fold_table()
    parts, pairs = _decompositions(fold)
    pages: dict[bytes, int] = {}
    properties = _properties(fold, parts).reshape(-1, 2 * _PAGE)
    page_numbers = [pages.setdefault(page.tobytes(), len(pages)) for page in properties]  # equal pages are stored once
    codes = [code for decomposed in parts.values() for code in decomposed]
    units = bmp_table().units.copy()
    units[_SURROGATES[0] : _SURROGATES[1] + 1] = (
        SPACE  # UTF-8 holds only lone surrogates, since a pair is one code point
    )
    arrays = (
        np.array([len(pages), len(codes), len(pairs)], dtype="<u8"),
        np.array(sorted(pairs), dtype="<u8"),
        np.frombuffer(b"".join(pages), dtype="<u4"),
        np.array([pairs[pair] for pair in sorted(pairs)], dtype="<u4"),
        np.array(codes, dtype="<u4"),
        np.array(page_numbers, dtype="<u2"),
        units.astype("<u2"),
        np.packbits(bmp_table().spaceless, bitorder="little"),
    )
    return b"".join(array.tobytes() for array in arrays)


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
    return any(unicodedata.decomposition(chr(code)) for code in codes[codes < _DECOMPOSING[-1].stop].tolist())


def _decompositions(fold: NDArray[np.uint32]) -> tuple[_Parts, dict[int, int]]:
    """Return the decompositions of NFKD, and the compositions of NFC.

    A decomposition is stored for each code point that NFKD changes.

    The key of a composition is its first code point in the upper 32 bits and its second one in the lower 32 bits.
    """
    parts: _Parts = {}
    pairs = {}
    for code in (code for codes in _DECOMPOSING for code in codes):
        character = chr(code)
        decomposition = unicodedata.decomposition(character).split()
        if not decomposition or fold[code] & REPLACED:
            continue
        parts[code] = [ord(part) for part in unicodedata.normalize("NFKD", character)]
        if decomposition[0][0] != _COMPATIBILITY and unicodedata.normalize("NFC", character) == character:
            first, second = (int(part, 16) for part in decomposition)
            pairs[first << 32 | second] = code
    return parts, pairs


def _properties(fold: NDArray[np.uint32], parts: _Parts) -> NDArray[np.uint32]:
    """Return two numbers for every code point (`Properties` of unicode.h).

    The first is its entry in the fold table, with one more flag. The second is its combining class (8 bits), the
    number of its parts (5 bits) and the index of the first part (19 bits).
    """
    properties = np.zeros((fold.size, 2), dtype="<u4")
    properties[:, 0] = np.where(fold & (BASE | MARK), fold, fold & ~np.uint32(CODE_POINT) | SPACE)
    marks = np.flatnonzero(fold & MARK_LIKE)
    properties[marks, 1] = [unicodedata.combining(chr(mark)) for mark in marks.tolist()]
    start = 0
    for code, decomposed in parts.items():
        properties[code, 1] |= start << 13 | len(decomposed) << 8
        start += len(decomposed)
    basic = np.flatnonzero(bmp_table().units == COMPLEX)
    properties[basic[(basic < _SURROGATES[0]) | (basic > _SURROGATES[1])], 0] |= _NEEDS_NEIGHBOURS
    supplementary = marks[marks >= _SUPPLEMENTARY].tolist()
    supplementary += [code for code in parts if code >= _SUPPLEMENTARY and _is_complex(fold[parts[code]])]
    properties[supplementary, 0] |= _NEEDS_NEIGHBOURS
    return properties


def _is_complex(folded: NDArray[np.uint32]) -> bool:
    """Return whether parts fold to more than a letter or space. A mark after neither letter nor number is dropped."""
    return bool(folded[0] & MARK or (folded.size > 1 and np.any(folded & BASE)))
