"""Characters that a person takes for others, or does not see."""

import re
import unicodedata
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nearstream.streams.fingerprints.unicode_tables import REPLACED, fold_table

_LETTERS = 0x1400  # all that can be replaced come before this one
_ASCII = bytes(range(0x80))

_LATIN, _CYRILLIC, _GREEK, _OTHER = 1, 2, 4, 8  # one bit each, the last for Armenian and Cherokee
_SCRIPTS: Final = {
    _LATIN: ((0x41, 0x5A), (0x61, 0x7A), (0xC0, 0xD6), (0xD8, 0xF6), (0xF8, 0x24F)),
    _CYRILLIC: ((0x400, 0x481), (0x48A, 0x52F)),
    _GREEK: ((0x370, 0x3FF),),
    _OTHER: ((0x531, 0x587), (0x13A0, 0x13F5)),
}
# Letters that look like Latin ones (confusables of Unicode Technical Standard 39), each with its Latin twin.
TWINS: Final = {
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

    Private and unassigned code points within words are left out too, up to two in a row. The text of a producer keeps
    its characters, because events name places in it.
    """
    text = _CONTROLS.sub("", text)
    letters = set() if text.isascii() else set(beyond_ascii(text))
    kinds = {letter: unicodedata.category(letter) for letter in letters}
    if not {"Cn", "Co"} & set(kinds.values()):
        return text
    unassigned = [ord(each) for each, kind in kinds.items() if kind == "Cn" and not fold_table()[ord(each)] & REPLACED]
    return _WITHIN_WORDS.sub("", text.translate(dict.fromkeys(unassigned, _UNASSIGNED)))


def beyond_ascii(text: str) -> str:
    """Return the characters of a text that are not of ASCII, in order."""
    # Deleting all ASCII bytes leaves whole code points, and is many times as fast as a look at all of the text.
    return text.encode("utf-8", "surrogatepass").translate(None, _ASCII).decode("utf-8", "surrogatepass")


def in_one_script(codes: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Replace characters that imitate those of the script in which most of the text is.

    If a word mixes Latin, Cyrillic, Greek, Armenian or Cherokee, characters become those that they look like in the
    script of most characters without a twin, in all words that mix scripts or consist of such characters.
    """
    scripts = _scripts().take(codes)
    if np.bitwise_or.reduce(scripts, initial=0) in (0, *_SCRIPTS):
        return codes
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


@cache
def _scripts() -> NDArray[np.uint8]:
    """Return the script of each code point, 0 for all others."""
    scripts = np.zeros(0x110000, dtype=np.uint8)
    for script, spans in _SCRIPTS.items():
        for first, last in spans:
            scripts[first : last + 1] = script
    return scripts


@cache
def _has_twin() -> NDArray[np.bool_]:
    """Return which letters look like letters of another script."""
    has_twin = np.zeros(_LETTERS, dtype=np.bool_)
    has_twin[[ord(letter) for sides in TWINS.values() for side in sides for letter in side]] = True
    return has_twin


@cache
def _twins(script: int) -> NDArray[np.uint32]:
    """Return the letter of a script that each letter looks like, itself if there is none."""
    twins = np.arange(_LETTERS, dtype=np.uint32)
    for letters, latin in TWINS.values() if script == _LATIN else (TWINS[script],):
        pairs = np.array([list(map(ord, letters)), list(map(ord, latin))], dtype=np.uint32)
        source, target = pairs if script == _LATIN else pairs[::-1]
        twins[source] = target
    return twins
