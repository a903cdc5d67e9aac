"""The normal forms of texts, made in numpy."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from nearstream.streams.fingerprints.normalize import nfkc, without_unsafe
from nearstream.streams.fingerprints.parameters import TextRules
from nearstream.streams.fingerprints.unicode_tables import (
    BASE,
    CODE_POINT,
    COMPLEX,
    MARK,
    SPACE,
    SPACELESS,
    bmp_table,
    fold_table,
)
from tests.reference.ragged import run_start

_ASCII = bytes(ord(chr(byte).lower()) if chr(byte).isalnum() and byte < 0x80 else SPACE for byte in range(256))
_RULES = TextRules()
_LAST_ASCII = 0x7F
_Unit = TypeVar("_Unit", np.uint8, np.uint16, np.uint32)


class NormalForm(NamedTuple):
    """The letters, numbers and marks of a text, with single spaces.

    Attributes:
        data: Bytes of UTF-8, without spaces at the ends.
        characters: Number of code points.
        spaceless: Whether enough of it is in scripts without spaces between words.
    """

    data: NDArray[np.uint8]
    characters: int
    spaceless: bool


def normal_forms(texts: Sequence[str], rules: TextRules = _RULES) -> list[NormalForm]:
    """Return the normal form of each text, in order.

    numpy works on all texts at once, which is faster for short ones.
    """
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
    # Two neighbouring lone surrogates look like one code point here. Either way the result is a space, or the complex
    # path is taken.
    spaced = [f" {text}".encode("utf-16-le", "surrogatepass") for text in texts]
    sizes = [len(encoded) // 2 for encoded in spaced]
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
    """Return the normal form of any text, without `bmp_table`."""
    table = fold_table()
    composed = nfkc(without_unsafe(text, rules.mark_run))
    folded: NDArray[np.uint32] = table.take(_code_points(composed))
    kept = _marks_on_text(folded)
    codes = np.full(folded.size + 1, SPACE, dtype="<u4")
    codes[1:][kept] = folded[kept] & CODE_POINT
    (piece,) = _single_spaces(codes, [codes.size])
    spaceless = np.count_nonzero(table.take(piece) & SPACELESS)
    return _form(piece.tobytes().decode("utf-32-le").encode(), piece, int(spaceless), rules)


def _marks_on_text(folded: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Return which code points are letters, numbers, or marks on them.

    A mark is on a letter or number if this is the nearest code point before it that is not a mark.
    """
    bases: NDArray[np.bool_] = folded & BASE != 0
    marks = np.flatnonzero(folded & MARK != 0)
    # There is no code point before the first one. Marks at the start refer to the first mark, which is no base.
    carriers = np.maximum(run_start(marks) - 1, 0)
    bases[marks] = bases[carriers]
    return bases


def _code_points(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")


def _single_spaces(codes: NDArray[_Unit], sizes: Sequence[int]) -> Iterator[NDArray[_Unit]]:
    """Yield pieces of these sizes with only single spaces between words.

    No spaces remain at the ends. Each piece must start with a space.
    """
    letters = codes != SPACE
    kept = letters.copy()
    # Keep the last space of a run if letters follow. Then each piece has one space before its first letters, and none
    # at its end.
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
