"""Signing in C, available where a compiler built the extension."""

from collections.abc import Sequence

import numpy as np

from nearstream.streams.fingerprints.hashing import DIGEST_BYTES, HashKey
from nearstream.streams.fingerprints.parameters import LD_WINDOW_BYTES, AnchorRules, LdRules, SampledRules
from nearstream.streams.native import Signed, native
from nearstream.streams.signing.native_unicode import unicode_tables
from nearstream.streams.signing.numpy_backend import Noise
from nearstream.streams.signing.scheme import Scheme

# MAX_RATES of native/job.h, which has room for no more.
_MAX_RATES = 8


class NativeSigning:
    """Sign each text in one call to C.

    Other threads can run while C signs a long text.
    """

    name = "native"

    def __init__(self, scheme: Scheme, key: HashKey, digest_bytes: int = DIGEST_BYTES) -> None:
        """Prepare a scheme and its key for C.

        Args:
            scheme: The scheme to sign under.
            key: The key that the scheme was made for.
            digest_bytes: 16, or 0 to leave both digests empty.

        Raises:
            ImportError: The C extension is missing or was built from other sources.
            ValueError: A number of the scheme is out of the range of the C code.
        """
        self._context = native.context(packed_context(scheme, key, digest_bytes))
        self._noise = Noise(scheme.noise, key) if scheme.noise else None

    def sign_many(self, texts: Sequence[str], max_bytes: int) -> list[Signed | None]:
        """Sign several texts (see `Implementation.sign_many`).

        C signs them one by one. The sampled windows of the `noise` preset are added by numpy.
        """
        if self._noise:
            return self._sign_with_noise(texts, max_bytes, self._noise)
        signed = []
        for text in texts:  # no helper function, since C signs a short text in the time of a few Python calls
            raw = text.encode("utf-8", "surrogatepass")
            tables = None if len(raw) == len(text) else unicode_tables()
            signed.append(native.sign(self._context, tables, raw, max_bytes))
        return signed

    def _sign_with_noise(self, texts: Sequence[str], max_bytes: int, noise: Noise) -> list[Signed | None]:
        tables, raws = unicode_tables(), [text.encode("utf-8", "surrogatepass") for text in texts]
        results = [native.sign_with_form(self._context, tables, raw, max_bytes) for raw in raws]
        noisy = iter(noise.add([result for result in results if result]))
        return [result and next(noisy) for result in results]


def packed_context(scheme: Scheme, key: HashKey, digest_bytes: int = DIGEST_BYTES) -> bytes:
    """Return the table, salts and numbers for C, 8 bytes each.

    They have the order of `Numbers` in native/job.h.
    """
    text, sketch = scheme.text, scheme.sketch
    numbers = [
        *(key.base, key.word_base, key.sketch_salt, key.ld_salt, key.anchor_salt),
        *np.frombuffer(key.digest_key, dtype="<u8").tolist(),
        *(digest_bytes, text.mark_run, text.spaceless_share, text.word_bytes),
        *(sketch.bits, sketch.shingle_words, sketch.window_bytes),
        *_ld_numbers(scheme.ld),
        *_anchor_numbers(scheme.anchors),
        *_sampled_numbers(scheme.sampled),
    ]
    return np.concatenate((key.table, np.array(numbers, dtype=np.uint64))).astype("<u8").tobytes()


def _ld_numbers(rules: LdRules | None) -> list[int]:
    if rules is None:
        return [0] * (5 + 2 * _MAX_RATES)
    # The C code has the width of an LD window as a constant, so a scheme cannot set another one.
    if rules.window_bytes != LD_WINDOW_BYTES or len(rules.rates) > _MAX_RATES:
        raise ValueError(f"ld: windows of {LD_WINDOW_BYTES} bytes and at most {_MAX_RATES} rates expected")
    rates = [*rules.rates, *[0] * (_MAX_RATES - len(rules.rates))]
    lengths = [*rules.lengths, *[0] * (_MAX_RATES - len(rules.lengths))]
    return [
        *(len(rules.rates), *rates, *lengths),
        *(rules.symbol_bits, rules.gap_bits, rules.gap_steps, rules.max_symbols),
    ]


def _anchor_numbers(rules: AnchorRules | None) -> list[int]:
    if rules is None:
        return [0] * 6
    numbers = (rules.words, rules.window_bytes, rules.run, rules.spaceless_factor)
    return [*numbers, rules.max_anchors, rules.dense_below]


def _sampled_numbers(rules: SampledRules | None) -> list[int]:
    return [rules.below_bytes, rules.usual_keys, rules.max_keys] if rules else [0, 0, 0]
