"""Characters that a person reads as others, by rules on the data of Unicode 14.0."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nearstream.streams.fingerprints.plain_letters import beyond_ascii
from nearstream.streams.fingerprints.unicode_tables import REPLACED, fold_table, lower_case

# Characters that become the last one of their group, with the section of the Unicode Standard about them.
_ONE_LETTER: Final = (
    "\u0649\u06cc\u064a",  # 9.2: the Arabic yeh with and without dots
    "\u0624\u0648",  # 9.2: with a hamza, and without
    "\u0622\u0623\u0625\u0671\u0627",
    "\u0626\u064a",
    "\u06a9\u06aa\u0643",  # 9.2: kaf
    "\u0629\u06be\u06c0\u06c1\u06c2\u06c3\u06d5\u0647",  # 9.2: heh and teh marbuta
    "\u02b9\u02bb\u02bc\u02bd\u02be\u02bf\u02c8\ua78b\ua78c'",  # 7.8: apostrophes
    "\u0131i",  # the Turkish and Azeri i
    "\u0451\u0435",  # 7.4: the Cyrillic io
)
_SEVERAL: Final = {
    **{"\u05f0": "\u05d5\u05d5", "\u05f1": "\u05d5\u05d9", "\u05f2": "\u05d9\u05d9"},  # 9.1: digraphs of Yiddish
    **{"\u0d7a": "\u0d23\u0d4d", "\u0d7b": "\u0d28\u0d4d", "\u0d7c": "\u0d30\u0d4d"},  # 12.9: chillu of Malayalam
    **{"\u0d7d": "\u0d32\u0d4d", "\u0d7e": "\u0d33\u0d4d", "\u0d7f": "\u0d15\u0d4d"},
    "\u09ce": "\u09a4\u09cd",  # 12.2: khanda ta of Bengali
}
# Invisible characters: soft hyphens, joiners, variation selectors (Default_Ignorable_Code_Point of
# Unicode 14) and zero width spaces.
_INVISIBLE: Final = (
    *((0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F)),
    *((0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF)),
    *((0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
)
# Marks that NFKC has not composed, also around characters, points and accents of Hebrew, marks of Arabic, and the line
# that stretches Arabic words. The iota below of Greek is no mark, nor is a key around a digit, which is an emoji.
_MARKS: Final = (
    *((0x20D0, 0x20E2), (0x20E4, 0x20F0), (0x483, 0x489)),
    *((0x300, 0x344), (0x346, 0x36F), (0x591, 0x5BD), (0x5BF, 0x5BF), (0x5C1, 0x5C2), (0x5C4, 0x5C5), (0x5C7, 0x5C7)),
    *((0x610, 0x61A), (0x640, 0x640), (0x64B, 0x65F), (0x670, 0x670), (0x6D6, 0x6DC), (0x6DF, 0x6E8), (0x6EA, 0x6ED)),
)
_TAGS: Final = range(0xE0020, 0xE0080)  # with which flags of regions are written
_COMBINING = re.compile("[\u0300-\u036f]")
_CEDILLA: Final = str.maketrans("\u015f\u0163", "\u0219\u021b")  # which Romanian writes with a comma below
_CODES: Final = (*range(0x80, 0x3000), *range(0xA600, 0xAC00), *range(0x10000, 0x1F200))  # of such characters
_GREEK = range(0x370, 0x400)
# Latin with accents and strokes, small capitals and characters in boxes, by their names in Unicode, which no
# version changes. NFKC reads all other styles but parentheses.
_LATIN_NAME = re.compile(
    r"(?:NEGATIVE (?:CIRCLED|SQUARED) |PARENTHESIZED )?(?:LATIN|REGIONAL INDICATOR SYMBOL) (?:SMALL |CAPITAL )?LETTER "
    r"(?:SMALL CAPITAL |SCRIPT |OPEN )?([A-Z]|AE|OE|ALPHA|IOTA|UPSILON)(?: WITH .+)?"
)
_LATIN_GREEK: Final = {"ALPHA": "a", "IOTA": "i", "UPSILON": "u"}


@cache
def letters() -> dict[int, str]:
    """Return what characters of texts in NFKC become, where this is not their lower case."""
    listed = {letter: group[-1] for group in _ONE_LETTER for letter in group[:-1]} | _SEVERAL
    rows = {}
    for code in _CODES:
        letter = chr(code)
        plain = _plain(letter, listed)
        if plain != letter and "".join(map(lower_case, plain)) != lower_case(letter):
            rows[code] = plain
    return rows | dict.fromkeys((*_codes(_INVISIBLE), *_codes(_MARKS)), "")


@cache
def _seen() -> NDArray[np.bool_]:
    """Return which characters are others than what they become, but for case and punctuation."""
    seen = np.zeros(0x110000, dtype=np.bool_)
    rows = letters().items()
    seen[[code for code, plain in rows if plain not in ("", "'", chr(code).casefold()[0])]] = True
    seen[[*_codes(_MARKS), *_TAGS]] = True
    return seen


def unfolded(text: str) -> str:
    """Return the characters of a text that become others, in lower case and in order.

    A text is found in either spelling, which is not equal for that.
    """
    if text.isascii():
        return ""
    beyond = beyond_ascii(text)
    if _COMBINING.search(beyond):
        beyond = beyond_ascii(unicodedata.normalize("NFC", text))
    codes = np.frombuffer(beyond.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    found = codes[_seen().take(codes)].tobytes().decode("utf-32-le", "surrogatepass")
    return found.lower().translate(_CEDILLA)


def _codes(spans: Iterable[tuple[int, int]]) -> Iterator[int]:
    return (code for first, last in spans for code in range(first, last + 1))


def _plain(letter: str, listed: dict[str, str]) -> str:
    kind, name = unicodedata.category(letter), _LATIN_NAME.fullmatch(unicodedata.name(letter, ""))
    if fold_table()[ord(letter)] & REPLACED:
        return letter
    if name:
        return _LATIN_GREEK.get(name[1], name[1].lower())
    if unicodedata.normalize("NFKC", letter) != letter:
        return letter
    if kind == "Nd":
        return str(unicodedata.decimal(letter))
    folded = letter.casefold()
    if folded in listed:
        return listed[folded]
    parts = unicodedata.normalize("NFD", folded)
    if ord(parts[0]) in _GREEK:
        return "".join(part for part in parts if not unicodedata.combining(part)).casefold()
    return folded
