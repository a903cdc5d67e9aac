"""The first step of a normal form that reads letters as a person does, whichever code points they are written with."""

import re
import unicodedata
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nearstream.streams.fingerprints.unicode_tables import REPLACED, fold_table

_CODE_POINTS = 0x110000
_LETTERS = 0x1400  # all that can be replaced come before this one
_ASCII = bytes(range(0x80))

# What a code point is, one bit each.
_DROPPED = 1
_SEPARATOR = 2  # the zero width space, which separates words where no space does
_APART = 4  # letters of such scripts, and spaces
_HAMZA = 8
_LATIN, _CYRILLIC, _GREEK, _OTHER = 16, 32, 64, 128  # Armenian and Cherokee
_ALIKE = _CYRILLIC | _GREEK | _OTHER
_LETTER = _LATIN | _ALIKE
_REPLACEABLE = _DROPPED | _SEPARATOR | _HAMZA | _ALIKE

# Characters that nobody sees, such as soft hyphens, joiners and variation selectors (Default_Ignorable_Code_Point of
# Unicode 14), then the marks on Arabic letters and the line that stretches Arabic words.
_INVISIBLE: Final = (
    *((0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F)),
    *((0x200C, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF)),
    *((0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
)
_ARABIC_MARKS: Final = (
    *((0x610, 0x61A), (0x640, 0x640), (0x64B, 0x65F), (0x670, 0x670), (0x6D6, 0x6DC), (0x6DF, 0x6E8), (0x6EA, 0x6ED)),
)
# Thai, Lao, Tibetan, Myanmar, Khmer, New Tai Lue, Tai Le, Tai Tham, and East Asia, then spaces.
_SPACELESS: Final = (
    *((0xE00, 0x109F), (0x1780, 0x17FF), (0x1950, 0x19FF), (0x1A20, 0x1AAF), (0x2E80, 0xA4CF), (0xAC00, 0xD7FF)),
    *((0xF900, 0xFAFF), (0x20000, 0x3FFFF), (0x09, 0x0D), (0x20, 0x20), (0xA0, 0xA0), (0x2000, 0x200A)),
)
_SCRIPTS: Final = {
    _LATIN: ((0x41, 0x5A), (0x61, 0x7A), (0xC0, 0xD6), (0xD8, 0xF6), (0xF8, 0x24F)),
    _CYRILLIC: ((0x400, 0x481), (0x48A, 0x52F)),
    _GREEK: ((0x370, 0x3FF),),
    _OTHER: ((0x531, 0x587), (0x13A0, 0x13F5)),
}
# Arabic letters with a hamza, each with its letter without.
_ARABIC_LETTERS: Final = {0x622: 0x627, 0x623: 0x627, 0x624: 0x648, 0x625: 0x627, 0x626: 0x64A, 0x671: 0x627}
# Letters that look like Latin ones (confusables of Unicode Technical Standard 39), each with its Latin twin.
_TWINS: Final = {
    _CYRILLIC: (
        "\u0410\u0412\u0415\u0405\u0406\u0408\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425"
        "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0455\u0456\u0458\u04bb\u0501\u051b\u051d\u0475",
        "ABESIJKMHOPCTYXaeopcyxsijhdqwv",
    ),
    _GREEK: (
        "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7"
        "\u03b1\u03bd\u03bf\u03c1\u03c5\u03b9",
        "ABEZHIKMNOPTYXavopui",
    ),
    _OTHER: (
        "\u0555\u054d\u053c\u054f\u0561\u0563\u0566\u0570\u056c\u0578\u057d\u0581\u0585\u0575"
        "\u13aa\u13f4\u13df\u13a0\u13ac\u13c0\u13bb\u13a5\u13ab\u13e6\u13de\u13b7\u13e2\u13a1\u13da\u13a2\u13d9\u13b3\u13cd\u13c3",
        "OULSwqqhlnugojABCDEGHiJKLMPRSTVWYZ",
    ),
}
# Control characters but those of lines, and the anchors of annotations.
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ufff9-\ufffb]+")
_UNASSIGNED = "\ufffe"  # in place of each unassigned code point
# Three private characters in a row may be a script.
_WITHIN_WORDS = re.compile(rf"(?<=\w)[{_UNASSIGNED}\ue000-\uf8ff\U000f0000-\U0010ffff]{{1,2}}(?=\w)")


def without_fillers(text: str) -> str:
    """Return the text of a mail or page without control characters.

    Private and unassigned code points between two letters are left out too, up to two in a row. This is no step of
    `plain_letters`, because the signatures of a scheme must not change. The text of a producer keeps its characters,
    because events name places in it.
    """
    text = _CONTROLS.sub("", text)
    letters = set() if text.isascii() else set(beyond_ascii(text))
    kinds = {letter: unicodedata.category(letter) for letter in letters}
    if not {"Cn", "Co"} & set(kinds.values()):
        return text
    unassigned = [ord(each) for each, kind in kinds.items() if kind == "Cn" and not fold_table()[ord(each)] & REPLACED]
    return _WITHIN_WORDS.sub("", text.translate(dict.fromkeys(unassigned, _UNASSIGNED)))


def plain_letters(text: str) -> str:
    """Return a text in plain letters.

    1. Invisible characters are left out, and so are zero width spaces between letters of scripts with spaces.
    2. Arabic letters lose their vowel marks and their hamza.
    3. If a word mixes Latin, Cyrillic, Greek, Armenian or Cherokee, characters become those that they look like in the
       script of most of the text, in all words that mix scripts or consist of such characters.
    """
    if text.isascii():
        return text
    seen = _seen_kinds(beyond_ascii(text))
    if seen & _REPLACEABLE == 0:
        return text
    codes = _code_points(text)
    plain = codes
    if seen & (_DROPPED | _SEPARATOR | _HAMZA):
        plain = _without_hamza(_seen(plain))
    if seen & _ALIKE:
        plain = _in_one_script(plain)
    return text if plain is codes else plain.tobytes().decode("utf-32-le", "surrogatepass")


def is_plain(text: str) -> bool:
    """Return whether `plain_letters` keeps a text in any context."""
    return _seen_kinds(text) & _REPLACEABLE == 0


def _seen_kinds(text: str) -> int:
    return int(np.bitwise_or.reduce(_kinds().take(_code_points(text)), initial=0))


def beyond_ascii(text: str) -> str:
    """Return the characters of a text that are not of ASCII, in order."""
    # Deleting all ASCII bytes leaves whole code points, and is many times as fast as a look at all of the text.
    return text.encode("utf-8", "surrogatepass").translate(None, _ASCII).decode("utf-8", "surrogatepass")


def _seen(codes: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the code points that somebody sees, or that separate words."""
    codes = codes[_kinds().take(codes) & _DROPPED == 0]
    kinds = _kinds().take(codes)
    apart = np.ones(kinds.size + 2, dtype=np.bool_)  # the ends of the text separate as a space does
    np.not_equal(kinds & _APART, 0, out=apart[1:-1])
    seen: NDArray[np.uint32] = codes[(kinds & _SEPARATOR == 0) | apart[:-2] | apart[2:]]
    return seen


def _without_hamza(codes: NDArray[np.uint32]) -> NDArray[np.uint32]:
    places = np.flatnonzero(_kinds().take(codes) & _HAMZA)
    bare = codes.copy()
    bare[places] = _bare().take(codes[places])
    return bare


def _in_one_script(codes: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Replace letters that imitate those of the script in which most of the text is.

    Letters that look like others do not count for this. Without a word of two scripts all letters are what they seem.
    """
    scripts = _kinds().take(codes) & _LETTER
    both = scripts[1:] & scripts[:-1] == 0
    if not np.any(both & (scripts[1:] != 0) & (scripts[:-1] != 0)):
        return codes
    places = np.flatnonzero(scripts)
    certain = scripts[places[~_has_twin().take(codes[places])]]
    most = max(_SCRIPTS, key=lambda script: np.count_nonzero(certain == script))
    twins = _twins(most)
    firsts = np.flatnonzero(np.diff(places, prepend=-2) > 1)  # of each word, among the letters
    is_own = scripts[places] == most
    replaced = twins.take(codes[places])
    could_be_own = is_own | (replaced != codes[places])
    is_foreign = np.logical_or.reduceat(is_own, firsts) | np.logical_and.reduceat(could_be_own, firsts)
    chosen = np.repeat(is_foreign, np.diff(firsts, append=places.size))
    result = codes.copy()
    result[places[chosen]] = replaced[chosen]
    return result


def _code_points(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")


@cache
def _kinds() -> NDArray[np.uint8]:
    """Return what each code point is."""
    kinds = np.zeros(_CODE_POINTS, dtype=np.uint8)
    kinds[0x200B] = _SEPARATOR
    kinds[list(_ARABIC_LETTERS)] = _HAMZA
    ranges = {_DROPPED: (*_INVISIBLE, *_ARABIC_MARKS), _APART: _SPACELESS, **_SCRIPTS}
    for kind, spans in ranges.items():
        for first, last in spans:
            kinds[first : last + 1] |= kind
    return kinds


@cache
def _bare() -> NDArray[np.uint32]:
    """Return each letter up to the Arabic ones without its hamza."""
    bare = np.arange(_LETTERS, dtype=np.uint32)
    for letter, plain in _ARABIC_LETTERS.items():
        bare[letter] = plain
    return bare


@cache
def _has_twin() -> NDArray[np.bool_]:
    """Return which letters look like letters of another script."""
    has_twin = np.zeros(_LETTERS, dtype=np.bool_)
    has_twin[[ord(letter) for sides in _TWINS.values() for side in sides for letter in side]] = True
    return has_twin


@cache
def _twins(script: int) -> NDArray[np.uint32]:
    """Return the letter of a script that each letter looks like, itself if there is none."""
    twins = np.arange(_LETTERS, dtype=np.uint32)
    for letters, latin in _TWINS.values() if script == _LATIN else (_TWINS[script],):
        pairs = np.array([list(map(ord, letters)), list(map(ord, latin))], dtype=np.uint32)
        source, target = pairs if script == _LATIN else pairs[::-1]
        twins[source] = target
    return twins
