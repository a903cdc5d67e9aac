"""Compact storage of LD symbols with their gaps, in the format that native/ld_compact.h describes."""

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_COUNT = struct.Struct(">H")
_MAX_PAIRS = 0xFFFF
_GAP_BITS = 13  # of a word of `Signature.ld`
_LARGEST_WORD_GAP, _LARGEST_STEP = (1 << _GAP_BITS) - 2, 0x7F
_SPLIT_SYMBOL_BITS = 16

_Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class _Pairs:
    """Symbols with their gaps, in two arrays of one length."""

    symbols: _Numbers
    gaps: _Numbers


def pack_pairs(ld: bytes, gaps: bytes, symbol_bits: int, kept_bits: int, low_bits: int) -> bytes | None:
    """Pack pairs of a symbol and a gap.

    Returns:
        None if the data are not such pairs, or if there are none or more than 65,535.
    """
    pairs = _pairs(ld, gaps, symbol_bits)
    if pairs is None or not 0 < pairs.symbols.size <= _MAX_PAIRS:
        return None
    largest = _LARGEST_STEP if symbol_bits == _SPLIT_SYMBOL_BITS else _LARGEST_WORD_GAP
    zeros = symbol_bits - np.frexp(pairs.symbols)[1].astype(np.int64)
    after = pairs.symbols << zeros + 1 & (1 << symbol_bits) - 1
    lost = symbol_bits - kept_bits + 1
    if pairs.gaps.max() > largest or np.any(after & (1 << lost) - 1):
        return None
    fixed = after >> lost << low_bits | pairs.gaps & (1 << low_bits) - 1
    whole, odd = _widths(kept_bits, low_bits)
    head = fixed.astype("<u4").view(np.uint8).reshape(-1, 4)[:, : whole // 8].tobytes()
    bits = np.unpackbits((fixed >> whole << 8 - odd).astype(np.uint8)).reshape(-1, 8)[:, :odd]
    ends = (np.stack((zeros, pairs.gaps >> low_bits), axis=1).ravel() + 1).cumsum() - 1
    unary = np.zeros(int(ends[-1]) + 1, dtype=np.uint8)
    unary[ends] = 1
    return _COUNT.pack(fixed.size) + head + np.packbits(bits).tobytes() + np.packbits(unary).tobytes()


def unpack_pairs(packed: bytes, symbol_bits: int, kept_bits: int, low_bits: int) -> tuple[bytes, bytes]:
    """Restore the `ld` and `gaps` that `pack_pairs` packed with these arguments."""
    count = int.from_bytes(packed[: _COUNT.size], "big") if len(packed) >= _COUNT.size else 0
    whole, odd = _widths(kept_bits, low_bits)
    middle = count * whole // 8
    unary = middle - (-count * odd // 8)
    if not count or len(packed) <= _COUNT.size + unary:
        raise ValueError("packed: more bytes expected for this number of pairs")
    data = np.frombuffer(packed, dtype=np.uint8, offset=_COUNT.size)
    fixed = np.zeros((count, 4), dtype=np.uint8)
    fixed[:, : whole // 8] = data[:middle].reshape(count, -1)
    bits = np.zeros((count, 8), dtype=np.uint8)
    bits[:, 8 - odd :] = np.unpackbits(data[middle:unary], count=count * odd).reshape(count, odd)
    fixed[:, whole // 8] = np.packbits(bits)
    values = fixed.view("<u4").ravel().astype(np.int64)
    ends = np.unpackbits(data[unary:]).nonzero()[0][: 2 * count]
    zeros, high = (np.diff(ends, prepend=-1) - 1)[: 2 * (ends.size // 2)].reshape(-1, 2).T
    if zeros.size < count or (zeros > symbol_bits).any():
        raise ValueError("packed: more bytes expected for this number of pairs")
    symbols = (1 << kept_bits - 1 | values >> low_bits) << symbol_bits - kept_bits >> zeros
    gaps = high << low_bits | values & (1 << low_bits) - 1
    if symbol_bits == _SPLIT_SYMBOL_BITS:
        return symbols.astype("<u2").tobytes(), gaps.astype(np.uint8).tobytes()
    return (symbols << _GAP_BITS | gaps).astype("<u4").tobytes(), b""


def _pairs(ld: bytes, gaps: bytes, symbol_bits: int) -> _Pairs | None:
    """Split the data into symbols and gaps.

    Returns:
        None if `ld` and `gaps` do not fit together.
    """
    if symbol_bits == _SPLIT_SYMBOL_BITS:
        if len(ld) != 2 * len(gaps):
            return None
        return _Pairs(*(np.frombuffer(data, dtype=kind).astype(np.int64) for data, kind in ((ld, "<u2"), (gaps, "u1"))))
    if len(ld) % 4 or gaps:
        return None
    words = np.frombuffer(ld, dtype="<u4").astype(np.int64)
    return _Pairs(words >> _GAP_BITS, words & (1 << _GAP_BITS) - 1)


def _widths(kept_bits: int, low_bits: int) -> tuple[int, int]:
    """Return the bits of a fixed part: in whole bytes, and odd."""
    width = kept_bits - 1 + low_bits
    return width & ~7, width & 7
