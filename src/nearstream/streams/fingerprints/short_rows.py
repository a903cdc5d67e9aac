"""The rows of lists and tables, which are compared in any order."""

import re
from typing import Final

_LEAST = 8  # rows
_CHARACTERS, _WORDS = 48, 5  # at most, of a short row
_NUMBER: Final = re.compile(r"\A[^\w\n]*[0-9]{1,4}[.)][ \t]")
_APART: Final = re.compile(r"[\W_]+")
_LETTER: Final = re.compile(r"[^\W\d_]")


def short_rows(text: str) -> str:
    """Return the rows of a list or table in one order, each as one word.

    Rows without a letter and second rows are left out, and so is a number in front. Nothing is returned for other
    texts: two thirds of the words of a list are in rows of up to five words.
    """
    lines = text.split("\n") if len(text) <= _CHARACTERS * text.count("\n") else []
    if len(lines) < _LEAST or 3 * sum(len(line) for line in lines if len(line) <= _CHARACTERS) < 2 * len(text):
        return ""
    rows, words, all_words = set(), 0, 0
    for line in lines:
        own = _APART.split(_NUMBER.sub("", line, count=1))
        count = len(own) - own.count("")
        all_words += count
        words += count * (count <= _WORDS)
        if count and _LETTER.search(line):
            rows.add("".join(own).lower())
    return " ".join(sorted(rows)) if len(rows) >= _LEAST and 3 * words >= 2 * all_words else ""
