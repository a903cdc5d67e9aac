"""Coates' LD signature: sampled symbols of a text with the gaps between them."""

from dataclasses import dataclass
from functools import cache
from operator import sub
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from schemas.signature import Signature
from streams.hashing import constant
from streams.packing import GAP_BITS, pack_varints, pack_words, unpack_varints, unpack_words
from streams.rules import KEPT_SYMBOL_BITS, LdRules
from streams.runs import Rows, starts_run

WORD_SYMBOL_BITS = 19
SPLIT_SYMBOL_BITS = 16
_SPLIT_STEPS = 8


class LdSignature(NamedTuple):
    """Packed symbols and gaps at one rate, as `Signature` has them."""

    rate: int
    ld: bytes
    gaps: bytes


@dataclass(frozen=True)
class LdView:
    """Symbols of a text with their positions, in bytes of the normal form; both of one length."""

    symbols: NDArray[np.uint32]
    positions: NDArray[np.int64]


def ld_signatures(windows: Rows, rate: int, rules: LdRules) -> list[LdSignature]:
    """The LD signature of each of several normal forms.

    Every window of 16 bytes is hashed; one in `rate`, those whose top bits are zero, leaves a symbol, made of the bits
    below (Coates, A Fast Metric of Document Similarity, 2011; there H mod C = 0). Equal neighbours leave one symbol:
    repetition says nothing.

    Args:
        windows: Mixed hashes of the windows from every byte of each form on; a row starts where its form does.
        rate: The finest rate for forms as long as all of these are.
        rules: Widths and bounds.
    """
    kept = (windows.values < constant((1 << 64) // rate)).nonzero()[0]
    bounds = kept.searchsorted([*windows.starts, windows.values.size]).tolist()
    hashes = Rows.between(windows.values.take(kept), bounds)
    positions = kept - np.repeat(windows.starts, list(map(sub, bounds[1:], bounds)))
    return _signatures(hashes, positions, rate, rules)


def _signatures(hashes: Rows, positions: NDArray[np.int64], rate: int, rules: LdRules) -> list[LdSignature]:
    """From sampled hashes, each with its position; where too many symbols are left, at a coarser rate."""
    # The bits after those that sampled the window, which are zero.
    symbols = (hashes.values >> constant(65 - rules.symbol_bits - rate.bit_length())).astype(np.uint32)
    left = starts_run(symbols, hashes.starts).nonzero()[0]
    bounds = left.searchsorted([*hashes.starts, symbols.size]).tolist()
    packed = _packed(symbols.take(left), Rows.between(positions.take(left), bounds), rate, rules)
    return [
        LdSignature(rate, *found) if size <= rules.max_symbols else _coarser(hashes, positions, number, rate, rules)
        for number, (size, found) in enumerate(zip(map(sub, bounds[1:], bounds), packed, strict=True))
    ]


def _coarser(hashes: Rows, positions: NDArray[np.int64], number: int, rate: int, rules: LdRules) -> LdSignature:
    """One of the rows, at twice the rate."""
    row = slice(hashes.starts[number], hashes.stops[number])
    sampled = (hashes.values[row] < constant((1 << 63) // rate)).nonzero()[0]
    halved = Rows.between(hashes.values[row].take(sampled), [0, sampled.size])
    return _signatures(halved, positions[row].take(sampled), 2 * rate, rules)[0]


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
        sampled = (symbols < np.uint32(1 << stored - drop)).nonzero()[0]
        symbols, positions = symbols.take(sampled), positions.take(sampled)
    # The sampling bits are zero, so a plain shift leaves the bits after them.
    symbols = symbols >> np.uint32(stored - drop - bits)
    first = starts_run(symbols)
    if np.count_nonzero(first) == first.size:
        return LdView(symbols, positions)
    return LdView(symbols[first], positions[first])


def _packed(symbols: NDArray[np.uint32], positions: Rows, rate: int, rules: LdRules) -> list[tuple[bytes, bytes]]:
    if rules.gap_bits:
        return [(words, b"") for words in pack_words(symbols, _gaps(positions))]
    gaps = _gaps(positions._replace(values=positions.values // (rate // rules.gap_steps)))
    narrow = positions._replace(values=symbols.astype("<u2"))
    return [(row.tobytes(), pack_varints(apart)) for row, apart in zip(narrow.each(), gaps.each(), strict=True)]


def _gaps(positions: Rows) -> Rows:
    """Differences of neighbours, the first of each row to 0."""
    gaps = positions.values.copy()
    gaps[1:] -= positions.values[:-1]
    firsts = [start for start in positions.starts if start < gaps.size]
    gaps[firsts] = positions.values[firsts]
    return positions._replace(values=gaps)
