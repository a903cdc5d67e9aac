"""One form for texts that differ only in form."""

import unicodedata
from collections.abc import Iterator, Sequence
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
_LAST_ASCII = 0x7F
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
    return normal_forms((text,), rules)[0]


def normal_forms(texts: Sequence[str], rules: TextRules = _RULES) -> list[NormalForm]:
    """The same for several texts, which are worked on as one."""
    ascii_forms = iter(_ascii_forms([text for text in texts if text.isascii()]))
    other_forms = iter(_other_forms([text for text in texts if not text.isascii()], rules))
    return [next(ascii_forms if text.isascii() else other_forms) for text in texts]


def _ascii_forms(texts: Sequence[str]) -> Iterator[NormalForm]:
    if not texts:
        return
    spaced = " ".join(["", *texts]).encode("ascii").translate(_ASCII)
    for piece in _single_spaces(np.frombuffer(spaced, dtype=np.uint8), [len(text) + 1 for text in texts]):
        yield NormalForm(piece, piece.size, spaceless=False)


def _other_forms(texts: Sequence[str], rules: TextRules) -> Iterator[NormalForm]:
    if not texts:
        return
    # A pair of lone surrogates looks like a code point here: both ways give spaces, or the complex path.
    spaced = [f" {text}".encode("utf-16-le", "surrogatepass") for text in texts]
    sizes = [len(each) // 2 for each in spaced]
    units = bmp_table().units.take(np.frombuffer(b"".join(spaced), dtype="<u2"))
    highest = np.maximum.reduceat(units, np.cumsum([0, *sizes[:-1]])).tolist()
    for text, piece, unit in zip(texts, _single_spaces(units, sizes), highest, strict=True):
        if unit == COMPLEX:
            yield _complex_form(text, rules)
        elif unit <= _LAST_ASCII:
            yield NormalForm(piece.astype(np.uint8), piece.size, spaceless=False)
        else:
            data = piece.astype("<u2", copy=False).tobytes().decode("utf-16-le").encode()
            spaceless = np.count_nonzero(bmp_table().spaceless.take(piece))
            yield _form(data, piece, int(spaceless), rules)


def _complex_form(text: str, rules: TextRules = _RULES) -> NormalForm:
    """The same as `normalize`, by the way that every text can go."""
    table = fold_table()
    folded: NDArray[np.uint32] = table.take(_code_points(unicodedata.normalize("NFKC", _tamed(text, rules.mark_run))))
    kept = _marks_on_text(folded)
    codes = np.full(folded.size + 1, SPACE, dtype="<u4")
    codes[1:][kept] = folded[kept] & CODE_POINT
    (piece,) = _single_spaces(codes, [codes.size])
    spaceless = np.count_nonzero(table.take(piece) & SPACELESS)
    return _form(piece.tobytes().decode("utf-32-le").encode(), piece, int(spaceless), rules)


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


def _single_spaces(codes: NDArray[_Unit], sizes: Sequence[int]) -> Iterator[NDArray[_Unit]]:
    """Pieces of these sizes, each of which begins with a space, without spaces at the ends or after a space."""
    letters = codes != SPACE
    kept = letters.copy()
    # The last space of a run stays if letters follow: one before the first letters of each piece, none at its end.
    kept[:-1] |= letters[1:]
    single: NDArray[_Unit] = codes[kept]
    start = done = 0
    for size in sizes:
        left = int(np.count_nonzero(kept[start : start + size]))
        yield single[done + 1 : done + left]
        start, done = start + size, done + left


def _form(data: bytes, codes: NDArray[np.uint16] | NDArray[np.uint32], spaceless: int, rules: TextRules) -> NormalForm:
    letters = codes.size - int(np.count_nonzero(codes == SPACE))
    return NormalForm(
        np.frombuffer(data, dtype=np.uint8), codes.size, letters > 0 and rules.spaceless_share * spaceless >= letters
    )
