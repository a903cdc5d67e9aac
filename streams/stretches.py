"""Stretches of text that two documents have in common."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from streams.alignment import Stretch

_TRIM = 0.05

Span = tuple[float, float]


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
