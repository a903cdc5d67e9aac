"""Spellings of one text that are no matter of single characters.

These are escapes of HTML in a text, bytes that were read in another charset, characters set apart, digits within words,
groups in numbers, and the umlauts of German and Scandinavian texts as two characters.
"""

import codecs
import html
import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any

from nearstream.streams.fingerprints.plain_letters import beyond_ascii

_ESCAPE = re.compile(r"&(?:amp;)?(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,8});")
_TAG = re.compile(r"&(?:amp;)?lt;/?[a-zA-Z](?:[^<>&]|&(?!(?:amp;)?[lg]t;)){0,500}(?:&(?:amp;)?gt;|>)")
_ONLY_BEYOND = b" " * 0x80 + bytes(range(0x80, 0x100))
# Charsets in which UTF-8 is read, each with a byte that UTF-8 of such a text has.
_CHARSETS = {"cp1252": b"\xc3", "latin-1": b"\xc3", "cp1250": b"\xc4", "cp1251": b"\xd0", "koi8-r": b"\xe2"}
_MISREAD_MIN, _MISREAD_SHARE, _SIGNS_SHARE, _RUNS = 6, 0.75, 0.08, 24
# Charsets of Russian that are read as each other or as Latin, and three characters that are a fifth of a Russian text.
# A text that is no Russian has so many of what they become only by chance, if it is short.
_RUSSIAN_AS = (("cp1251", "koi8-r"), ("koi8-r", "cp1251"), ("cp1252", "cp1251"), ("cp1252", "koi8-r"))
_FREQUENT, _FREQUENT_MIN, _FREQUENT_SHARE, _SAMPLE = "\u043e\u0430\u0438", 12, 0.15, 2_048
_BYTES_BEYOND = [bytes((byte,)) for byte in range(0x80, 0x100)]
_BEYOND = re.compile("[^\x00-\x7f]+")
# By byte what it is: `a` of a word, `0` a digit, `,` a sign that may be within words and numbers, or a blank. Print has
# signs and blanks beyond ASCII, which begin with two of these bytes.
_SIGNS, _BLANK = b".,'`-_*|/~\xe2", 0xC2
_SHAPE = bytes(
    ord(
        ","
        if byte in _SIGNS
        else "0"
        if byte in b"0123456789"
        else "a"
        if chr(byte).isalpha() or byte > _BLANK
        else " "
    )
    for byte in (0x20 if byte == _BLANK else byte for byte in range(0x100))
)
_FOLLOWING = bytes(range(0x80, 0xC0))
_APART = r"(?<![^\W_])[^\W\d_]({})[^\W\d_](?:\1[^\W\d_])*(?![^\W_])"
_SHARE_APART = 4  # at least one in so many characters, because formulas and names of code have some
_BLANKS_APART, _SIGNS_APART = re.compile(_APART.format(" ")), re.compile(_APART.format(r"[.\-_*|/~]"))
# A comma or apostrophe in front of a group of digits, also of two as in India.
_GROUP = re.compile(
    r"[,'\u2019](?<=[0-9].)(?<!\b0.)(?<![0-9]{4}.)(?<!\.[0-9]{3}.)(?=(?:[0-9]{2},){0,4}[0-9]{3}(?![0-9]))"
)
_GROUPS = re.compile(r"(?<![0-9+])(?<![0-9][ .])[1-9][0-9]{0,2}([ .])[0-9]{3}(?:\1[0-9]{3})+(?![ .-]?[0-9])")
_ADDRESS = re.compile(r"(?:(?:1[0-9]|2[0-5]|[1-9])?[0-9](?:\.|\Z)){4}")
# A digit, or one twice, within a word that can be spoken. Names of products and ids mostly cannot, or have more digits.
_WITH_DIGITS = re.compile(r"(?<![^\W_])[a-zA-Z]+(?:([013457])\1?[a-zA-Z]+)+(?![^\W_])")
_UNSPOKEN = re.compile("[aeiouy]{4}|[^aeiouy]{4}|^[^aeiouy]+$", re.IGNORECASE)
_SEEN_AS = str.maketrans("013457", "oieast")
_WORD_LETTERS = 4  # at least, and three more for each digit from the third one on
# Pairs for one umlaut, after the pairs for none, as in `neue` and `Quelle`. Replacing takes a tenth of a pattern.
_KEPT, _MARKED = ("aue", "eue", "que"), "\ufdd0"
_UMLAUTS = ("ae", "oe", "ue", "aa")
_AND = (" und ", " og ", " och ")  # which each page in these languages has several times
_AND_CHARACTERS, _HEAD = 2_000, 64


@lru_cache(maxsize=1)
def as_meant(text: str) -> str:
    """Return a text without escapes of HTML, and in the charset in which it was written.

    Escapes are resolved twice, and tags in escapes are left out.
    """
    if "&" in text and _ESCAPE.search(text):
        text = html.unescape(html.unescape(_TAG.sub(" ", text)))
    if text.isascii() or not _may_be_misread(text.encode("utf-8", "surrogatepass")):
        return text
    return _as_russian(_as_utf8(_as_utf8(text)))


def _may_be_misread(raw: bytes) -> bool:
    return b"\xc3" in raw or b"\xd0" in raw or b"\xd1" in raw or b"\xc4" in raw


