"""One form for texts that differ only in form."""

import unicodedata
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from streams.folding import (
    BASE,
    CODE_POINT,
    COMPLEX,
    MARK,
    MARK_LIKE,
    REPLACED,
    SPACE,
    SPACELESS,
    bmp_table,
    fold_table,
)
from streams.rules import TextRules
from streams.runs import first_place

_ASCII = bytes(ord(chr(byte).lower()) if chr(byte).isalnum() and byte < 0x80 else SPACE for byte in range(256))
_RULES = TextRules()
_Unit = TypeVar("_Unit", np.uint8, np.uint16, np.uint32)


class NormalForm(NamedTuple):
    """Letters, numbers and their marks in lower case, single spaces between words.

    Attributes:
        data: UTF-8, no space at the ends.
        characters: Code points.
        spaceless: Enough of it is in scripts without spaces between words.
    """

    data: NDArray[np.uint8]
    characters: int
    spaceless: bool


def normalize(text: str, rules: TextRules = _RULES) -> NormalForm:
    """The normal form of a text.

    Lone surrogates, code points newer than Unicode 14.0, and marks after the 30th of a run become spaces; then NFKC
    (Unicode Standard Annex 15); then the lower case of each code point where it is one code point; then all but
    letters, numbers and the marks on them become spaces; then runs of spaces become one. Not idempotent: lower case
    after NFKC can leave pairs that NFKC would compose.

    Args:
        text: Any string.
        rules: The longest run of marks, and what share makes a text spaceless.
    """
    if text.isascii():
        ascii_form = _single_spaces(np.frombuffer(text.encode("ascii").translate(_ASCII), dtype=np.uint8))
        return NormalForm(ascii_form, ascii_form.size, spaceless=False)
    table = bmp_table()
    # A pair of lone surrogates looks like a code point here: both ways give spaces, or the complex path.
    units = table.units.take(np.frombuffer(text.encode("utf-16-le", "surrogatepass"), dtype="<u2"))
    if np.any(units == COMPLEX):
        return _complex_form(text, rules)
    units = _single_spaces(units)
    data = units.astype("<u2", copy=False).tobytes().decode("utf-16-le").encode()
    spaceless = np.count_nonzero(table.spaceless.take(units))
    return _form(data, units, int(spaceless), rules)


def _complex_form(text: str, rules: TextRules = _RULES) -> NormalForm:
    """The same as `normalize`, by the way that every text can go."""
    table = fold_table()
    folded: NDArray[np.uint32] = table.take(_code_points(unicodedata.normalize("NFKC", _tamed(text, rules.mark_run))))
    kept = _marks_on_text(folded)
    codes = _single_spaces(np.where(kept, folded & CODE_POINT, SPACE).astype("<u4"))
    spaceless = np.count_nonzero(table.take(codes) & SPACELESS)
    return _form(codes.tobytes().decode("utf-32-le").encode(), codes, int(spaceless), rules)


def _tamed(text: str, mark_run: int) -> str:
    """The text without what NFKC must not see: surrogates, newer code points, long runs of marks.

    NFKC is quadratic in the length of a run of marks.
    """
    codes = _code_points(text)
    folded = fold_table().take(codes)
    marks = np.flatnonzero(folded & MARK_LIKE != 0)
    surplus = marks[marks - first_place(marks) >= mark_run]
    replaced = np.flatnonzero(folded & REPLACED != 0)
    if not (surplus.size or replaced.size):
        return text
    codes = codes.copy()
    codes[surplus] = SPACE
    codes[replaced] = SPACE
    return codes.tobytes().decode("utf-32-le")


def _marks_on_text(folded: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Letters and numbers, with the marks whose nearest preceding code point that is no mark is one of these."""
    bases: NDArray[np.bool_] = folded & BASE != 0
    marks = np.flatnonzero(folded & MARK != 0)
    # Before the first code point stands none: marks there fall back on a mark, which is no base.
    carriers = np.maximum(first_place(marks) - 1, 0)
    bases[marks] = bases[carriers]
    return bases


def _code_points(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")


def _single_spaces(codes: NDArray[_Unit]) -> NDArray[_Unit]:
    """The same without spaces at the ends or after a space."""
    letters = codes != SPACE
    kept = letters.copy()
    # The last space of a run stays, hence none at the end.
    kept[:-1] |= letters[1:]
    single: NDArray[_Unit] = codes[kept]
    return single[1:] if single.size and single[0] == SPACE else single


def _form(data: bytes, codes: NDArray[np.uint16] | NDArray[np.uint32], spaceless: int, rules: TextRules) -> NormalForm:
    letters = codes.size - int(np.count_nonzero(codes == SPACE))
    return NormalForm(
        np.frombuffer(data, dtype=np.uint8), codes.size, letters > 0 and rules.spaceless_share * spaceless >= letters
    )
