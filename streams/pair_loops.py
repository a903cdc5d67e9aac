"""What two LD signatures have in common, by numpy: the twin of _meeting.h.

Arrays are bytes of int64 or float64. A text is of shape (2, n + 1): bytes where the windows of its symbols start, then
its end; the symbols, then 0.
"""

from collections import Counter
from itertools import islice
from struct import iter_unpack

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Indel

WINDOW_BYTES = 16  # each symbol stands for this many bytes of the normal form, from its position on
SHARES = 256
TAKEN = 1 << 19  # is added to symbols that count no more

_CELLS = 1 << 13  # few enough to be cheap, so many that few symbols share one
_FIRST_CODE_POINT = 0xE000  # from here on no surrogate is in the way of a 19-bit symbol
_LITTLE_ENDIAN = np.dtype("<u4")
_LOOK_BACK = 32  # so many stretches in a row may be left out

Places = NDArray[np.int64]
Bytes = NDArray[np.float64]


def meet(one: bytes, other: bytes, reach: bytes, grain: int, least: int) -> tuple[int, bytes, bytes]:
    """Common symbols, a longest common subsequence of them, stretches of common text.

    A stretch is a maximal run of matches between which no symbol is lost and no text moved, grown to its expected
    ends. Neighbours that would overlap meet halfway.

    Args:
        one: A text.
        other: Another text.
        reach: Bytes from the window next to a stretch to its expected end, by the bytes up to this window.
        grain: Bytes by which positions may be off.
        least: Nothing is matched if fewer symbols than these are common.

    Returns:
        Size of the intersection of both multisets of symbols; matches as int64 of shape (2, matches + 2), places in
        both texts between -1 and the number of symbols; stretches as float64 of shape (n, 5): starts in both texts,
        ends in both, length.
    """
    texts = [np.frombuffer(text, np.int64).reshape(2, -1) for text in (one, other)]
    symbols = [text[1, :-1] for text in texts]
    kept = _kept(*symbols), _kept(*symbols[::-1])
    ours, theirs = (each[places] for each, places in zip(symbols, kept, strict=True))
    common = (Counter(ours.tolist()) & Counter(theirs.tolist())).total()
    blocks = Indel.opcodes(_string(ours), _string(theirs)).as_matching_blocks() if common >= least else []
    runs = (
        [slice(each.a, each.a + each.size) for each in blocks],
        [slice(each.b, each.b + each.size) for each in blocks],
    )
    matched = np.array(
        [
            np.concatenate(([-1], *(places[run] for run in each), [text.size]))
            for text, places, each in zip(symbols, kept, runs, strict=True)
        ]
    )
    stretches = _stretches(texts[0][0], texts[1][0], matched[:, 1:-1], np.frombuffer(reach), grain)
    return common, matched.tobytes(), stretches.tobytes()


def cheapest_way(stretches: bytes, shares: bytes, narrow: tuple[float, float], wide: float, least: float) -> float:
    """Cost of the cheapest way from the start of two texts through some stretches, in order, to the last one.

    Args:
        stretches: As `meet` returns them.
        shares: What text between two stretches costs over its shorter length, by shorter / longer in 1 / 256.
        narrow: Below so many bytes it costs less, times the second number.
        wide: From there on times this one.
        least: It never costs less over the shorter length.
    """
    costs = memoryview(shares).cast("d")
    # The start of the texts counts as a stretch that ends there.
    ends = [(0.0, 0.0, 0.0, 0.0)]
    for start, other_start, end, other_end, _ in iter_unpack("5d", stretches):
        cheapest = float("inf")
        # No way from here on costs less than what was lost before, and the least that the way from there costs.
        rest = least * (start - narrow[0])
        for before, other_before, reached, bound in islice(reversed(ends), _LOOK_BACK):
            if bound + rest >= cheapest:
                break
            smaller, larger = sorted((start - before, other_start - other_before))
            if smaller <= 0:
                # They overlap, or stand in another order: all these bytes are lost.
                cost = reached + abs(larger) - smaller
            else:
                share = costs[int(smaller / larger * SHARES)] * (narrow[1] if smaller < narrow[0] else wide)
                cost = reached + larger - smaller + share * smaller
            cheapest = min(cheapest, cost)
        ends.append((end, other_end, cheapest, min(ends[-1][3], cheapest - least * end)))
    return ends[-1][2]


def _kept(symbols: Places, others: Places) -> Places:
    """Places of symbols that are not taken, whose low bits are among those of the others."""
    seen = np.zeros(_CELLS, np.bool_)
    seen[others % _CELLS] = True
    return (seen[symbols % _CELLS] & (symbols < TAKEN)).nonzero()[0]


def _string(symbols: Places) -> str:
    """Each symbol as one code point: the form in which the aligner is fastest."""
    return (symbols + _FIRST_CODE_POINT).astype(_LITTLE_ENDIAN).tobytes().decode("utf-32-le")


def _stretches(one: Places, other: Places, places: Places, reach: Bytes, grain: int) -> Bytes:
    if not places.size:
        return np.empty((0, 5))
    starts = np.array((one[places[0]], other[places[1]]))
    gaps = starts[:, 1:] - starts[:, :-1]
    apart = ((places[:, 1:] - places[:, :-1]) > 1).any(axis=0) | (np.abs(gaps[0] - gaps[1]) > grain)
    firsts, lasts = np.flatnonzero(np.append(True, apart)), np.flatnonzero(np.append(apart, True))
    ends = np.concatenate(
        (
            starts[:, firsts] - _grown(one, other, places[:, firsts], reach, 0),
            starts[:, lasts] + (_grown(one, other, places[:, lasts] + 1, reach, -1) + WINDOW_BYTES),
        )
    )
    shared = np.minimum((ends[:2, 1:] - ends[2:, :-1]).min(axis=0), 0.0) / 2
    ends[2:, :-1] += shared
    ends[:2, 1:] -= shared
    return np.vstack((ends, np.maximum((ends[2:] - ends[:2]).min(axis=0), 0.0))).T


def _grown(one: Places, other: Places, behind: Places, reach: Bytes, end: int) -> Bytes:
    """Bytes by which stretches reach further than their windows.

    Args:
        one: Where the windows of a text start.
        other: The same of the other text.
        behind: Shape (2, n), the windows before whose starts a stretch starts or ends.
        reach: As of `meet`.
        end: Which stretch is at the end of the texts: 0 or -1.
    """
    apart = np.array(
        [np.diff(text, prepend=-WINDOW_BYTES)[places] for text, places in zip((one, other), behind, strict=True)]
    )
    closed = behind[:, end] == (0 if end == 0 else (len(one) - 1, len(other) - 1))
    apart[closed, end] -= WINDOW_BYTES
    room = apart.min(axis=0)
    grown: Bytes = room + reach[np.clip(room, 0, len(reach) - 1)]
    # Where a text starts or ends before the other one has a symbol, there is no difference to look for.
    if (closed & (apart[:, end] == room[end])).any():
        grown[end] = room[end]
    return grown
