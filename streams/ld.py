"""Coates' LD signature: sampled symbols of a text with the gaps between them."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from schemas.signature import Signature
from streams.hashing import Rolling, mix
from streams.packing import GAP_BITS, pack_varints, pack_words, unpack_varints, unpack_words
from streams.rules import KEPT_SYMBOL_BITS, LdRules
from streams.runs import starts_run

WORD_SYMBOL_BITS = 19
SPLIT_SYMBOL_BITS = 16
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


def symbol_bits(signature: Signature | LdSignature) -> int:
    """Bits of each symbol as they are stored."""
    return SPLIT_SYMBOL_BITS if signature.gaps else WORD_SYMBOL_BITS


def compared_bits(signature: Signature | LdSignature, doublings: int) -> int:
    """Bits by which symbols are compared at a rate so many doublings above the finer one of two signatures.

    A kept symbol has them all at any rate: its bits are counted from its first one on, and it is sampled only where
    zeros stand before this.
    """
    stored = symbol_bits(signature)
    return min(KEPT_SYMBOL_BITS[stored], stored - doublings)


def kept_symbols(signature: Signature | LdSignature) -> bytes:
    """`ld` with each symbol like a float: of the bits from the first one on those that are kept, then zeros."""
    masks = _masks(symbol_bits(signature))
    words = np.frombuffer(signature.ld, dtype=masks.dtype)
    # A long gap that has a word of its own begins with zeros, as no text is so long; nothing of it is lost.
    tops = words >> (8 * masks.itemsize + 1 - masks.size.bit_length())
    kept: bytes = (words & masks[tops]).tobytes()
    return kept


@cache
def _masks(stored: int) -> NDArray[np.uint32]:
    """What is kept of a word, by the bits before those that every symbol keeps."""
    kind, gap_bits = (np.dtype("<u2"), 0) if stored == SPLIT_SYMBOL_BITS else (np.dtype("<u4"), GAP_BITS)
    tops = range(1 << stored - KEPT_SYMBOL_BITS[stored])
    return np.array([~((1 << top.bit_length()) - 1 << gap_bits) for top in tops]).astype(kind)


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
    split, stored = bool(signature.gaps), symbol_bits(signature)
    drop = rate.bit_length() - signature.rate.bit_length()
    if drop < 0 or rate & (rate - 1) or not 0 < bits <= stored - drop:
        raise ValueError(f"rate {rate} with {bits} bits cannot be had from rate {signature.rate} with {stored} bits")
    if split:
        symbols = np.frombuffer(signature.ld, dtype="<u2").astype(np.uint32)
        positions = (np.cumsum(unpack_varints(signature.gaps)) >> drop) * (rate // _SPLIT_STEPS)
    else:
        symbols, gaps = unpack_words(signature.ld)
        positions = np.cumsum(gaps)
    if drop:
        sampled = symbols >> np.uint32(stored - drop) == 0
        symbols, positions = symbols[sampled], positions[sampled]
    # The sampling bits are zero, so a plain shift leaves the bits after them.
    symbols = symbols >> np.uint32(stored - drop - bits)
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
