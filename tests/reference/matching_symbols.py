"""Alignment of two LD signatures in numpy.

A text is int64 of shape (2, n + 1). Its first row holds the bytes at which the windows of its symbols start, then the
end of the text. Its second row holds the symbols, then 0.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Indel

from nearstream.streams.fingerprints.parameters import LD_WINDOW_BYTES

RATIO_STEPS = 256  # resolution at which costs depend on the ratio of two lengths
TAKEN = 1 << 19  # added to symbols of 19 bits that must not be matched again

_CELLS = 1 << 13  # few enough to be cheap, and enough that few symbols share a cell
_FIRST_CODE_POINT = 0xE000  # above the surrogates, so that every symbol of 19 bits maps to a valid code point
_LITTLE_ENDIAN = np.dtype("<u4")
_LOOK_BACK = 32  # a path reaches each block from one of this many blocks before it

Integers = NDArray[np.int64]
Bytes = NDArray[np.float64]


def align_symbols(
    one: Integers, other: Integers, reach: bytes, grain: int, least: int, rate: int
) -> tuple[int, Integers, Bytes]:
    """Find the common symbols of two texts and the blocks they form.

    Matches are a longest common subsequence of the symbols. A block is a maximal run of matches between which no
    symbol is lost and no text moved, grown to its expected ends. Neighbouring blocks that would overlap meet halfway.
    Where all windows are symbols, matches without another one beside them are left out.

    Returns:
        The size of the intersection of both multisets of symbols. The matches as int64 of shape (2, matches + 2):
        indices of symbols in both texts, after -1 and before the number of symbols. The blocks as float64 of shape
        (n, 5): starts in both texts, ends in both texts, length.
    """
    symbols = one[1, :-1], other[1, :-1]
    kept = _kept_indices(*symbols), _kept_indices(*symbols[::-1])
    ours, theirs = (values[indices] for values, indices in zip(symbols, kept, strict=True))
    common = (Counter(ours.tolist()) & Counter(theirs.tolist())).total()
    matches = Indel.opcodes(_as_string(ours), _as_string(theirs)).as_matching_blocks() if common >= least else []
    runs = (
        [slice(match.a, match.a + match.size) for match in matches],
        [slice(match.b, match.b + match.size) for match in matches],
    )
    matched = np.array(
        [
            np.concatenate(([-1], *(indices[run] for run in text_runs), [values.size]))
            for values, indices, text_runs in zip(symbols, kept, runs, strict=True)
        ]
    )
    if rate == 1:
        beside = (np.diff(matched[:, 1:-1]) == 1).all(axis=0)
        in_run = np.append(beside, np.False_) | np.append(np.False_, beside)
        matched = matched[:, np.concatenate(([True], in_run[: matched.shape[1] - 2], [True]))]
    blocks = _blocks(one[0], other[0], matched[:, 1:-1], np.frombuffer(reach), grain)
    return common, matched, blocks


def cheapest_path(
    blocks: Iterable[Sequence[float]], shares: bytes, narrow: tuple[float, float], wide: float, least: float
) -> float:
    """Return the cost of the cheapest path through two texts.

    A path leads from the start of both texts through some of the blocks, in order, to the last block. The blocks on
    the path cost nothing. The text between them costs its expected edits.
    """
    costs = memoryview(shares).cast("d")
    # The start of the texts counts as a block that ends there.
    ends = [(0.0, 0.0, 0.0, 0.0)]
    for start, other_start, end, other_end, _ in blocks:
        cheapest = float("inf")
        # Below, `bound + rest` is the least cost of a path that comes from that block or from an earlier one.
        rest = least * (start - narrow[0] - LD_WINDOW_BYTES)
        for before, other_before, cost_before, bound in islice(reversed(ends), _LOOK_BACK):
            if bound + rest >= cheapest:
                break
            smaller, larger = sorted((start - before, other_start - other_before))
            if smaller <= 0:
                # The blocks overlap or come in another order, so all these bytes are lost.
                cost = cost_before + abs(larger) - smaller
            else:
                is_at_an_end = start == end or (before, other_before) == (0.0, 0.0)
                is_narrow = smaller < narrow[0] + LD_WINDOW_BYTES * is_at_an_end
                share = costs[int(smaller / larger * RATIO_STEPS)] * (narrow[1] if is_narrow else wide)
                cost = cost_before + larger - smaller + share * smaller
            cheapest = min(cheapest, cost)
        ends.append((end, other_end, cheapest, min(ends[-1][3], cheapest - least * end)))
    return ends[-1][2]


def _kept_indices(symbols: Integers, others: Integers) -> Integers:
    """Return the indices of free symbols whose low bits occur in the other text."""
    seen = np.zeros(_CELLS, np.bool_)
    seen[others % _CELLS] = True
    return (seen[symbols % _CELLS] & (symbols < TAKEN)).nonzero()[0]


def _as_string(symbols: Integers) -> str:
    """Return each symbol as one code point, because rapidfuzz is fastest on strings."""
    return (symbols + _FIRST_CODE_POINT).astype(_LITTLE_ENDIAN).tobytes().decode("utf-32-le")


def _blocks(one: Integers, other: Integers, matched: Integers, reach: Bytes, grain: int) -> Bytes:
    """Return the blocks that matches form, as rows of starts, ends and length."""
    if not matched.size:
        return np.empty((0, 5))
    starts = np.array((one[matched[0]], other[matched[1]]))
    gaps = starts[:, 1:] - starts[:, :-1]
    apart = ((matched[:, 1:] - matched[:, :-1]) > 1).any(axis=0) | (np.abs(gaps[0] - gaps[1]) > grain)
    firsts, lasts = np.flatnonzero(np.append(True, apart)), np.flatnonzero(np.append(apart, True))
    ends = np.concatenate(
        (
            starts[:, firsts] - _growth(one, other, matched[:, firsts], reach, 0),
            starts[:, lasts] + (_growth(one, other, matched[:, lasts] + 1, reach, -1) + LD_WINDOW_BYTES),
        )
    )
    shared = np.minimum((ends[:2, 1:] - ends[2:, :-1]).min(axis=0), 0.0) / 2
    ends[2:, :-1] += shared
    ends[:2, 1:] -= shared
    return np.vstack((ends, np.maximum((ends[2:] - ends[:2]).min(axis=0), 0.0))).T


def _growth(one: Integers, other: Integers, behind: Integers, reach: Bytes, end: int) -> Bytes:
    """Return the bytes by which blocks extend beyond their outer windows."""
    apart = np.array(
        [np.diff(text, prepend=-LD_WINDOW_BYTES)[indices] for text, indices in zip((one, other), behind, strict=True)]
    )
    closed = behind[:, end] == (0 if end == 0 else (len(one) - 1, len(other) - 1))
    apart[closed, end] -= LD_WINDOW_BYTES
    room = apart.min(axis=0)
    growth: Bytes = room + reach[np.clip(room, 0, len(reach) - 1)]
    # Where a text starts or ends before the other one has a symbol, there is no difference to look for.
    if (closed & (apart[:, end] == room[end])).any():
        growth[end] = room[end]
    return growth
