"""Coates' LD signature: sampled symbols of a text with the gaps between them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from schemas.signature import Signature
from streams.hashing import Rolling, mix
from streams.packing import pack_varints, pack_words, unpack_varints, unpack_words
from streams.rules import LdRules
from streams.runs import starts_run

_WORD_SYMBOL_BITS = 19
_SPLIT_SYMBOL_BITS = 16
_SPLIT_STEPS = 8


@dataclass(frozen=True)
class LdSignature:
    """Packed symbols and gaps at one rate, as `Signature` has them."""

    rate: int
    ld: bytes
    gaps: bytes


@dataclass(frozen=True)
class LdView:
    """Symbols of a text with their positions, in bytes of the normal form; both of one length."""

    symbols: NDArray[np.uint32]
    positions: NDArray[np.int64]


def ld_signature(prefix: NDArray[np.uint64], salt: int, rolling: Rolling, rules: LdRules) -> LdSignature:
    """The LD signature of a normal form.

    Every window of 16 bytes is hashed; one in `rate`, those whose top bits are zero, leaves a symbol, made of the bits
    below (Coates, A Fast Metric of Document Similarity, 2011; there H mod C = 0). Equal neighbours leave one symbol:
    repetition says nothing.

    Args:
        prefix: Prefix sums over the bytes of the normal form.
        salt: Added to the polynomial of a window.
        rolling: Polynomials over bytes.
        rules: Rates, widths and bounds.
    """
    hashes = rolling.windows(prefix, rules.window_bytes)
    hashes += np.uint64(salt)
    mix(hashes)
    rate = rules.first_rate(prefix.size - 1)
    kept = (hashes < np.uint64((1 << 64) // rate)).nonzero()[0]
    hashes = hashes.take(kept)
    while True:
        symbols = _symbols(hashes, rate, rules.symbol_bits)
        first = starts_run(symbols)
        left = np.count_nonzero(first)
        if left < symbols.size:
            symbols, places = symbols[first], kept[first]
        else:
            places = kept
        if left <= rules.max_symbols:
            return _packed(symbols, places, rate, rules)
        rate *= 2
        sampled = hashes < np.uint64((1 << 64) // rate)
        kept, hashes = kept[sampled], hashes[sampled]


def view(signature: Signature | LdSignature, rate: int, bits: int) -> LdView:
    """The LD signature as if it had been made at a coarser rate with fewer bits.

    Exact: a signature and a finer one of the same text have the same view. Where gaps stand apart, positions are
    multiples of rate / 8.

    Args:
        signature: Checked by `Scheme.check` if it came from outside.
        rate: Bytes per symbol, a power of two, at least the signature's.
        bits: Bits of a symbol: at most those stored, less one for each doubling of the rate.

    Raises:
        ValueError: The rate or the bits cannot be had from this signature.
    """
    split = bool(signature.gaps)
    stored = _SPLIT_SYMBOL_BITS if split else _WORD_SYMBOL_BITS
    drop = rate.bit_length() - signature.rate.bit_length()
    if drop < 0 or rate & (rate - 1) or not 0 < bits <= stored - drop:
        raise ValueError(f"rate {rate} with {bits} bits cannot be had from rate {signature.rate} with {stored} bits")
    if split:
        symbols = np.frombuffer(signature.ld, dtype="<u2").astype(np.uint32)
        positions = (np.cumsum(unpack_varints(signature.gaps)) >> drop) * (rate // _SPLIT_STEPS)
    else:
        symbols, gaps = unpack_words(signature.ld)
        positions = np.cumsum(gaps)
    if drop or bits < stored:
        sampled = symbols >> np.uint32(stored - drop) == 0
        # The sampling bits are zero, so a plain shift leaves the bits after them.
        symbols, positions = symbols[sampled] >> np.uint32(stored - drop - bits), positions[sampled]
    first = starts_run(symbols)
    return LdView(symbols, positions) if first.all() else LdView(symbols[first], positions[first])


def _symbols(hashes: NDArray[np.uint64], rate: int, bits: int) -> NDArray[np.uint32]:
    """The bits after those that sampled the window, which are zero."""
    return (hashes >> np.uint64(65 - bits - rate.bit_length())).astype(np.uint32)


def _packed(symbols: NDArray[np.uint32], positions: NDArray[np.int64], rate: int, rules: LdRules) -> LdSignature:
    if rules.gap_bits:
        return LdSignature(rate, pack_words(symbols, _gaps(positions)), b"")
    steps = positions // (rate // rules.gap_steps)
    return LdSignature(rate, symbols.astype("<u2").tobytes(), pack_varints(_gaps(steps)))


def _gaps(positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Differences of neighbours, the first to 0."""
    gaps = positions.copy()
    gaps[1:] -= positions[:-1]
    return gaps
