"""Unicode's tables as the C twin reads them."""

import unicodedata
from functools import cache

import numpy as np
from numpy.typing import NDArray

from streams import _native
from streams.folding import BASE, CODE_POINT, COMPLEX, MARK, MARK_LIKE, REPLACED, SPACE, bmp_table, fold_table

_NEEDS_NEIGHBOURS = 1 << 29  # or folds to several code points
_PAGE = 256
_FAR = 0x10000  # from here on UTF-16 takes two units
_SURROGATES = slice(0xD800, 0xE000)
_DECOMPOSING = (range(0xAC00), range(0xF900, 0x31350))  # Hangul syllables aside, with which C reckons
_COMPATIBLE = "<"  # how a decomposition begins that only NFKC undoes

_Parts = dict[int, list[int]]


@cache
def unicode_tables() -> "_native.Unicode":
    """The tables, handed over to C; under 2 MB."""
    return _native.unicode(packed_tables())


def packed_tables() -> bytes:
    """The tables in the order of `Unicode` in _unicode.h, after the numbers of pages, parts and pairs."""
    fold = fold_table()
    parts, pairs = _decompositions(fold)
    pages: dict[bytes, int] = {}
    places = [pages.setdefault(page.tobytes(), len(pages)) for page in _letters(fold, parts).reshape(-1, 2 * _PAGE)]
    codes = [code for each in parts.values() for code in each]
    units = bmp_table().units.copy()
    units[_SURROGATES] = SPACE  # only lone ones are left in UTF-8
    arrays = (
        np.array([len(pages), len(codes), len(pairs)], dtype="<u8"),
        np.array(sorted(pairs), dtype="<u8"),
        np.frombuffer(b"".join(pages), dtype="<u4"),
        np.array([pairs[pair] for pair in sorted(pairs)], dtype="<u4"),
        np.array(codes, dtype="<u4"),
        np.array(places, dtype="<u2"),
        units.astype("<u2"),
        np.packbits(bmp_table().spaceless, bitorder="little"),
    )
    return b"".join(array.tobytes() for array in arrays)


def _decompositions(fold: NDArray[np.uint32]) -> tuple[_Parts, dict[int, int]]:
    """NFKD of each code point that it changes; what NFC makes of pairs, of which the first is in the upper half."""
    parts: _Parts = {}
    pairs = {}
    for code in (code for codes in _DECOMPOSING for code in codes):
        character = chr(code)
        decomposition = unicodedata.decomposition(character).split()
        if not decomposition or fold[code] & REPLACED:
            continue
        parts[code] = [ord(part) for part in unicodedata.normalize("NFKD", character)]
        if decomposition[0][0] != _COMPATIBLE and unicodedata.normalize("NFC", character) == character:
            first, second = (int(each, 16) for each in decomposition)
            pairs[first << 32 | second] = code
    return parts, pairs


def _letters(fold: NDArray[np.uint32], parts: _Parts) -> NDArray[np.uint32]:
    """`Letter` of every code point: its fold with one flag more; class, number of parts, place of the first."""
    letters = np.zeros((fold.size, 2), dtype="<u4")
    letters[:, 0] = np.where(fold & (BASE | MARK), fold, fold & ~np.uint32(CODE_POINT) | SPACE)
    marks = np.flatnonzero(fold & MARK_LIKE)
    letters[marks, 1] = [unicodedata.combining(chr(mark)) for mark in marks.tolist()]
    start = 0
    for code, each in parts.items():
        letters[code, 1] |= start << 13 | len(each) << 8
        start += len(each)
    near = np.flatnonzero(bmp_table().units == COMPLEX)
    letters[near[(near < _SURROGATES.start) | (near >= _SURROGATES.stop)], 0] |= _NEEDS_NEIGHBOURS
    far = marks[marks >= _FAR].tolist() + [code for code, each in parts.items() if code >= _FAR and _joined(fold[each])]
    letters[far, 0] |= _NEEDS_NEIGHBOURS
    return letters


def _joined(folded: NDArray[np.uint32]) -> bool:
    """Whether parts, by their folds, become anything but one letter or a space; marks on neither fall."""
    return bool(folded[0] & MARK or (folded.size > 1 and np.any(folded & BASE)))
