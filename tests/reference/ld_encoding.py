"""Encodings of LD symbols with their gaps."""

import numpy as np
from numpy.typing import NDArray

from tests.reference.ragged import RaggedRows, run_start

GAP_BITS = 13
ESCAPE = (1 << GAP_BITS) - 1
_VARINT_BYTES = 6
_LITTLE_ENDIAN = np.dtype("<u4")
_GAP_MASK = np.uint32(ESCAPE)

Symbols = NDArray[np.uint32]
Gaps = NDArray[np.int64]


def pack_words(symbols: Symbols, gaps: RaggedRows) -> list[bytes]:
    """Pack symbols with their gaps as little-endian u32 words.

    A word is `symbol << 13 | gap`. A gap of 8,191 or more follows in a word of its own, and 8,191 takes its place.

    Args:
        symbols: Symbols of all rows.
        gaps: The gap before each symbol, in bytes of the normal form.

    Returns:
        The words of each row.
    """
    fields = np.minimum(gaps.values, ESCAPE).astype(np.uint32)
    words: Symbols = symbols << np.uint32(GAP_BITS) | fields
    starts, stops = gaps.starts, gaps.stops
    escaped = (fields == ESCAPE).nonzero()[0]
    if escaped.size:
        words = np.insert(words, escaped + 1, gaps.values[escaped].astype(np.uint32))
        starts, stops = ((bounds + escaped.searchsorted(bounds)).tolist() for bounds in (starts, stops))
    packed = words.astype("<u4", copy=False).tobytes()
    return [packed[4 * start : 4 * stop] for start, stop in zip(starts, stops, strict=True)]


def unpack_words(packed: bytes) -> tuple[Symbols, Gaps]:
    """Restore the symbols and gaps that `pack_words` packed in a row.

    Raises:
        ValueError: The length is not a multiple of 4, or no word follows the last escape.
    """
    if len(packed) % 4:
        raise ValueError("expected a multiple of 4 bytes")
    words = np.frombuffer(packed, _LITTLE_ENDIAN).astype(np.uint32, copy=False)
    fields = words & _GAP_MASK
    marked = fields == ESCAPE
    if not np.count_nonzero(marked):
        return words >> np.uint32(GAP_BITS), fields.astype(np.int64)
    escapes = _escapes(marked)
    if escapes.size and escapes[-1] == words.size - 1:
        raise ValueError("expected a gap after the last escape")
    gaps = fields.astype(np.int64)
    gaps[escapes] = words[escapes + 1]
    keep = np.ones(words.size, dtype=np.bool_)
    keep[escapes + 1] = False
    return (words >> np.uint32(GAP_BITS))[keep], gaps[keep]


def pack_varints(values: Gaps) -> bytes:
    """Pack numbers of at most 42 bits as LEB128.

    Each byte holds 7 bits, the low bits first. The top bit is set in all bytes of a number but the last.
    """
    lengths = np.ones(values.size, dtype=np.int64)
    for bits in range(7, 7 * _VARINT_BYTES, 7):
        lengths += values >> bits > 0
    ends = np.cumsum(lengths)
    owner = np.repeat(np.arange(values.size), lengths)
    index = np.arange(owner.size) - (ends - lengths)[owner]
    groups: Gaps = values[owner] >> 7 * index & 0x7F
    groups[index < lengths[owner] - 1] |= 0x80
    return groups.astype(np.uint8).tobytes()


def unpack_varints(packed: bytes) -> Gaps:
    """Restore the numbers that `pack_varints` packed.

    Raises:
        ValueError: The last number is incomplete, or a number has more than 6 bytes.
    """
    data = np.frombuffer(packed, dtype=np.uint8)
    if not data.size:
        return np.empty(0, dtype=np.int64)
    last = np.flatnonzero(data < 0x80)
    if not last.size or last[-1] != data.size - 1:
        raise ValueError("expected the last byte of the last number")
    starts = np.concatenate(([0], last[:-1] + 1))
    lengths = last - starts + 1
    if lengths.max() > _VARINT_BYTES:
        raise ValueError(f"expected numbers of at most {_VARINT_BYTES} bytes")
    index = np.arange(data.size) - np.repeat(starts, lengths)
    groups: Gaps = (data & 0x7F).astype(np.int64) << 7 * index
    values: Gaps = np.add.reduceat(groups, starts)
    return values


def _escapes(marked: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the indices of escapes, among words whose gap is all ones.

    The word after an escape is a gap, whatever its low bits are.
    """
    indices = np.flatnonzero(marked)
    # A run of such words starts with an escape, and every second one is a gap.
    escapes: NDArray[np.int64] = indices[(indices - run_start(indices)) % 2 == 0]
    return escapes
