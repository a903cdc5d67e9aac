"""The first step of a normal form that has one form for all ways in which a language writes a text.

`letters.py` has what each letter becomes. This page has what depends on the letters around.

It runs before C signs a text. Texts of ASCII alone are not looked at.
"""

import re
import unicodedata
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nearstream.streams.fingerprints.letters import letters
from nearstream.streams.fingerprints.normalize import nfkc, without_unsafe
from nearstream.streams.fingerprints.parameters import TextRules
from nearstream.streams.fingerprints.plain_letters import beyond_ascii, in_one_script
from nearstream.streams.fingerprints.unicode_tables import BASE, MARK_LIKE, REPLACED, fold_table

_CODE_POINTS = 0x110000
_DROPPED = _CODE_POINTS  # beyond all code points: a letter that becomes none
_SEVERAL = _CODE_POINTS + 1  # and from here on letters that become several, by their number
# Signs of wide print, blanks and others of which NFKC makes another one. NFKC takes long where it has to change a text.
_PRINT_RANGES: Final = ((0xA0, 0xFF), (0x2000, 0x206F), (0x3000, 0x303F), (0xFF01, 0xFFEE))
# In parentheses, which NFKC would keep.
_PARENTHESIZED: Final = (*range(0x249C, 0x24B6), *range(0x1F110, 0x1F12A))
_BEYOND_LATIN: Final = range(0x250, 0x1400)  # marks, and scripts whose characters imitate others
# Latin characters with accents, and signs of print. Most of them have one plain form in any context.
_FIXED_RANGES: Final = (
    (0xA0, 0x17F),
    (0x1A0, 0x1B0),
    (0x218, 0x21B),
    (0x1EA0, 0x1EF9),
    (0x2010, 0x2044),
    (0x20A0, 0x20C0),
)
# What a code point is, one bit each.
_EAST_ASIAN, _BLANK = 1, 2
# Han, Hiragana, Katakana and Bopomofo, which put no blanks between words. Blanks beside them are layout.
_EAST_ASIAN_RANGES: Final = (
    *((0x3005, 0x3007), (0x3040, 0x30FF), (0x3100, 0x312F), (0x31A0, 0x31BF), (0x31F0, 0x31FF), (0x3400, 0x4DBF)),
    *((0x4E00, 0x9FFF), (0x20000, 0x3FFFF)),
)
_RANGES: Final = {
    _EAST_ASIAN: _EAST_ASIAN_RANGES,
    _BLANK: ((0x09, 0x0D), (0x20, 0x20)),  # NFKC makes these of nearly all others
}


def plain_words(text: str, rules: TextRules) -> str:
    """Return a text as its language writes it in plain letters.

    1. NFKC.
    2. Each character becomes another one by the table: full case folding, i without its dot, Greek and Latin without
       accents and strokes, Latin in all styles, one yeh, kaf and heh in Arabic, one apostrophe, one set of digits, no
       points, marks and invisible characters.
    3. Characters become those of another script that they imitate.
    4. Blanks beside East Asian characters are left out.
    """
    if text.isascii():
        return text
    beyond = beyond_ascii(text)
    if not _only_fixed().fullmatch(beyond):
        return plain_words_slowly(text, rules)
    become = fixed_forms()
    for letter in set(beyond):
        if become[letter] != letter:
            text = text.replace(letter, become[letter])
    return text


def plain_words_slowly(text: str, rules: TextRules) -> str:
    """Return what `plain_words` does, without `fixed_forms`."""
    composed = _code_points(_composed(_text(_prints().take(_code_points(text))), rules))
    plain = _text(in_one_script(_in_table(composed)))
    if plain.isascii():
        return plain
    plain = _composed(plain, rules)
    codes = _code_points(plain)
    kinds = _kinds().take(codes)
    seen = int(np.bitwise_or.reduce(kinds, initial=0))
    return _without_blanks(codes, kinds) if seen == _EAST_ASIAN | _BLANK else plain


def _composed(text: str, rules: TextRules) -> str:
    return nfkc(without_unsafe(text, rules.mark_run))


