"""Which field of a signature that another process made is invalid."""

import numpy as np

from nearstream.schemas.documents.document import ADDRESS_BYTES
from nearstream.schemas.documents.signature import Signature
from nearstream.streams.fingerprints.hashing import DIGEST_BYTES
from nearstream.streams.fingerprints.parameters import (
    GAP_BITS,
    WINDOW_RULES,
    AnchorRules,
    LdRules,
    NoiseRules,
    SampledRules,
    SketchRules,
)

_LARGEST_RATE = 1 << 30
_VARINT_BYTES = 6  # 42 bits
_ESCAPE = (1 << GAP_BITS) - 1  # in place of a gap that follows in a word of its own
_LARGEST_FORM = 1 << 30  # bytes, far beyond every limit of texts


def invalid_field(
    signature: Signature,
    sketch: SketchRules,
    ld: LdRules,
    anchors: AnchorRules,
    noise: NoiseRules | None,
    sampled: SampledRules | None,
) -> str:
    """Return the first invalid field with what was expected of it.

    The result is an empty string if all fields are valid. It never contains a value of the signature.
    """
    if not len(signature.digest) == len(signature.raw_digest) == DIGEST_BYTES:
        return f"digest, raw_digest: {DIGEST_BYTES} bytes expected"
    if len(signature.sender) not in (0, ADDRESS_BYTES) or len(signature.recipients) % ADDRESS_BYTES:
        return f"sender, recipients: {ADDRESS_BYTES} bytes expected for each address"
    size = sketch.slots * sketch.bits // 8
    if len(signature.sketch) != size:
        return f"sketch: {size} bytes expected"
    most = anchors.max_anchors + (noise.max_keys if noise else 0)
    most += sampled.max_keys if sampled else 0
    return _invalid_ld(signature, ld) or _invalid_anchors(signature, most) or _invalid_sizes(signature)


def _invalid_ld(signature: Signature, rules: LdRules) -> str:
    first = rules.first_rate(signature.n_bytes)
    rate = signature.rate
    if rate & (rate - 1) or not first <= rate <= _LARGEST_RATE:
        return f"rate: a power of two from {first} expected"
    try:
        symbols, end = _symbols_and_end(signature, rules)
    except ValueError as error:
        return f"ld, gaps: {error}"
    if symbols > rules.max_symbols:
        return f"ld: at most {rules.max_symbols} symbols expected"
    # A symbol represents a complete window, so the last window must end inside the text.
    if symbols and not 0 <= end <= signature.n_bytes - rules.window_bytes:
        return "ld, gaps: positions inside the text expected"
    return ""


def _symbols_and_end(signature: Signature, rules: LdRules) -> tuple[int, int]:
    """Return the number of symbols, and the position of the last one in bytes."""
    if rules.gap_bits:
        if signature.gaps:
            raise ValueError("gaps packed with their symbols expected")
        return _words_end(signature.ld)
    gaps = _varints(signature.gaps)
    if len(signature.ld) != 2 * len(gaps):
        raise ValueError("2 bytes and one gap for each symbol expected")
    unit = signature.rate // rules.gap_steps
    return len(gaps), sum(gaps) * unit


def _words_end(ld: bytes) -> tuple[int, int]:
    if len(ld) % 4:
        raise ValueError("expected a multiple of 4 bytes")
    words = np.frombuffer(ld, "<u4")
    gaps = words & _ESCAPE
    if not np.any(gaps == _ESCAPE):
        return gaps.size, int(gaps.sum())
    symbols, end, rest = 0, 0, iter(words.tolist())
    for word in rest:
        gap = word & _ESCAPE if word & _ESCAPE < _ESCAPE else next(rest, -1)
        if gap < 0:
            raise ValueError("expected a gap after the last escape")
        symbols, end = symbols + 1, end + gap
    return symbols, end


def _varints(packed: bytes) -> list[int]:
    """Return numbers in unsigned LEB128, each with at most 6 bytes."""
    numbers, number, bits = [], 0, 0
    for byte in packed:
        number |= (byte & 0x7F) << bits
        bits += 7
        if byte < 0x80:
            numbers.append(number)
            number = bits = 0
        elif bits == 7 * _VARINT_BYTES:
            raise ValueError(f"expected numbers of at most {_VARINT_BYTES} bytes")
    if bits:
        raise ValueError("expected the last byte of the last number")
    return numbers


def _invalid_anchors(signature: Signature, most: int) -> str:
    fields = ("anchors", signature.anchors, most), ("windows", signature.windows, WINDOW_RULES.max_anchors)
    for name, packed, limit in fields:
        if len(packed) % 8 or len(packed) > 8 * limit:
            return f"{name}: at most {limit} values of 8 bytes expected"
        values = np.frombuffer(packed, "<u8")
        if not np.all(values[1:] > values[:-1]):
            return f"{name}: distinct values in ascending order expected"
    return ""


def _invalid_sizes(signature: Signature) -> str:
    n_bytes, characters = signature.n_bytes, signature.characters
    words, shingles = signature.words, signature.shingles
    if not any((n_bytes, characters, words, shingles)):
        return ""
    if not characters <= n_bytes <= min(4 * characters, _LARGEST_FORM):
        return "n_bytes, characters: 1 to 4 bytes expected for each character, as in UTF-8"
    if not (0 < words <= characters and 0 < shingles <= characters):
        return "words, shingles: at least one expected, and at most as many as characters"
    return ""
