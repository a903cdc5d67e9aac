"""LD signatures after Coates: sampled symbols with the gaps between them."""

from dataclasses import dataclass
from functools import cache
from operator import sub
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearstream.schemas.documents.signature import Signature
from nearstream.streams.fingerprints.parameters import (
    GAP_STEPS,
    KEPT_SYMBOL_BITS,
    SPLIT_SYMBOL_BITS,
    WORD_SYMBOL_BITS,
    LdRules,
)
from tests.reference.ld_encoding import GAP_BITS, pack_varints, pack_words, unpack_varints, unpack_words
from tests.reference.polynomials import constant
from tests.reference.ragged import RaggedRows, starts_run


class LdSignature(NamedTuple):
    """Packed symbols and gaps at one rate, in the format of `Signature`.

    Attributes:
        rate: Average bytes of the normal form per symbol, a power of two.
        ld: Packed symbols, with their gaps or without (see `LdRules.gap_bits`).
        gaps: Packed gaps if `ld` does not contain them, else empty.
    """

    rate: int
    ld: bytes
    gaps: bytes


_LARGEST = (1 << 64) - 1  # the hash of a window that does not fit into a text


@dataclass(frozen=True)
class LdView:
    """Symbols of a text with their positions.

    Attributes:
        symbols: The symbols in order of the text.
        positions: The position of each symbol, in bytes of the normal form, ascending.
    """

    symbols: NDArray[np.uint32]
    positions: NDArray[np.int64]


