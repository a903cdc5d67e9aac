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

from nearstream.streams.fingerprints.letters import LETTERS
from nearstream.streams.fingerprints.normalize import nfkc, without_unsafe
from nearstream.streams.fingerprints.parameters import TextRules
from nearstream.streams.fingerprints.plain_letters import beyond_ascii, is_plain, plain_letters
from nearstream.streams.fingerprints.unicode_tables import BASE, MARK_LIKE, REPLACED, fold_table

_CODE_POINTS = 0x110000
_DROPPED = _CODE_POINTS  # beyond all code points: a letter that becomes none
_SEVERAL = _CODE_POINTS + 1  # and from here on letters that become several, by their number
# Signs of wide print, blanks and others of which NFKC makes another one. NFKC takes long where it has to change a text.
_PRINT_RANGES: Final = ((0xA0, 0xFF), (0x2000, 0x206F), (0x3000, 0x303F), (0xFF01, 0xFFEE))
# Latin characters with accents, and signs of print. Most of them have one plain form in any context.
_FIXED_RANGES: Final = (
    (0xA0, 0x17F),
    (0x1A0, 0x1B0),
    (0x218, 0x21B),
    (0x1EA0, 0x1EF9),
    (0x2010, 0x2044),
    (0x20A0, 0x20C0),
)
_DOT = "i\u0307"  # what the lower case of the Turkish capital is in two code points
# Latin with accents and strokes, small capitals and characters in boxes, by their names in Unicode, which no
# version changes. NFKC reads all other styles.
_LATIN_RANGES: Final = (
    *((0xC0, 0x29F), (0x1D00, 0x1D7F), (0x1E00, 0x1EFF), (0x2C60, 0x2C7F), (0xA720, 0xA7FF), (0xAB30, 0xAB6F)),
    *((0x1F150, 0x1F189), (0x1F1E6, 0x1F1FF)),
)
_LATIN_NAME = re.compile(
    r"(?:NEGATIVE (?:CIRCLED|SQUARED) )?(?:LATIN|REGIONAL INDICATOR SYMBOL) (?:SMALL |CAPITAL )?LETTER "
    r"(?:SMALL CAPITAL |SCRIPT |OPEN )?([A-Z]|AE|OE|ALPHA|IOTA|UPSILON)(?: WITH .+)?"
)
_LATIN_GREEK = {"ALPHA": "a", "IOTA": "i", "UPSILON": "u"}
# What a code point is, one bit each.
_MARK, _EAST_ASIAN, _BLANK = 1, 2, 4
# Han, Hiragana, Katakana and Bopomofo, which put no blanks between words. Blanks beside them are layout.
_EAST_ASIAN_RANGES: Final = (
    *((0x3005, 0x3007), (0x3040, 0x30FF), (0x3100, 0x312F), (0x31A0, 0x31BF), (0x31F0, 0x31FF), (0x3400, 0x4DBF)),
    *((0x4E00, 0x9FFF), (0x20000, 0x3FFFF)),
)
_RANGES: Final = {
    _MARK: ((0x300, 0x36F),),  # Greek and Latin lose these where NFKC has not composed them
    _EAST_ASIAN: _EAST_ASIAN_RANGES,
    _BLANK: ((0x09, 0x0D), (0x20, 0x20)),  # NFKC makes these of nearly all others
}
_COMBINING = re.compile("[\u0300-\u036f]")
_ACCENTS = re.compile("(?<=[a-zA-Z\u0370-\u03ff])[\u0300-\u036f]+")


