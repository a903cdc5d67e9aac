"""Where the common text of two documents stands."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streams.alignment import WINDOW_BYTES, Alignment, Side, Steps

PASSAGES_MAX = 16
_TRIM = 0.05
_LOST_MAX = 2
_DRIFT_MAX = 32
_MATCHES_MIN = 2


@dataclass(frozen=True)
class Passage:
    """Common text as `[start, end)` of both normal forms; an inner bound, the ends may reach further."""

    shorter: tuple[int, int]
    longer: tuple[int, int]


@dataclass(frozen=True)
class Segment:
    """The stretch of the longer text where matches are densest.

    Attributes:
        matches: How many matches lie in it.
        place: Where it is, in bytes; None without a match.
    """

    matches: int
    place: Passage | None


def spread(side: Side, matched: NDArray[np.int64]) -> float:
    """Share of a text between the outer ends of the middle 90 % of its matches, in [0, 1]."""
    trimmed = int(_TRIM * len(matched))
    if not len(matched):
        return 0.0
    first, last = matched[trimmed], matched[len(matched) - 1 - trimmed]
    return float(side.positions[last] + WINDOW_BYTES - side.positions[first]) / side.n_bytes


def best_segment(alignment: Alignment) -> Segment:
    """The run of matches with the largest sum of +1 a match, -1 a symbol of the longer text between.

    Kadane's maximum subarray: with A(k) = 2k - (index of match k in the longer text) a run from p to q
    sums to A(q) - A(p) + 1.
    """
    if not alignment.matches:
        return Segment(0, None)
    height = 2 * np.arange(alignment.matches) - alignment.in_longer
    last = int(np.argmax(height - np.minimum.accumulate(height)))
    first = int(np.argmin(height[: last + 1]))
    return Segment(last - first + 1, _passage(alignment, first, last))


def passages(alignment: Alignment, between: Steps) -> tuple[tuple[Passage, ...], int]:
    """The longest passages in the order of the text, in bytes, with the number of those left out."""
    drift = np.abs(between.gaps_shorter - between.gaps_longer)
    breaks = (between.lost > _LOST_MAX) | (drift > _DRIFT_MAX)
    breaks[[0, -1]] = True
    edges = np.flatnonzero(breaks)
    firsts, lasts = edges[:-1], edges[1:] - 1
    enough = lasts - firsts + 1 >= _MATCHES_MIN
    firsts, lasts = firsts[enough], lasts[enough]
    lengths = sum(
        side.positions[matched[lasts]] - side.positions[matched[firsts]]
        for side, matched in ((alignment.shorter, alignment.in_shorter), (alignment.longer, alignment.in_longer))
    )
    longest = np.sort(np.argsort(-lengths, kind="stable")[:PASSAGES_MAX])
    found = tuple(_passage(alignment, int(firsts[k]), int(lasts[k])) for k in longest)
    return found, len(firsts) - len(found)


def _passage(alignment: Alignment, first: int, last: int) -> Passage:
    return Passage(
        _span(alignment.shorter, alignment.in_shorter, first, last),
        _span(alignment.longer, alignment.in_longer, first, last),
    )


def _span(side: Side, matched: NDArray[np.int64], first: int, last: int) -> tuple[int, int]:
    return int(side.positions[matched[first]]), int(side.positions[matched[last]]) + WINDOW_BYTES
