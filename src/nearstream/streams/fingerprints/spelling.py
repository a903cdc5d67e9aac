"""Spellings of one text that are no matter of single characters.

These are escapes of HTML in a text, UTF-8 that was read as Windows-1252, characters set apart, digits within words,
numbers with and without groups, and the umlauts of German and Scandinavian texts as two characters.
"""

import html
import re

from nearstream.streams.fingerprints.plain_letters import beyond_ascii

_ESCAPE = re.compile(r"&(?:amp;)?(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,8});")
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,500}>")
_HIGH = bytes(range(0x80, 0xC0))
# What Windows-1252 and Latin-1 make of the bytes that follow the first one of a character in UTF-8.
_FOLLOWING = {ord(each): byte for byte, each in zip(_HIGH, _HIGH.decode("latin-1"), strict=True)}
_FOLLOWING |= {ord(bytes([byte]).decode("cp1252", "replace")): byte for byte in _HIGH}
_FOLLOWING.pop(0xFFFD)
_AFTER = f"[{''.join(map(re.escape, map(chr, _FOLLOWING)))}]"
_MISREAD = re.compile(f"(?:[\u00c2-\u00df]{_AFTER}|[\u00e0-\u00ef]{_AFTER}{{2}}|[\u00f0-\u00f4]{_AFTER}{{3}})+")
_MISREAD_MIN = 3
_LEAD = "\u00c2".encode()[:1]  # with which each character begins in UTF-8 that begins such a run
# By byte what it is: `a` of a word, `0` a digit, `,` a sign within numbers, or a blank.
_SHAPE = bytes(
    ord("a" if chr(byte).isalpha() or byte >= 0xC0 else "0" if chr(byte).isdigit() else "," if byte in b",.'" else " ")
    for byte in range(256)
)
_APART, _GROUPED = b" a a a a ", b"0,000,000"
_LETTERS_APART = re.compile(r"(?<![^\W_])(?:[^\W\d_] )+[^\W\d_](?![^\W_])")
_GROUPS = re.compile(r"(?<![0-9.,'])[0-9]{1,3}([,.'])[0-9]{3}(?:\1[0-9]{3})+(?![0-9])")
_WITHIN = (b"a0a", b"a00a")
# A digit, or one twice, within a word that can be spoken. Names of products and ids mostly cannot, or have more digits.
_WITH_DIGITS = re.compile(r"(?<![^\W_])[a-zA-Z]+(?:([013457])\1?[a-zA-Z]+)+(?![^\W_])")
_UNSPOKEN = re.compile("[aeiouy]{4}|[^aeiouy]{4}|^[^aeiouy]+$", re.IGNORECASE)
_SEEN_AS = str.maketrans("013457", "oieast")
_WORD_LETTERS = 4  # at least, and three more for each digit from the third one on
# Pairs for one umlaut, after the pairs for none, as in `neue` and `Quelle`. Replacing takes a tenth of a pattern.
_KEPT, _MARKED = ("aue", "eue", "que"), "\ufdd0"
_UMLAUTS = ("ae", "Ae", "oe", "Oe", "ue", "Ue", "aa", "Aa")
_AND = (" und ", " og ", " och ")  # which each page in these languages has several times
_AND_CHARACTERS = 2_000


def as_meant(text: str) -> str:
    """Return a text without escapes of HTML, and as UTF-8 where it was read as Windows-1252.

    Escapes are resolved twice, and tags that come out of them are left out. UTF-8 was misread if there are three such
    runs at least, and most characters beyond ASCII belong to them.
    """
    if "&" in text and _ESCAPE.search(text):
        meant = html.unescape(html.unescape(text))
        text = _TAG.sub(" ", meant) if "&lt;" in text else meant
    if text.isascii() or _LEAD not in text.encode("utf-8", "surrogatepass") or not _MISREAD.search(text):
        return text
    misread = sum(len(run) for run in _MISREAD.findall(text))
    if misread < 2 * _MISREAD_MIN or 2 * misread < len(beyond_ascii(text)):
        return text
    return _MISREAD.sub(_as_utf8, text)


def _as_utf8(found: re.Match[str]) -> str:
    data = bytes(_FOLLOWING.get(ord(each), ord(each)) for each in found[0])
    return data.decode("utf-8", "ignore") or found[0]


def joined(text: str, *, has_umlauts: bool) -> str:
    """Join words set apart, groups of numbers and umlauts, and read digits within words."""
    raw = _shape(text)
    if _APART in raw:
        text = _LETTERS_APART.sub(lambda found: found[0].replace(" ", ""), text)
    if _GROUPED in raw:
        text = _GROUPS.sub(lambda found: found[0].replace(found[1], ""), text)
    if any(within in raw for within in _WITHIN):
        text = _WITH_DIGITS.sub(lambda found: _spoken(found[0]) or found[0], text)
    return _without_second_letters(text) if has_umlauts else text


def words_with_digits(text: str) -> str:
    """Return the words with digits that are read, which make a text another one."""
    if not any(within in _shape(text) for within in _WITHIN):
        return ""
    return " ".join(found[0].lower() for found in _WITH_DIGITS.finditer(text) if _spoken(found[0]))


def _spoken(word: str) -> str:
    """Return a word as it is spoken, empty if it is hardly a word."""
    digits, spoken = sum(map(str.isdigit, word)), word.translate(_SEEN_AS)
    is_word = len(word) - digits >= max(_WORD_LETTERS, 3 * digits - 2) and not _UNSPOKEN.search(spoken)
    return spoken if is_word else ""


def _shape(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass").translate(_SHAPE, _HIGH)


def _without_second_letters(text: str) -> str:
    text = text.replace("oee", "oe")  # an e behind an umlaut
    for kept in _KEPT:
        text = text.replace(kept, kept[:-1] + _MARKED + kept[-1])
    for both in _UMLAUTS:
        text = text.replace(both, both[0])
    return text.replace(_MARKED, "")


def writes_umlauts(text: str) -> bool:
    """Return whether the language of a text has umlauts that become two characters elsewhere."""
    return any(text.count(word) > len(text) // _AND_CHARACTERS for word in _AND)
