"""What is wrong with the inside of a signature that came from elsewhere."""

import numpy as np
from numpy.typing import NDArray

from schemas.signature import Signature
from streams.packing import unpack_varints, unpack_words
from streams.rules import AnchorRules, LdRules, NoiseRules, SketchRules

_LARGEST_RATE = 1 << 30
_LARGEST_FORM = 1 << 30  # bytes; far beyond every limit of texts


def fault(
    signature: Signature,
    sketch: SketchRules,
    ld: LdRules | None,
    anchors: AnchorRules | None,
    noise: NoiseRules | None,
) -> str:
    """Field and expectation of the first fault, or an empty string; never a value of the signature."""
    if len(signature.digest) != 16 or len(signature.raw_digest) != 16:
        return "digest, raw_digest: 16 bytes expected"
    size = sketch.slots * sketch.bits // 8
    if len(signature.sketch) != size:
        return f"sketch: {size} bytes expected"
    most = (anchors.max_anchors if anchors else 0) + (noise.max_keys if noise else 0)
    return _ld_fault(signature, ld) or _anchor_fault(signature.anchors, most) or _size_fault(signature)


def _ld_fault(signature: Signature, rules: LdRules | None) -> str:
    if rules is None:
        return "rate, ld, gaps: none expected" if signature.rate or signature.ld or signature.gaps else ""
    first = rules.first_rate(signature.n_bytes)
    rate = signature.rate
    if rate & (rate - 1) or not first <= rate <= _LARGEST_RATE:
        return f"rate: a power of two from {first} expected"
    try:
        symbols, positions = _places(signature, rules)
    except ValueError as error:
        return f"ld, gaps: {error}"
    if symbols > rules.max_symbols:
        return f"ld: at most {rules.max_symbols} symbols expected"
    # Every symbol stands for a whole window inside the text.
    if symbols and not 0 <= int(positions[-1]) <= signature.n_bytes - rules.window_bytes:
        return "ld, gaps: positions inside the text expected"
    return ""


def _places(signature: Signature, rules: LdRules) -> tuple[int, NDArray[np.int64]]:
    """How many symbols there are, with their positions in bytes; ValueError if they cannot be read."""
    if rules.gap_bits:
        if signature.gaps:
            raise ValueError("gaps beside their symbols expected")
        gaps = unpack_words(signature.ld)[1]
        return gaps.size, np.cumsum(gaps)
    gaps = unpack_varints(signature.gaps)
    if len(signature.ld) != 2 * gaps.size:
        raise ValueError("2 bytes and one gap for each symbol expected")
    unit = signature.rate // rules.gap_steps
    # Before they are multiplied, or large ones would come out small.
    if int(gaps.max(initial=0)) > signature.n_bytes // unit:
        raise ValueError("gaps inside the text expected")
    return gaps.size, np.cumsum(gaps) * unit


def _anchor_fault(packed: bytes, most: int) -> str:
    if len(packed) % 8 or len(packed) > 8 * most:
        return f"anchors: at most {most} of 8 bytes expected"
    values = np.frombuffer(packed, dtype="<u8")
    if not bool(np.all(values[1:] > values[:-1])):
        return "anchors: ascending values expected, each once"
    return ""


def _size_fault(signature: Signature) -> str:
    n_bytes, characters = signature.n_bytes, signature.characters
    words, shingles = signature.words, signature.shingles
    if not any((n_bytes, characters, words, shingles)):
        return ""
    if not characters <= n_bytes <= min(4 * characters, _LARGEST_FORM):
        return "n_bytes, characters: those of a text in UTF-8 expected"
    if not (0 < words <= characters and 0 < shingles <= characters):
        return "words, shingles: as many as characters at most, but some, expected"
    return ""