def _as_utf8(text: str) -> str:
    """Return a text as UTF-8 where it was read in another charset.

    It was misread if most characters of the first runs beyond ASCII are UTF-8 in that charset, and some are signs, as
    in no word in capitals.
    """
    raw = text.encode("utf-8", "surrogatepass")
    found = {charset: 0 for charset, byte in _CHARSETS.items() if byte in raw}
    if not found:
        return text
    runs = b" ".join(raw.translate(_ONLY_BEYOND).split(None, _RUNS)[:_RUNS]).decode("utf-8", "ignore")
    for charset in found:
        sent = codecs.charmap_encode(runs, "replace", _bytes_in(charset))[0].decode("utf-8", "ignore")
        found[charset] = len(beyond_ascii(sent).encode())
    charset = max(found, key=lambda each: found[each])
    characters = len(runs) - runs.count(" ")
    if found[charset] < max(_MISREAD_MIN, _MISREAD_SHARE * characters):
        return text
    if sum(map(str.isalpha, runs)) > (1 - _SIGNS_SHARE) * characters:
        return text
    return _BEYOND.sub(lambda run: _sent(run[0], charset), text)


def _sent(run: str, charset: str) -> str:
    try:
        return codecs.charmap_encode(run, "strict", _bytes_in(charset))[0].decode()
    except UnicodeError:
        return run


@cache
def _bytes_in(charset: str) -> Any:  # noqa: ANN401 - a type of C, which `charmap_encode` reads
    """Return the byte of each character in a charset, where a byte without one is a control character."""
    return codecs.charmap_build("".join(bytes((byte,)).decode(charset, "ignore") or chr(byte) for byte in range(0x100)))


def _as_russian(text: str) -> str:
    """Return a text in the charset in which it looks like Russian, if it does not as it is."""
    sample = text[:_SAMPLE]
    if 2 * len(sample.encode("utf-8", "replace")) < 3 * len(sample):
        return text
    as_it_is = sum(map(sample.lower().count, _FREQUENT))
    least = max(_FREQUENT_MIN, _FREQUENT_SHARE * len(sample), 2 * as_it_is)
    for read, written in _RUSSIAN_AS:
        if sum(map(sample.count, _FREQUENT.encode(written).decode(read))) >= least:
            return text.translate(_read_again(read, written))
    return text


@cache
def _read_again(read: str, written: str) -> dict[int, str]:
    """Return what characters beyond ASCII are in the charset in which they were written."""
    both = [(each.decode(read, "ignore"), each.decode(written, "ignore")) for each in _BYTES_BEYOND]
    return {ord(one): other for one, other in both if one and other}


def joined(plain: str, text: str, *, has_umlauts: bool) -> str:
    """Join words set apart, groups of numbers and umlauts, and read digits in words."""
    for pattern, become in _respellings(text):
        plain = pattern.sub(become, plain)
    return _without_second_letters(plain) if has_umlauts else plain


def respelled(text: str) -> str:
    """Return what `joined` reads as other words and numbers, which makes a text another one."""
    return " ".join(
        found[0].lower()
        for pattern, become in _respellings(text)
        for found in pattern.finditer(text)
        if become(found) != found[0]
    )


@lru_cache(maxsize=1)
def _respellings(text: str) -> Sequence[tuple[re.Pattern[str], Callable[[re.Match[str]], str]]]:
    """Return patterns of what may be in a text, each with what becomes of a match."""
    raw = text.encode("utf-8", "surrogatepass").translate(_SHAPE, b"" if text.isascii() else _FOLLOWING)
    found: list[tuple[re.Pattern[str], Callable[[re.Match[str]], str]]] = []
    if b" a a a a " in raw:
        found.append((_BLANKS_APART, _together))
    if b"a,a,a,a" in raw and _SHARE_APART * sum(len(run[0]) for run in _SIGNS_APART.finditer(text)) > len(text):
        found.append((_SIGNS_APART, _together))
    if b"0" in raw:
        if b"0,000" in raw:
            found.append((_GROUP, _nothing))
        if b"0 000 000" in raw or b"0,000,000" in raw:
            found.append((_GROUPS, _number))
        if b"a0a" in raw or b"a00a" in raw:
            found.append((_WITH_DIGITS, _spoken))
    return found


def _nothing(_: re.Match[str]) -> str:
    return ""


def _together(found: re.Match[str]) -> str:
    return found[0].replace(found[1], "")


def _number(found: re.Match[str]) -> str:
    return found[0] if _ADDRESS.fullmatch(found[0]) else _together(found)


def _spoken(found: re.Match[str]) -> str:
    """Return a word as it is spoken, and what is hardly a word as it is."""
    digits, spoken = sum(map(str.isdigit, found[0])), found[0].translate(_SEEN_AS)
    is_word = len(spoken) - digits >= max(_WORD_LETTERS, 3 * digits - 2) and not _UNSPOKEN.search(spoken)
    return spoken if is_word else found[0]


def _without_second_letters(text: str) -> str:
    text = text.lower().replace("oee", "oe")  # an e behind an umlaut
    for kept in _KEPT:
        text = text.replace(kept, kept[:-1] + _MARKED + kept[-1])
    for both in _UMLAUTS:
        text = text.replace(both, both[0])
    return text.replace(_MARKED, "")


def writes_umlauts(text: str) -> bool:
    """Return whether the language of a text has umlauts that become two characters elsewhere."""
    text = text.lower() if text[:_HEAD].isupper() else text  # lower case of all texts takes long
    return any(text.count(word) > len(text) // _AND_CHARACTERS for word in _AND)
