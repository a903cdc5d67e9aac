"""Generate `streams/fingerprints/letters.py`: python -m tests.support.letter_table.

It reads the Unicode data of Python 3.11, which is of version 14.0. A test compares the file with what this makes.
"""

import sys
import textwrap
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from nearstream.streams.fingerprints.unicode_tables import NEWER, lower_case

FILE = Path(__file__).parents[2] / "streams/fingerprints/letters.py"
UNICODE = "14.0.0"
_HEAD = '''"""Letters that a person reads as others, made by tests/support/letter_table.py. Do not edit it.

Each key is a source in Unicode 14.0. Its rows are hexadecimal code points and what they become, for texts in NFKC.
"""

# fmt: off
LETTERS: dict[str, str] = {
'''
_NEWER = {code for first, last in NEWER for code in range(first, last + 1)}
_STANDARD = "The Unicode Standard 14.0, section"
# Rows that no file of the Unicode Character Database has. Each letter becomes the last of its row.
_SAME = {
    f"{_STANDARD} 9.2, Arabic: yeh with and without dots": "\u0649\u06cc\u064a",
    f"{_STANDARD} 9.2, Arabic: forms of kaf": "\u06a9\u06aa\u0643",
    f"{_STANDARD} 9.2, Arabic: forms of heh, and teh marbuta": "\u0629\u06be\u06c0\u06c1\u06c2\u06c3\u06d5\u0647",
    f"{_STANDARD} 7.8, Modifier Letters: apostrophes": "\u02b9\u02bb\u02bc\u02bd\u02be\u02bf\u02c8\ua78b\ua78c'",
    f"{_STANDARD} 7.1, Latin: s with cedilla for comma below": "\u015f\u0219",
    f"{_STANDARD} 7.1, Latin: t with cedilla for comma below": "\u0163\u021b",
    "CaseFolding.txt, status T: Turkish and Azeri i": "\u0131i",
}
_AS = {
    f"{_STANDARD} 9.1, Hebrew: digraphs of Yiddish": {
        "\u05f0": "\u05d5\u05d5", "\u05f1": "\u05d5\u05d9", "\u05f2": "\u05d9\u05d9",
    },
    f"{_STANDARD} 12.9, Malayalam: chillu forms": {
        "\u0d7a": "\u0d23\u0d4d", "\u0d7b": "\u0d28\u0d4d", "\u0d7c": "\u0d30\u0d4d",
        "\u0d7d": "\u0d32\u0d4d", "\u0d7e": "\u0d33\u0d4d", "\u0d7f": "\u0d15\u0d4d",
    },
    f"{_STANDARD} 12.2, Bengali: khanda ta": {"\u09ce": "\u09a4\u09cd"},
    f"{_STANDARD} 7.4, Cyrillic: io": {"\u0451": "\u0435"},
}  # fmt: skip
_HEBREW_MARKS = "UnicodeData.txt, category Mn: points and accents of Hebrew"
_BREAK = "LineBreak.txt, class ZW: zero width space"
_GREEK = "UnicodeData.txt, decomposition: Greek without accents"
_DIGITS = "UnicodeData.txt, decimal digit values"
_FOLDED = "CaseFolding.txt, status C and F"
_GREEK_LETTERS = range(0x370, 0x400)


def rows() -> Iterator[tuple[str, str, str]]:
    """Yield the source of each row, the letter, and what it becomes."""
    listed = {letter: (source, same[-1]) for source, same in _SAME.items() for letter in same[:-1]}
    listed |= {letter: (source, plain) for source, each in _AS.items() for letter, plain in each.items()}
    for code in range(sys.maxunicode + 1):
        letter = chr(code)
        if code in _NEWER or unicodedata.category(letter) in ("Cn", "Cs", "Co"):
            continue
        if unicodedata.normalize("NFKC", letter) == letter:
            source, plain = _row(letter, listed)
            if "".join(map(lower_case, plain)) != lower_case(letter):
                yield source, letter, plain


def _row(letter: str, listed: dict[str, tuple[str, str]]) -> tuple[str, str]:
    folded = letter.casefold().replace("i\u0307", "i")
    if letter == "\u200b":
        return _BREAK, ""
    if 0x591 <= ord(letter) <= 0x5C7 and unicodedata.category(letter) == "Mn":
        return _HEBREW_MARKS, ""
    if folded in listed:
        return listed[folded]
    if unicodedata.category(letter) == "Nd":
        return _DIGITS, str(unicodedata.decimal(letter))
    parts = unicodedata.normalize("NFD", folded)
    if ord(parts[0]) in _GREEK_LETTERS:
        bare = "".join(part for part in parts if not unicodedata.combining(part)).casefold()
        return (_GREEK, bare) if bare != folded else (_FOLDED, folded)
    return _FOLDED, folded


def table() -> str:
    """Return the text of the file.

    Raises:
        RuntimeError: This Python has other data.
    """
    if unicodedata.unidata_version != UNICODE:
        raise RuntimeError(f"Unicode {UNICODE} expected, not {unicodedata.unidata_version}: use Python 3.11")
    by_source: dict[str, list[str]] = {}
    for source, letter, plain in rows():
        by_source.setdefault(source, []).append(f"{ord(letter):x}:" + "+".join(f"{ord(each):x}" for each in plain))
    lines = []
    for source, each in sorted(by_source.items()):
        wrapped = textwrap.wrap(" ".join(each), 109)
        lines += [f'    "{source}": (', *(f'        "{line} "' for line in wrapped), "    ),"]
    return _HEAD + "\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    FILE.write_text(table(), encoding="utf-8")
