"""Signing by the C twin, which is there where a compiler was."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from streams import _native
from streams.content import Content
from streams.folding import bmp_table
from streams.hashing import HashKey
from streams.normalize import NormalForm, complex_form, spaceless_characters
from streams.rules import AnchorRules, LdRules
from streams.scheme import Scheme

_POWERS = 65
_RATES = 8
_MASK = (1 << 64) - 1


class NativeSigning:
    """Signs in C without holding the interpreter lock; what NFKC has to see goes the way of the reference."""

    name = "native"

    def __init__(self, scheme: Scheme, key: HashKey) -> None:
        """Takes the scheme with its key.

        Raises:
            ValueError: A number of the scheme is beyond what the C twin can do.
        """
        self._text = scheme.text
        self._context = packed_context(scheme, key)
        _native.sign(self._context, b"", False)

    def normalize(self, text: str, raw: bytes) -> NormalForm:
        """As `Implementation.normalize`."""
        if len(raw) == len(text):
            data = _native.normalize_ascii(raw)
            return NormalForm(np.frombuffer(data, np.uint8), len(data), False)
        folded = _native.normalize_bmp(raw, packed_table())
        if folded is None:
            return complex_form(text, self._text)
        data, characters, letters, inside, holes = folded
        if holes:
            return self._filled(raw, data, letters, inside, holes)
        return self._form(data, characters, letters, inside)

    def _filled(
        self, raw: bytes, data: bytes, letters: int, inside: int, holes: list[tuple[int, int, int]]
    ) -> NormalForm:
        """The whole form, where stretches between spaces were left out."""
        pieces, done = [], 0
        for start, end, place in holes:
            form = complex_form(raw[start:end].decode("utf-8", "surrogatepass"), self._text)
            filling = form.data.tobytes()
            pieces += [data[done:place], filling]
            letters += form.characters - filling.count(b" ")
            inside += spaceless_characters(form)
            done = place
        pieces.append(data[done:])
        whole = b" ".join(filter(None, (piece.strip() for piece in pieces)))
        return self._form(whole, letters + whole.count(b" "), letters, inside)

    def _form(self, data: bytes, characters: int, letters: int, inside: int) -> NormalForm:
        spaceless = letters > 0 and self._text.spaceless_share * inside >= letters
        return NormalForm(np.frombuffer(data, dtype=np.uint8), characters, spaceless)

    def content(self, form: NormalForm) -> Content:
        """As `Implementation.content`."""
        return Content._make(_native.sign(self._context, form.data.data, form.spaceless))


def packed_context(scheme: Scheme, key: HashKey) -> bytes:
    """Tables, salts and numbers in the order of `Context` in _native.c, 8 bytes each."""
    sketch = scheme.sketch
    numbers = [
        *(key.sketch_salt, key.ld_salt, key.anchor_salt, scheme.text.word_bytes),
        *(sketch.bits, sketch.shingle_words, sketch.window_bytes),
        *_ld_numbers(scheme.ld),
        *_anchor_numbers(scheme.anchors),
    ]
    shifted = key.table * np.uint64(key.base)
    parts = (key.table, shifted, _powers(key.base), _powers(key.word_base), np.array(numbers, dtype=np.uint64))
    return np.concatenate(parts).astype("<u8").tobytes()


@cache
def packed_table() -> bytes:
    """What each UTF-16 unit becomes, with one bit for each that belongs to a script without spaces."""
    table = bmp_table()
    return table.units.astype("<u2").tobytes() + np.packbits(table.spaceless, bitorder="little").tobytes()


def _ld_numbers(rules: LdRules | None) -> list[int]:
    if rules is None:
        return [0] * (5 + 2 * _RATES)
    if rules.window_bytes != 16 or len(rules.rates) > _RATES:
        raise ValueError("windows of 16 bytes and at most 8 rates expected")
    rates = [*rules.rates, *[0] * (_RATES - len(rules.rates))]
    lengths = [*rules.lengths, *[0] * (_RATES - len(rules.lengths))]
    return [
        *(len(rules.rates), *rates, *lengths),
        *(rules.symbol_bits, rules.gap_bits, rules.gap_steps, rules.max_symbols),
    ]


def _anchor_numbers(rules: AnchorRules | None) -> list[int]:
    if rules is None:
        return [0] * 5
    return [rules.words, rules.window_bytes, rules.run, rules.spaceless_factor, rules.max_anchors]


def _powers(base: int) -> NDArray[np.uint64]:
    return np.array([pow(base, exponent, _MASK + 1) for exponent in range(_POWERS)], dtype=np.uint64)
