"""Signing by the C twin, which is there where a compiler was."""

from collections.abc import Sequence

import numpy as np

from streams import _native
from streams.content import Noise, Signed
from streams.hashing import HashKey
from streams.native_tables import unicode_tables
from streams.rules import AnchorRules, LdRules
from streams.scheme import Scheme

_NEEDED = ("cheapest_way", "context", "meet", "pack_pairs", "sign", "sign_with_form", "unicode", "unpack_pairs")
if not all(hasattr(_native, name) for name in _NEEDED):
    raise ImportError("streams._native was built from other sources")

DIGEST_BYTES = 16
_RATES = 8


class NativeSigning:
    """Signs a text in one call to C, which lets other threads run beside long ones."""

    name = "native"

    def __init__(self, scheme: Scheme, key: HashKey, digest_bytes: int = DIGEST_BYTES) -> None:
        """Takes the scheme with its key; without bytes for digests there will be none.

        Raises:
            ValueError: A number of the scheme is beyond what the C twin can do.
        """
        self._context = _native.context(packed_context(scheme, key, digest_bytes))
        self._noise = Noise(scheme.noise, key) if scheme.noise else None

    def sign_many(self, texts: Sequence[str], max_bytes: int) -> list[Signed | None]:
        """As `Implementation.sign_many`, one by one but for what only numpy does."""
        if self._noise:
            return self._noisy(texts, max_bytes, self._noise)
        signed = []
        for text in texts:  # all in one place: a short text takes C no longer than a few calls in Python
            raw = text.encode("utf-8", "surrogatepass")
            tables = None if len(raw) == len(text) else unicode_tables()
            signed.append(_native.sign(self._context, tables, raw, max_bytes))
        return signed

    def _noisy(self, texts: Sequence[str], max_bytes: int, noise: Noise) -> list[Signed | None]:
        tables, raws = unicode_tables(), [text.encode("utf-8", "surrogatepass") for text in texts]
        both = [_native.sign_with_form(self._context, tables, raw, max_bytes) for raw in raws]
        noisy = iter(noise.added([each for each in both if each]))
        return [each and next(noisy) for each in both]


def packed_context(scheme: Scheme, key: HashKey, digest_bytes: int = DIGEST_BYTES) -> bytes:
    """Tables, salts and numbers in the order of `Numbers` in _job.h, 8 bytes each."""
    text, sketch = scheme.text, scheme.sketch
    numbers = [
        *(key.base, key.word_base, key.sketch_salt, key.ld_salt, key.anchor_salt),
        *np.frombuffer(key.digest_key, dtype="<u8").tolist(),
        *(digest_bytes, text.mark_run, text.spaceless_share, text.word_bytes),
        *(sketch.bits, sketch.shingle_words, sketch.window_bytes),
        *_ld_numbers(scheme.ld),
        *_anchor_numbers(scheme.anchors),
    ]
    return np.concatenate((key.table, np.array(numbers, dtype=np.uint64))).astype("<u8").tobytes()


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
        return [0] * 6
    numbers = (rules.words, rules.window_bytes, rules.run, rules.spaceless_factor)
    return [*numbers, rules.max_anchors, rules.dense_below]
