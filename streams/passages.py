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
    """Common text as `[start, end)` in characters of both normal forms; the ends may reach further."""

    shorter: tuple[int, int]
    longer: tuple[int, int]


@dataclass(frozen=True)
class Segment:
    """The stretch of the longer text where matches are densest.

    Attributes:
        matches: How many matches lie in it.
        place: Where it is; None without a match.
    """

    matches: int
    place: Passage | None


def spread(side: Side, starts: NDArray[np.int64]) -> float:
    """Share of a text between the outer ends of the middle 90 % of its matches, in [0, 1].

    Args:
        side: The text.
        starts: Byte where the window of each match starts, ascending.
    """
    trimmed = int(_TRIM * len(starts))
    if not len(starts):
        return 0.0
    return float(starts[len(starts) - 1 - trimmed] + WINDOW_BYTES - starts[trimmed]) / side.n_bytes


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
    """The longest passages in the order of the text, with the number of those left out."""
    breaks = (between.lost > _LOST_MAX) | (between.drift > _DRIFT_MAX)
    breaks[[0, -1]] = True
    edges = np.flatnonzero(breaks)
    firsts, lasts = edges[:-1], edges[1:] - 1
    enough = lasts - firsts >= _MATCHES_MIN - 1
    firsts, lasts = firsts[enough], lasts[enough]
    omitted = max(0, len(firsts) - PASSAGES_MAX)
    if omitted:
        one, other = alignment.starts_shorter, alignment.starts_longer
        lengths = one[lasts] - one[firsts] + other[lasts] - other[firsts]
        longest = np.sort(np.argsort(-lengths, kind="stable")[:PASSAGES_MAX])
        firsts, lasts = firsts[longest], lasts[longest]
    runs = zip(firsts.tolist(), lasts.tolist(), strict=True)
    return tuple(_passage(alignment, first, last) for first, last in runs), omitted


def _passage(alignment: Alignment, first: int, last: int) -> Passage:
    """Where the run of matches from `first` to `last` stands."""
    return Passage(
        _span(alignment.shorter, alignment.starts_shorter, first, last),
        _span(alignment.longer, alignment.starts_longer, first, last),
    )


def _span(side: Side, starts: NDArray[np.int64], first: int, last: int) -> tuple[int, int]:
    """From one window to the end of another, in characters of average width."""
    start, end = int(starts[first]), int(starts[last]) + WINDOW_BYTES
    return round(start * side.characters / side.n_bytes), round(end * side.characters / side.n_bytes)