def ld_signatures(windows: RaggedRows, rate: int, rules: LdRules) -> list[LdSignature]:
    """Return the LD signature of each normal form.

    Every window of 16 bytes is hashed. One in `rate` windows is sampled: those whose hash has only zeros in its top
    bits. The bits below make its symbol (Coates, A Fast Metric of Document Similarity, 2011, where H mod C = 0). Equal
    neighbours give one symbol, because a repetition carries no information.

    Args:
        windows: Mixed hashes of the windows that start at each byte, one row for each form.
        rate: The first rate to try. It must be that of all forms, see `LdRules.first_rate`.
        rules: Widths and bounds.
    """
    kept = (windows.values < constant(min((1 << 64) // rate, _LARGEST))).nonzero()[0]
    bounds = kept.searchsorted([*windows.starts, windows.values.size]).tolist()
    hashes = RaggedRows.between(windows.values.take(kept), bounds)
    positions = kept - np.repeat(windows.starts, list(map(sub, bounds[1:], bounds)))
    return _signatures(hashes, positions, rate, rules)


def _signatures(hashes: RaggedRows, positions: NDArray[np.int64], rate: int, rules: LdRules) -> list[LdSignature]:
    """Return LD signatures of sampled hashes with their positions.

    If a row has too many symbols, its rate is made coarser.
    """
    # The bits that sampled the window are zero, so the symbol consists of those after them.
    symbols = (hashes.values >> constant(65 - rules.symbol_bits - rate.bit_length())).astype(np.uint32)
    left = starts_run(symbols, hashes.starts).nonzero()[0]
    bounds = left.searchsorted([*hashes.starts, symbols.size]).tolist()
    packed = _packed(symbols.take(left), RaggedRows.between(positions.take(left), bounds), rate, rules)
    return [
        LdSignature(rate, *row) if size <= rules.max_symbols else _coarser(hashes, positions, index, rate, rules)
        for index, (size, row) in enumerate(zip(map(sub, bounds[1:], bounds), packed, strict=True))
    ]


def _coarser(hashes: RaggedRows, positions: NDArray[np.int64], index: int, rate: int, rules: LdRules) -> LdSignature:
    """Return the LD signature of one row at twice the rate."""
    row = slice(hashes.starts[index], hashes.stops[index])
    sampled = (hashes.values[row] < constant((1 << 63) // rate)).nonzero()[0]
    halved = RaggedRows.between(hashes.values[row].take(sampled), [0, sampled.size])
    return _signatures(halved, positions[row].take(sampled), 2 * rate, rules)[0]


def symbol_bits(signature: Signature | LdSignature) -> int:
    """Return the bits of each stored symbol, 16 or 19."""
    return SPLIT_SYMBOL_BITS if signature.gaps else WORD_SYMBOL_BITS


def compared_bits(signature: Signature | LdSignature, doublings: int) -> int:
    """Return the compared bits of a symbol at a coarser rate.

    A kept symbol has all these bits at any rate. Its kept bits start with the first one bit, and it is sampled at a
    coarser rate only if there are zeros before this bit.

    Args:
        signature: The signature with the finer rate.
        doublings: How often its rate is doubled.
    """
    stored = symbol_bits(signature)
    return min(KEPT_SYMBOL_BITS[stored], stored - doublings)


def kept_symbols(signature: Signature | LdSignature) -> bytes:
    """Return `ld` with only those bits that an index keeps.

    Like in a float, these are some bits of each symbol from its first one bit on (`KEPT_SYMBOL_BITS`). The other bits
    become zero.
    """
    masks = _masks(symbol_bits(signature))
    words = np.frombuffer(signature.ld, dtype=masks.dtype)
    # A long gap has a word of its own, which loses nothing: it starts with zeros, because no text is that long.
    tops = words >> (8 * masks.itemsize + 1 - masks.size.bit_length())
    kept: bytes = (words & masks[tops]).tobytes()
    return kept


@cache
def _masks(stored: int) -> NDArray[np.uint32]:
    """Return masks of the bits that are kept of a word.

    The index of a mask is the value of the word's top bits, which are those above the bits that every symbol keeps.
    """
    kind, gap_bits = (np.dtype("<u2"), 0) if stored == SPLIT_SYMBOL_BITS else (np.dtype("<u4"), GAP_BITS)
    tops = range(1 << stored - KEPT_SYMBOL_BITS[stored])
    return np.array([~((1 << top.bit_length()) - 1 << gap_bits) for top in tops]).astype(kind)


def view(signature: Signature | LdSignature, rate: int, bits: int) -> LdView:
    """Return the symbols of a signature at a coarser rate.

    The result is exact: all signatures of a text, whatever their rates, have equal views. If gaps are stored apart from
    the symbols, positions are multiples of rate / 8.

    Args:
        signature: Checked by `Scheme.check` if it came from outside.
        rate: Bytes per symbol, a power of two, at least the signature's.
        bits: Bits of a symbol. At most the stored bits, less one for each doubling of the rate.

    Raises:
        ValueError: The signature does not have this rate or that many bits.
    """
    split, stored = bool(signature.gaps), symbol_bits(signature)
    drop = rate.bit_length() - signature.rate.bit_length()
    if drop < 0 or rate & (rate - 1) or not 0 < bits <= stored - drop:
        raise ValueError(
            f"no view at rate {rate} with {bits} bits: the signature has rate {signature.rate}, {stored} bits"
        )
    if split:
        symbols = np.frombuffer(signature.ld, dtype="<u2").astype(np.uint32)
        positions = (np.cumsum(unpack_varints(signature.gaps)) >> drop) * (rate // GAP_STEPS)
    else:
        symbols, gaps = unpack_words(signature.ld)
        positions = np.cumsum(gaps)
    if drop:
        sampled = (symbols < np.uint32(1 << stored - drop)).nonzero()[0]
        symbols, positions = symbols.take(sampled), positions.take(sampled)
    # The bits that sampled the window are zero, so a plain shift leaves those after them.
    symbols = symbols >> np.uint32(stored - drop - bits)
    first = starts_run(symbols)
    if np.count_nonzero(first) == first.size:
        return LdView(symbols, positions)
    return LdView(symbols[first], positions[first])


def _packed(symbols: NDArray[np.uint32], positions: RaggedRows, rate: int, rules: LdRules) -> list[tuple[bytes, bytes]]:
    if rules.gap_bits:
        return [(words, b"") for words in pack_words(symbols, _gaps(positions))]
    gaps = _gaps(positions._replace(values=positions.values // (rate // rules.gap_steps)))
    narrow = positions._replace(values=symbols.astype("<u2"))
    return [(row.tobytes(), pack_varints(apart)) for row, apart in zip(narrow.each(), gaps.each(), strict=True)]


def _gaps(positions: RaggedRows) -> RaggedRows:
    """Return the differences between neighbours in each row.

    The first difference of a row is that to 0.
    """
    gaps = positions.values.copy()
    gaps[1:] -= positions.values[:-1]
    firsts = [start for start in positions.starts if start < gaps.size]
    gaps[firsts] = positions.values[firsts]
    return positions._replace(values=gaps)
