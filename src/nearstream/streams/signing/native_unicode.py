"""Unicode tables in the layout that the C code reads."""

import unicodedata
from functools import cache

import numpy as np
from numpy.typing import NDArray

from nearstream.streams.fingerprints.case_folding import (
    BASE,
    CODE_POINT,
    COMPLEX,
    MARK,
    MARK_LIKE,
    REPLACED,
    SPACE,
    bmp_table,
    fold_table,
)
from nearstream.streams.native import UnicodeTables, native

_NEEDS_NEIGHBOURS = 1 << 29  # COMPLEX of unicode.h: needs its neighbours, or folds to several code points
_PAGE = 256  # code points
_SUPPLEMENTARY = 0x10000  # first code point that takes two units in UTF-16
_SURROGATES = slice(0xD800, 0xE000)
# Code points with a decomposition. Hangul syllables are left out because C computes theirs.
_DECOMPOSING = (range(0xAC00), range(0xF900, 0x31350))
_COMPATIBILITY = "<"  # first character of a decomposition that NFKC applies and NFC does not

_Parts = dict[int, list[int]]


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
    units[_SURROGATES] = SPACE  # UTF-8 holds only lone surrogates, since a pair is one code point
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
    properties[basic[(basic < _SURROGATES.start) | (basic >= _SURROGATES.stop)], 0] |= _NEEDS_NEIGHBOURS
    supplementary = marks[marks >= _SUPPLEMENTARY].tolist()
    supplementary += [code for code in parts if code >= _SUPPLEMENTARY and _is_complex(fold[parts[code]])]
    properties[supplementary, 0] |= _NEEDS_NEIGHBOURS
    return properties


def _is_complex(folded: NDArray[np.uint32]) -> bool:
    """Return whether parts fold to more than a letter or space.

    Args:
        folded: Entries of the parts in the fold table. A mark that follows no letter or number is dropped.
    """
    return bool(folded[0] & MARK or (folded.size > 1 and np.any(folded & BASE)))
