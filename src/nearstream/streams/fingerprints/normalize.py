"""The normal form of a text, which ignores case, punctuation and layout."""

import unicodedata
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearstream.streams.fingerprints.parameters import TextRules
from nearstream.streams.fingerprints.unicode_tables import MARK_LIKE, REPLACED, SPACE, fold_table, unicode_tables
from nearstream.streams.native import native

_RULES = TextRules()
_PIECE_CHARACTERS = 16 * 1024  # of which NFKC is made while all other threads wait
_AROUND_CHARACTERS = 64  # more than any run of marks


class NormalForm(NamedTuple):
    """The letters, numbers and marks of a text, with single spaces."""

    data: bytes  # bytes of UTF-8, without spaces at the ends
    characters: int  # number of code points
    spaceless: bool  # whether enough of it is in scripts without spaces between words


def normalize(text: str, rules: TextRules = _RULES) -> NormalForm:
    """Return the normal form of a text.

    1. Lone surrogates, code points newer than Unicode 14.0, and marks after the 30th of a run become spaces.
    2. NFKC (Unicode Standard Annex 15).
    3. Each code point becomes its lower case, if that is one code point.
    4. All but letters, numbers and the marks on them become spaces.
    5. Runs of spaces become one space.

    This is not idempotent, because the lower case of a normalized text can contain pairs that NFKC would compose.
    """
    raw = text.encode("utf-8", "surrogatepass")
    tables = None if text.isascii() else unicode_tables()
    return NormalForm(*native.normal_form(tables, raw, rules.mark_run, rules.spaceless_share))


def nfkc(text: str, piece_characters: int = _PIECE_CHARACTERS) -> str:
    """Return the NFKC of a text whose runs of marks are short.

    Other threads run between its pieces.
    """
    if len(text) <= piece_characters:
        return unicodedata.normalize("NFKC", text)
    pieces, start = [], 0
    while start < len(text):
        end = min(start + piece_characters, len(text))
        while end < len(text) and not _can_be_cut(text, end):
            end += 1
        pieces.append(unicodedata.normalize("NFKC", text[start:end]))
        start = end
    return "".join(pieces)


def _can_be_cut(text: str, at: int) -> bool:
    """Return whether NFKC joins or swaps no characters across a place."""
    if unicodedata.combining(unicodedata.normalize("NFKD", text[at])[0]):
        return False
    before, after = text[max(0, at - _AROUND_CHARACTERS) : at], text[at : at + _AROUND_CHARACTERS]
    both = unicodedata.normalize("NFKC", before + after)
    return both == unicodedata.normalize("NFKC", before) + unicodedata.normalize("NFKC", after)


def without_unsafe(text: str, mark_run: int) -> str:
    """Replace by spaces what must not reach NFKC.

    These are lone surrogates, code points newer than Unicode 14.0, and marks after the first `mark_run` of a run. NFKC
    takes quadratic time in the length of a run of marks.
    """
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    folded = fold_table().take(codes)
    marks = np.flatnonzero(folded & MARK_LIKE != 0)
    surplus = marks[marks - _run_start(marks) >= mark_run]
    replaced = np.flatnonzero(folded & REPLACED != 0)
    if not (surplus.size or replaced.size):
        return text
    codes = codes.copy()
    codes[surplus] = SPACE
    codes[replaced] = SPACE
    return codes.tobytes().decode("utf-32-le")


def _run_start(positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each position the first of its run of consecutive ones."""
    indices = np.arange(positions.size)
    starts = np.diff(positions - indices, prepend=-1) != 0
    first: NDArray[np.int64] = positions[np.maximum.accumulate(np.where(starts, indices, 0))]
    return first