def _in_table(codes: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return code points of which each has become what the table says."""
    found = _table().take(codes)
    return _expanded(found) if np.any(found >= _DROPPED) else found


def _expanded(found: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return code points with all letters that become none, or several."""
    found = found[found != _DROPPED]
    several = np.flatnonzero(found >= _SEVERAL)
    if not several.size:
        return found
    lengths = np.ones(found.size, dtype=np.int64)
    rows = _expansions().take(found[several] - _SEVERAL, axis=0)
    lengths[several] = np.count_nonzero(rows, axis=1)
    starts = np.cumsum(lengths) - lengths
    expanded: NDArray[np.uint32] = np.repeat(found, lengths)
    for number, column in enumerate(rows.T):
        is_there = column > 0
        expanded[starts[several[is_there]] + number] = column[is_there]
    return expanded


def _without_blanks(codes: NDArray[np.uint32], kinds: NDArray[np.uint8]) -> str:
    """Return a text without the blanks between two letters of which one is East Asian.

    Blanks beside a sign remain, because a sign at the start of a line is another one than within it.
    """
    blank = np.flatnonzero(kinds & _BLANK)
    is_first, is_last = np.diff(blank, prepend=-2) > 1, np.diff(blank, append=codes.size + 1) > 1
    before, after = (
        blank[is_first] - 1,
        np.minimum(blank[is_last] + 1, codes.size - 1),
    )  # at an end this is a blank itself, which is no letter
    are_letters = (fold_table().take(codes[before]) & fold_table().take(codes[after]) & BASE) != 0
    beside = (kinds[before] | kinds[after]) & _EAST_ASIAN != 0
    lengths = np.diff(np.flatnonzero(is_first), append=blank.size)
    kept = np.ones(codes.size, dtype=np.bool_)
    kept[blank] = np.repeat(~(are_letters & beside & (before >= 0)), lengths)
    return _text(codes[kept])


def _code_points(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")


def _text(codes: NDArray[np.uint32]) -> str:
    return codes.astype("<u4", copy=False).tobytes().decode("utf-32-le", "surrogatepass")


@cache
def _kinds() -> NDArray[np.uint8]:
    """Return what each code point is."""
    kinds = np.zeros(_CODE_POINTS, dtype=np.uint8)
    for kind, spans in _RANGES.items():
        for first, last in spans:
            kinds[first : last + 1] |= kind
    return kinds


@cache
def _only_fixed() -> re.Pattern[str]:
    """Return a pattern of characters that all have fixed forms."""
    return re.compile(f"[{re.escape(''.join(fixed_forms()))}]*")


@cache
def fixed_forms() -> dict[str, str]:
    """Return the plain form of each character that has one form in any context.

    The characters of a plain form are their own forms, so they can be replaced in any order.
    """
    become: dict[str, str] = {}
    for letter in (chr(code) for first, last in _FIXED_RANGES for code in range(first, last + 1)):
        plain = plain_words_slowly(letter, TextRules())
        met = letter + unicodedata.normalize("NFKC", letter) + plain
        if not any(fold_table()[ord(each)] & REPLACED or ord(each) in _BEYOND_LATIN for each in met):
            become[letter] = plain
    return {
        letter: plain
        for letter, plain in become.items()
        if all(each.isascii() or become.get(each) == each for each in plain)
    }


@cache
def _expansions() -> NDArray[np.uint32]:
    """Return the letters that become several, one row each, filled with zeros."""
    several = [plain for plain in letters().values() if len(plain) > 1]
    width = max(map(len, several))
    return np.array([[*map(ord, plain), *[0] * (width - len(plain))] for plain in several], dtype=np.uint32)


@cache
def _table() -> NDArray[np.uint32]:
    """Return what each code point becomes."""
    table = np.arange(_CODE_POINTS, dtype=np.uint32)
    number = _SEVERAL
    for letter, plain in letters().items():
        table[letter] = (ord(plain) if len(plain) == 1 else number) if plain else _DROPPED
        number += len(plain) > 1
    return table


@cache
def _prints() -> NDArray[np.uint32]:
    """Return what NFKC makes of each sign of print, if that is one code point and no mark."""
    table = np.arange(_CODE_POINTS, dtype=np.uint32)
    is_plain = fold_table() & (MARK_LIKE | REPLACED) == 0
    for first, last in _PRINT_RANGES:
        for code in range(first, last + 1):
            plain = unicodedata.normalize("NFKC", chr(code))
            if len(plain) == 1 and is_plain[code] and is_plain[ord(plain)]:
                table[code] = ord(plain)
    for code in _PARENTHESIZED:
        table[code] = ord(letters()[code])
    return table
