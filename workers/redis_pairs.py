"""LD symbols with their gaps in Rice's code, the twin of streams/_pairs.h."""

import struct

import numpy as np
from numpy.typing import NDArray

_COUNT = struct.Struct(">H")
_MOST = 0xFFFF
_GAP_BITS = 13  # of a word of `Signature.ld`
_LARGEST_WORD_GAP, _LARGEST_STEP = (1 << _GAP_BITS) - 2, 0x7F

_Words = NDArray[np.uint32]


def pack_pairs(data: bytes, symbol_bits: int, low_bits: int) -> bytes | None:
    """Count of the pairs; symbol and low bits of the gap of each; the rest of each gap as zeros before a one.

    A gap is geometrically distributed, so this is within a tenth of a bit of the least that it needs. Of symbol and low
    bits two bytes stand apart, if there are as many, as bits are dearer to pack.

    Args:
        data: Words of a symbol above 13 bits of gap, or gaps of a byte.
        symbol_bits: 19; 0: gaps alone.
        low_bits: Bits of a gap that are written as they are, at most 5; of gaps alone at least 1.

    Returns:
        None if the data are no pairs, none at all, or more than 65,535.
    """
    words = _words(data, symbol_bits)
    if words is None or not 0 < words.size <= _MOST:
        return None
    gaps = words & np.uint32((1 << _GAP_BITS) - 1) if symbol_bits else words
    if gaps.max() > (_LARGEST_WORD_GAP if symbol_bits else _LARGEST_STEP):
        return None
    low = np.uint32(low_bits)
    fixed = gaps & np.uint32((1 << low_bits) - 1)
    if symbol_bits:
        fixed |= words >> np.uint32(_GAP_BITS) << low
    whole, odd = _halves(symbol_bits + low_bits)
    head = fixed.astype("<u2").tobytes() if whole else b""
    spread = (fixed >> np.uint32(whole) << np.uint32(8 - odd)).astype(np.uint8)
    bits = np.unpackbits(spread).reshape(-1, 8)[:, :odd]
    ends = ((gaps >> low) + np.uint32(1)).cumsum() - 1
    unary = np.zeros(int(ends[-1]) + 1, dtype=np.uint8)
    unary[ends] = 1
    return _COUNT.pack(fixed.size) + head + np.packbits(bits).tobytes() + np.packbits(unary).tobytes()


def unpack_pairs(packed: bytes, symbol_bits: int, low_bits: int) -> bytes:
    """What `pack_pairs` was given."""
    count, low = _COUNT.unpack_from(packed)[0], np.uint32(low_bits)
    whole, odd = _halves(symbol_bits + low_bits)
    start = _COUNT.size + count * whole // 8
    middle = -(-count * odd // 8)
    data = np.frombuffer(packed, dtype=np.uint8, offset=start)
    bits = np.zeros((count, 8), dtype=np.uint8)
    bits[:, :odd] = np.unpackbits(data[:middle], count=count * odd).reshape(count, odd)
    fixed = np.packbits(bits).astype(np.uint32) >> np.uint32(8 - odd) << np.uint32(whole)
    if whole:
        fixed |= np.frombuffer(packed, dtype="<u2", count=count, offset=_COUNT.size)
    ends = np.unpackbits(data[middle:]).nonzero()[0]
    high = ends.copy()
    high[1:] -= ends[:-1] + 1
    gaps = high.astype(np.uint32) << low | fixed & np.uint32((1 << low_bits) - 1)
    if not symbol_bits:
        return gaps.astype(np.uint8).tobytes()
    return (fixed >> low << np.uint32(_GAP_BITS) | gaps).astype("<u4", copy=False).tobytes()


def _words(data: bytes, symbol_bits: int) -> _Words | None:
    if not symbol_bits:
        return np.frombuffer(data, dtype=np.uint8).astype(np.uint32)
    if len(data) % 4:
        return None
    return np.frombuffer(data, dtype="<u4").astype(np.uint32, copy=False)


def _halves(width: int) -> tuple[int, int]:
    """Bits of a pair that are written as two bytes, those that are not."""
    return (16, width - 16) if width > 16 else (0, width)
