"""The normal form of a text, step by step."""

import unicodedata
from bisect import bisect_right

from nearstream.streams.fingerprints.parameters import TextRules
from nearstream.streams.fingerprints.unicode_tables import NEWER

_STARTS = [first for first, _ in NEWER]
_SPACELESS = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3040, 0x30FF), (0x31F0, 0x31FF),
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF),
)  # fmt: skip
_RULES = TextRules()


def is_newer(character: str) -> bool:
    """Return whether a character is newer than Unicode 14.0."""
    place = bisect_right(_STARTS, ord(character)) - 1
    return place >= 0 and ord(character) <= NEWER[place][1]


def normalized(text: str, rules: TextRules = _RULES) -> str:
    """Return the normal form of a text."""
    out, run = [], 0
    for c in text:
        kept = "\ufffd" if "\ud800" <= c <= "\udfff" else " " if is_newer(c) else c
        run = run + 1 if _category(kept) == "M" or kept in "\uff9e\uff9f" else 0
        out.append(" " if run > rules.mark_run else kept)
    lowered = [c.lower() if len(c.lower()) == 1 else c for c in unicodedata.normalize("NFKC", "".join(out))]
    words, carried = [], False
    for c in lowered:
        kind = _category(c)
        if kind != "M":
            carried = kind in "LN"
        words.append(c if carried else " ")
    return " ".join("".join(words).split())


def is_spaceless(form: str, rules: TextRules = _RULES) -> bool:
    """Return whether enough of a normal form is in scripts without spaces between words."""
    letters = [ord(c) for c in form if c != " "]
    inside = sum(any(first <= c <= last for first, last in _SPACELESS) for c in letters)
    return bool(letters) and rules.spaceless_share * inside >= len(letters)


def _category(character: str) -> str:
    return unicodedata.category(character)[0]
