"""LD signatures: how symbols and gaps are packed, what an index keeps of them, and their view at a coarser rate."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearstream.schemas.documents.signature import Signature
from nearstream.streams.fingerprints.parameters import (
    GAP_BITS,
    GAP_STEPS,
    KEPT_SYMBOL_BITS,
    SPLIT_SYMBOL_BITS,
    WORD_SYMBOL_BITS,
)

_ESCAPE = (1 << GAP_BITS) - 1


class LdSignature(NamedTuple):
    """Packed symbols and gaps at one rate, in the format of `Signature`."""

    rate: int  # average bytes of the normal form per symbol, a power of two
    ld: bytes  # packed symbols, with their gaps or without (see `LdRules.gap_bits`)
    gaps: bytes  # packed gaps if `ld` does not contain them, else empty


@dataclass(frozen=True)
class LdView:
    """Symbols of a text with their positions."""

    symbols: NDArray[np.uint32]  # the symbols in order of the text
    positions: NDArray[np.int64]  # the position of each symbol, in bytes of the normal form, ascending


def pack_words(symbols: Iterable[int], gaps: Iterable[int]) -> bytes:
    """Pack symbols with their gaps as little-endian u32 words.

    A word is `symbol << 13 | gap`. A gap of 8,191 or more follows in a word of its own, and 8,191 takes its place.
    """
    words: list[int] = []
    for symbol, gap in zip(symbols, gaps, strict=True):
        words.append(int(symbol) << GAP_BITS | min(int(gap), _ESCAPE))
        words += [int(gap)] if gap >= _ESCAPE else []
    return np.array(words, "<u4").tobytes()


def unpack_words(packed: bytes) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Restore symbols and gaps."""
    if len(packed) % 4:
        raise ValueError("expected a multiple of 4 bytes")
    words = iter(np.frombuffer(packed, "<u4").tolist())
    symbols, gaps = [], []
    for word in words:
        gap = word & _ESCAPE
        symbols.append(word >> GAP_BITS)
        gaps.append(next(words, -1) if gap == _ESCAPE else gap)
    if gaps and gaps[-1] < 0:
        raise ValueError("expected a gap after the last escape")
    return np.array(symbols, np.uint32), np.array(gaps, np.int64)


def pack_varints(numbers: Iterable[int]) -> bytes:
    """Pack numbers of at most 42 bits as LEB128."""
    out = bytearray()
    for number in map(int, numbers):
        while number >= 0x80:
            out.append(number & 0x7F | 0x80)
            number >>= 7  # noqa: PLW2901
        out.append(number)
    return bytes(out)


def unpack_varints(packed: bytes) -> NDArray[np.int64]:
    """Restore numbers that end."""
    numbers, number, bits = [], 0, 0
    for byte in packed:
        number |= (byte & 0x7F) << bits
        bits += 7
        if byte < 0x80:
            numbers.append(number)
            number = bits = 0
    return np.array(numbers, np.int64)


def symbol_bits(signature: Signature | LdSignature) -> int:
    """Return the bits of each stored symbol, 16 or 19."""
    return SPLIT_SYMBOL_BITS if signature.gaps else WORD_SYMBOL_BITS


def compared_bits(signature: Signature | LdSignature, doublings: int) -> int:
    """Return the compared bits of a symbol at a coarser rate.

    A kept symbol has all these bits at any rate. Its kept bits start with the first one bit, and it is sampled at a
    coarser rate only if there are zeros before this bit.
    """
    stored = symbol_bits(signature)
    return min(KEPT_SYMBOL_BITS[stored], stored - doublings)


def view(signature: Signature | LdSignature, rate: int, bits: int) -> LdView:
    """Return the symbols of a signature at a coarser rate.

    The result is exact: all signatures of a text, whatever their rates, have equal views. If gaps are stored apart from
    the symbols, positions are multiples of rate / 8.
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
    first = np.append(True, symbols[1:] != symbols[:-1])[: symbols.size]
    return LdView(symbols[first], positions[first])
