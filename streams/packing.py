"""Packed forms of LD symbols with their gaps."""

import numpy as np
from numpy.typing import NDArray

from streams.runs import Rows, first_place

GAP_BITS = 13
ESCAPE = (1 << GAP_BITS) - 1
_VARINT_BYTES = 6
_LITTLE_ENDIAN = np.dtype("<u4")
_FIELD = np.uint32(ESCAPE)

Symbols = NDArray[np.uint32]
Gaps = NDArray[np.int64]


def pack_words(symbols: Symbols, gaps: Rows) -> list[bytes]:
    """Of each row little-endian u32 words, symbol << 13 | gap; a gap of 8,191 or more stands in the word after that."""
    fields = np.minimum(gaps.values, ESCAPE).astype(np.uint32)
    words: Symbols = symbols << np.uint32(GAP_BITS) | fields
    starts, stops = gaps.starts, gaps.stops
    escaped = (fields == ESCAPE).nonzero()[0]
    if escaped.size:
        words = np.insert(words, escaped + 1, gaps.values[escaped].astype(np.uint32))
        starts, stops = ((each + escaped.searchsorted(each)).tolist() for each in (starts, stops))
    packed = words.astype("<u4", copy=False).tobytes()
    return [packed[4 * start : 4 * stop] for start, stop in zip(starts, stops, strict=True)]


def unpack_words(packed: bytes) -> tuple[Symbols, Gaps]:
    """Symbols and gaps of `pack_words`.

    Raises:
        ValueError: The length is no multiple of 4, or the last escape has no word after it.
    """
    if len(packed) % 4:
        raise ValueError("a multiple of 4 bytes expected")
    words = np.frombuffer(packed, _LITTLE_ENDIAN).astype(np.uint32, copy=False)
    fields = words & _FIELD
    marked = fields == ESCAPE
    if not np.count_nonzero(marked):
        return words >> np.uint32(GAP_BITS), fields.astype(np.int64)
    escapes = _escapes(marked)
    if escapes.size and escapes[-1] == words.size - 1:
        raise ValueError("a gap after the escape expected")
    gaps = fields.astype(np.int64)
    gaps[escapes] = words[escapes + 1]
    keep = np.ones(words.size, dtype=np.bool_)
    keep[escapes + 1] = False
    return (words >> np.uint32(GAP_BITS))[keep], gaps[keep]


def pack_varints(values: Gaps) -> bytes:
    """LEB128: 7 bits a byte, low ones first, the top bit set in all but the last byte of a number."""
    lengths = np.ones(values.size, dtype=np.int64)
    for bits in range(7, 7 * _VARINT_BYTES, 7):
        lengths += values >> bits > 0
    ends = np.cumsum(lengths)
    owner = np.repeat(np.arange(values.size), lengths)
    place = np.arange(owner.size) - (ends - lengths)[owner]
    groups: Gaps = values[owner] >> 7 * place & 0x7F
    groups[place < lengths[owner] - 1] |= 0x80
    return groups.astype(np.uint8).tobytes()


def unpack_varints(packed: bytes) -> Gaps:
    """Numbers of `pack_varints`.

    Raises:
        ValueError: The last number has no end, or a number is longer than 6 bytes.
    """
    data = np.frombuffer(packed, dtype=np.uint8)
    if not data.size:
        return np.empty(0, dtype=np.int64)
    last = np.flatnonzero(data < 0x80)
    if not last.size or last[-1] != data.size - 1:
        raise ValueError("an end of the last number expected")
    starts = np.concatenate(([0], last[:-1] + 1))
    lengths = last - starts + 1
    if lengths.max() > _VARINT_BYTES:
        raise ValueError(f"numbers of at most {_VARINT_BYTES} bytes expected")
    place = np.arange(data.size) - np.repeat(starts, lengths)
    groups: Gaps = (data & 0x7F).astype(np.int64) << 7 * place
    values: Gaps = np.add.reduceat(groups, starts)
    return values


def _escapes(marked: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Places of escapes; the word after an escape is a gap, whatever its low bits say."""
    places = np.flatnonzero(marked)
    # In a run of marked words every second one is a gap, starting with an escape.
    escapes: NDArray[np.int64] = places[(places - first_place(places)) % 2 == 0]
    return escapes
