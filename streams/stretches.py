"""Stretches of text that two documents have in common."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streams.alignment import WINDOW_BYTES, Alignment

_TRIM = 0.05
_LEAST = 1e-9  # bytes; no growth, yet no division by 0

Bytes = NDArray[np.float64]
Span = tuple[float, float]


class Stretch(NamedTuple):
    """Common text without a visible difference inside: bytes of both normal forms where it is expected to be."""

    start_shorter: float
    start_longer: float
    end_shorter: float
    end_longer: float
    length: float


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


def stretches(alignment: Alignment, rate: int, grain: int = 0) -> list[Stretch]:
    """Maximal runs of matches between which no symbol is lost and no text moved, grown to their expected ends.

    Where a run ends, the first difference lies after its last window, yet before the end of the next sampled one, r
    bytes on. Windows are sampled at 1 / rate, those that differ in both texts; so a difference x bytes on is as
    likely as exp(x / rate), on average at r / (1 - exp(-r / rate)) - rate.

    Args:
        alignment: Matches of both texts.
        rate: Bytes per symbol.
        grain: Bytes by which positions may be off, where they are kept in coarser units.
    """
    if not alignment.matches:
        return []
    between = alignment.steps
    breaks = between.lost > 0
    breaks |= between.drift > grain
    breaks[0] = breaks[-1] = True
    (edges,) = breaks.nonzero()
    count = len(edges) - 1
    # First the first match of each run, then the last one.
    outer = np.concatenate((edges[:-1] + 1, edges[1:]))
    grown = _grown(alignment, outer, rate)
    grown[count:] += WINDOW_BYTES
    windows = alignment.starts[:, outer]
    ends = np.empty((5, count))
    np.subtract(windows[:, :count], grown[:count], out=ends[:2])
    np.add(windows[:, count:], grown[count:], out=ends[2:4])
    if count > 1:
        # Neighbours that would overlap meet halfway.
        apart = ends[:2, 1:] - ends[2:4, :-1]
        shared = np.minimum(np.minimum(apart[0], apart[1]), 0.0) / 2
        ends[2:4, :-1] += shared
        ends[:2, 1:] -= shared
    lengths = ends[2:4] - ends[:2]
    np.maximum(np.minimum(lengths[0], lengths[1]), 0.0, out=ends[4])
    return list(map(Stretch._make, ends.T.tolist()))


def shingle_bytes(common: Sequence[Stretch], lead: float) -> float:
    """Bytes at which a common shingle can start.

    Args:
        common: Stretches of common text.
        lead: Bytes of a shingle before its last word.
    """
    return sum([each.length - lead for each in common if each.length > lead])


def layout(common: Sequence[Stretch], least: float) -> Layout:
    """How stretches of at least so many bytes lie; how all of them do if none is as long."""
    long = [each for each in common if each.length >= least] or [each for each in common if each.length]
    upto = list(accumulate([each.length for each in long]))
    if not upto or not upto[-1]:
        return Layout(0.0, (0.0, 0.0), 0.0, None)
    first, last = long[bisect_left(upto, _TRIM * upto[-1])], long[bisect_left(upto, (1 - _TRIM) * upto[-1])]
    start, stop, inside = _best_segment(long)
    return Layout(
        upto[-1],
        (last.end_shorter - first.start_shorter, last.end_longer - first.start_longer),
        inside,
        ((start.start_shorter, stop.end_shorter), (start.start_longer, stop.end_longer)),
    )


def _best_segment(common: Sequence[Stretch]) -> tuple[Stretch, Stretch, float]:
    """First and last stretch of Kadane's maximum subarray, with the common bytes in it.

    A common byte of the longer text counts +1, any other -1.
    """
    start, inside, behind = common[0], 0.0, 0.0
    sum_, most, best = -1.0, 0.0, (start, start, 0.0)
    for each in common:
        sum_ -= each.start_longer - behind
        if sum_ < 0:
            start, inside, sum_ = each, 0.0, 0.0
        sum_ += each.length
        inside += each.length
        if sum_ > most:
            most, best = sum_, (start, each, inside)
        behind = each.start_longer + each.length
    return best


def _grown(alignment: Alignment, outer: NDArray[np.int64], rate: int) -> Bytes:
    """Bytes by which stretches reach further than their windows: all to the left, then all to the right."""
    count = len(outer) // 2
    matched = alignment.matched[:, outer]
    matched[:, count:] += 1
    apart = np.empty_like(matched)
    for row, side in enumerate((alignment.shorter, alignment.longer)):
        apart[row] = side.places[matched[row]] - side.places[matched[row] - 1]
    ends = (0, (0, 0)), (-1, alignment.matched[:, -1].tolist())
    last = [(row, at) for at, symbols in ends for row, symbol in enumerate(symbols) if matched[row, at] == symbol]
    for row, at in last:
        apart[row, at] -= WINDOW_BYTES
    room = np.minimum(apart[0], apart[1])
    some = room + _LEAST
    grown: Bytes = some / -np.expm1(some / -rate) - rate
    for row, at in last:
        # Where a text starts or ends before the other one has a symbol, there is no difference to look for.
        if apart[row, at] == room[at]:
            grown[at] = room[at]
    return grown
