"""Stretches of text that two documents have in common."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from streams.alignment import WINDOW_BYTES, Alignment, Steps

_TRIM = 0.05
_LEAST = 1e-9  # bytes; no growth, yet no division by 0

Bytes = NDArray[np.float64]
Span = tuple[float, float]


@dataclass(frozen=True)
class Stretches:
    """Common text without a visible difference inside, in order; row 0 tells of the shorter text, row 1 of the longer.

    Attributes:
        starts: Shape (2, n), byte of the normal form where each stretch is expected to start.
        ends: The same of its end.
    """

    starts: Bytes
    ends: Bytes

    @cached_property
    def lengths(self) -> Bytes:
        """Bytes of each stretch."""
        of_both = self.ends - self.starts
        lengths: Bytes = np.maximum(0.0, np.minimum(of_both[0], of_both[1]))
        return lengths

    def shingle_bytes(self, lead: float) -> float:
        """Bytes at which a common shingle can start.

        Args:
            lead: Bytes of a shingle before its last word.
        """
        return float(np.maximum(0.0, self.lengths - lead).sum())


def merged(one: Stretches, other: Stretches) -> Stretches:
    """All stretches of both by their start in the shorter text; in the longer one they may stand in any order."""
    starts, ends = np.hstack((one.starts, other.starts)), np.hstack((one.ends, other.ends))
    order = starts[0].argsort(kind="stable")
    return Stretches(starts[:, order], ends[:, order])


@dataclass(frozen=True)
class Layout:
    """How common text lies in two documents, in bytes; first of the shorter, then of the longer text.

    Attributes:
        common: Text in stretches that are long enough.
        spreads: From the stretch that holds the 5 % point of this text to the one that holds the 95 % point.
        segment: Common text in the best segment: the part of the longer where common text outweighs the other most.
        places: Where the best segment is; None without common text.
    """

    common: float
    spreads: tuple[float, float]
    segment: float
    places: tuple[Span, Span] | None


def stretches(alignment: Alignment, between: Steps, rate: int, grain: int = 0) -> Stretches:
    """Maximal runs of matches between which no symbol is lost and no text moved, grown to their expected ends.

    Where a run ends, the first difference lies after its last window, yet before the end of the next sampled one, r
    bytes on. Windows are sampled at 1 / rate, those that differ in both texts; so a difference x bytes on is as
    likely as exp(x / rate), on average at r / (1 - exp(-r / rate)) - rate.

    Args:
        alignment: Matches of both texts.
        between: The steps between them.
        rate: Bytes per symbol.
        grain: Bytes by which positions may be off, where they are kept in coarser units.
    """
    if not alignment.matches:
        return Stretches(np.zeros((2, 0)), np.zeros((2, 0)))
    breaks = ((between.lost[1:-1] > 0) | (between.drift[1:-1] > grain)).nonzero()[0]
    ends = np.empty(len(breaks) + 2, np.int64)
    ends[0], ends[1:-1], ends[-1] = -1, breaks, alignment.matches - 1
    firsts, lasts = ends[:-1] + 1, ends[1:]
    grown = _grown(alignment, firsts, lasts, rate)
    one, other = alignment.starts_shorter, alignment.starts_longer
    starts = np.array((one[firsts], other[firsts])) - grown[0]
    stops = np.array((one[lasts], other[lasts])) + (grown[1] + WINDOW_BYTES)
    if len(breaks):
        # Neighbours that would overlap meet halfway.
        shared = stops[:, :-1] - starts[:, 1:]
        shared = np.maximum(0.0, np.maximum(shared[0], shared[1])) / 2
        stops[:, :-1] -= shared
        starts[:, 1:] += shared
    return Stretches(starts, stops)


def layout(common: Stretches, least: float) -> Layout:
    """How stretches of at least so many bytes lie; how all of them do if none is as long.

    The best segment is Kadane's maximum subarray: +1 a common byte of the longer text, -1 any other.
    """
    lengths = common.lengths
    weights = lengths * (lengths >= least)
    upto = weights.cumsum()
    if upto.size and not upto[-1]:
        weights, upto = lengths, lengths.cumsum()
    total = float(upto[-1]) if upto.size else 0.0
    if not total:
        return Layout(0.0, (0.0, 0.0), 0.0, None)
    first, last = upto.searchsorted((_TRIM * total, (1 - _TRIM) * total)).tolist()
    low, high = (common.ends[:, last] - common.starts[:, first]).tolist()
    before = upto - weights
    height = 2 * before - common.starts[1]
    sums = height + weights - np.minimum.accumulate(height)
    stop = int(sums.argmax())
    start = int(height[: stop + 1].argmin())
    (one, other), (one_end, other_end) = common.starts[:, start].tolist(), common.ends[:, stop].tolist()
    inside = float(upto[stop] - before[start])
    return Layout(total, (low, high), inside, ((one, one_end), (other, other_end)))


def _grown(alignment: Alignment, firsts: NDArray[np.int64], lasts: NDArray[np.int64], rate: int) -> Bytes:
    """Shape (2, n), bytes by which stretches reach further than their windows: to the left, to the right."""
    (one, apart), (other, away) = (
        (matched, side.apart)
        for matched, side in ((alignment.in_shorter, alignment.shorter), (alignment.in_longer, alignment.longer))
    )
    left = apart[one[firsts]], away[other[firsts]]
    right = apart[one[lasts] + 1], away[other[lasts] + 1]
    room = np.array((np.minimum(*left), np.minimum(*right)), np.float64)
    some = room + _LEAST
    grown: Bytes = some / -np.expm1(some / -rate) - rate
    # Where a text starts or ends before the other one has a symbol, there is no difference to look for.
    if (one[0] == 0 and left[0][0] <= left[1][0]) or (other[0] == 0 and left[1][0] <= left[0][0]):
        grown[0, 0] = room[0, 0]
    one_ends, other_ends = one[-1] + 2 == len(apart), other[-1] + 2 == len(away)
    if (one_ends and right[0][-1] <= right[1][-1]) or (other_ends and right[1][-1] <= right[0][-1]):
        grown[1, -1] = room[1, -1]
    return grown
