"""What an index keeps of a sketch and of LD symbols."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from nearstream.streams.fingerprints.parameters import (
    GAP_BITS,
    KEPT_SLOT_BITS,
    KEPT_SYMBOL_BITS,
    SLOTS,
    SPLIT_SYMBOL_BITS,
)


def kept_sketch(sketch: bytes) -> bytes:
    """Return the low 4 bits of each slot of a sketch.

    A byte holds two slots. This is b-bit minwise hashing (Li and Koenig, WWW 2010).
    """
    if len(sketch) == SLOTS * KEPT_SLOT_BITS // 8:
        return sketch
    slots = np.frombuffer(sketch, np.uint8)[:: len(sketch) // SLOTS] & 15
    kept: bytes = (slots[::2] | slots[1::2] << 4).tobytes()
    return kept


def kept_symbols(ld: bytes, stored: int) -> bytes:
    """Return LD symbols with zeros for the bits that an index does not keep.

    As in a float, these are some bits of each symbol from its first one bit on, so a symbol has all of them at any
    rate. A long gap has a word of its own, which loses nothing: it starts with zeros, because no text is that long.
    """
    masks = _masks(stored)
    words = np.frombuffer(ld, masks.dtype)
    kept: bytes = (words & masks[words >> (8 * masks.itemsize + 1 - masks.size.bit_length())]).tobytes()
    return kept


@cache
def _masks(stored: int) -> NDArray[np.uint32]:
    """Return masks of kept bits, by the bits above those that every symbol keeps."""
    kind, gap_bits = (np.dtype("<u2"), 0) if stored == SPLIT_SYMBOL_BITS else (np.dtype("<u4"), GAP_BITS)
    tops = range(1 << stored - KEPT_SYMBOL_BITS[stored])
    return np.array([~((1 << top.bit_length()) - 1 << gap_bits) for top in tops]).astype(kind)