def plain_words(text: str, rules: TextRules) -> str:
    """Return a text as its language writes it in plain letters.

    1. `plain_letters` of the NFKC of the text.
    2. Each character becomes another one by the table: full case folding, i without its dot, Greek and
       Latin without accents and strokes, Latin in all styles, one yeh, kaf and heh in Arabic, one apostrophe, one set
       of digits, Hebrew without points. Zero width spaces are left out.
    3. Blanks between two letters of which one is East Asian are left out.
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
    composed = _composed(_text(_prints().take(_code_points(text))), rules)
    plain = _in_table(plain_letters(composed.replace("\u200b", "")))
    if plain.isascii():
        return plain
    plain = _composed(plain, rules).replace(_DOT, "i")
    codes = _code_points(plain)
    kinds = _kinds().take(codes)
    seen = int(np.bitwise_or.reduce(kinds, initial=0))
    if seen & _EAST_ASIAN and seen & _BLANK:
        plain = _without_blanks(codes, kinds)
    return _ACCENTS.sub("", plain) if seen & _MARK else plain


def accents(text: str) -> str:
    """Return the accented characters of Latin in lower case, in order, and single accents.

    `plain_words` leaves the accents out, so that a text is found in either spelling, which is not equal for that.
    """
    if text.isascii():
        return ""
    beyond = beyond_ascii(text)
    if _COMBINING.search(beyond):
        beyond = beyond_ascii(unicodedata.normalize("NFC", text))
    has_accents = any(_ACCENTED[ord(each)] for each in set(beyond))
    return beyond.translate(_ACCENTED) if has_accents else ""


class _Accented(dict[int, str]):
    """By code point the accented character, or nothing."""

    def __missing__(self, code: int) -> str:
        letter = unicodedata.normalize("NFKC", chr(code)).lower()
        letter = _listed().get(ord(letter), letter) if len(letter) == 1 else ""
        is_accented = not letter.isascii() and (_COMBINING.match(letter) or ord(letter[0]) in _latin())
        self[code] = letter if is_accented else ""
        return self[code]


_ACCENTED: Final = _Accented()


def _composed(text: str, rules: TextRules) -> str:
    return nfkc(without_unsafe(text, rules.mark_run))


def _in_table(text: str) -> str:
    """Return a text in which each letter has become what the table says."""
    found = _table().take(_code_points(text))
    return _text(_expanded(found) if np.any(found >= _DROPPED) else found)


def _expanded(found: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return code points with all letters that become none, or several."""
    lengths = (found != _DROPPED).astype(np.int64)
    several = np.flatnonzero(found >= _SEVERAL)
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
    marks = fold_table() & (MARK_LIKE | REPLACED)
    become: dict[str, str] = {}
    for letter in (chr(code) for first, last in _FIXED_RANGES for code in range(first, last + 1)):
        plain = plain_words_slowly(letter, TextRules())
        met = letter + unicodedata.normalize("NFKC", letter) + plain
        if not any(marks[ord(each)] for each in met) and is_plain(met):
            become[letter] = plain
    return {
        letter: plain
        for letter, plain in become.items()
        if all(each.isascii() or become.get(each) == each for each in plain)
    }


@cache
def _rows() -> dict[int, str]:
    """Return what each character becomes in plain words."""
    return {**_listed(), **_latin()}


@cache
def _listed() -> dict[int, str]:
    rows: dict[int, str] = {}
    for packed in LETTERS.values():
        for row in packed.split():
            letter, plain = row.split(":")
            rows[int(letter, 16)] = "".join(chr(int(each, 16)) for each in plain.split("+") if each)
    return rows


@cache
def _latin() -> dict[int, str]:
    """Return Latin of all styles without its accents."""
    rows: dict[int, str] = {}
    for code in (code for first, last in _LATIN_RANGES for code in range(first, last + 1)):
        name = _LATIN_NAME.fullmatch(unicodedata.name(chr(code), ""))
        if name and not fold_table()[code] & REPLACED:
            rows[code] = _LATIN_GREEK.get(name[1], name[1].lower())
    return rows


@cache
def _expansions() -> NDArray[np.uint32]:
    """Return the letters that become several, one row each, filled with zeros."""
    several = [plain for plain in _rows().values() if len(plain) > 1]
    width = max(map(len, several))
    return np.array([[*map(ord, plain), *[0] * (width - len(plain))] for plain in several], dtype=np.uint32)


@cache
def _table() -> NDArray[np.uint32]:
    """Return what each code point becomes."""
    table = np.arange(_CODE_POINTS, dtype=np.uint32)
    number = _SEVERAL
    for letter, plain in _rows().items():
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
    return table
