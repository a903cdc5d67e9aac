"""A scheme and its key in the layout that C reads."""

import numpy as np

from nearstream.streams.fingerprints.hashing import DIGEST_BYTES, HashKey
from nearstream.streams.fingerprints.parameters import LD_WINDOW_BYTES, AnchorRules, LdRules, NoiseRules, SampledRules
from nearstream.streams.signing.scheme import Scheme

_MAX_RATES = 8  # of native/job.h, which has room for no more


def packed_context(scheme: Scheme, key: HashKey, digest_bytes: int = DIGEST_BYTES) -> bytes:
    """Return the table, salts and numbers for C, 8 bytes each.

    They have the order of `Numbers` in native/job.h.

    Args:
        scheme: The scheme to sign under.
        key: The key that the scheme was made for.
        digest_bytes: 16, or 0 to leave both digests empty.

    Raises:
        ValueError: The LD signature has other windows or more rates than C has room for.
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
        *_noise_numbers(scheme.noise),
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


def _noise_numbers(rules: NoiseRules | None) -> list[int]:
    return [rules.window_bytes, rules.rate, rules.max_keys] if rules else [0, 0, 0]
