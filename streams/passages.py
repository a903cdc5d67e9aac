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
    return Segment(last - first + 1, _places(alignment, np.array([first]), np.array([last]))[0])


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
    return _places(alignment, firsts, lasts), omitted


def _places(alignment: Alignment, firsts: NDArray[np.int64], lasts: NDArray[np.int64]) -> tuple[Passage, ...]:
    """Where the runs of matches from each first to its last stand."""
    one, other = alignment.starts_shorter, alignment.starts_longer
    shorter = _spans(alignment.shorter, one[firsts], one[lasts])
    longer = _spans(alignment.longer, other[firsts], other[lasts])
    return tuple(map(Passage, shorter, longer))


def _spans(side: Side, firsts: NDArray[np.int64], lasts: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Characters from each first window to the end of the last; positions in bytes where no character is wider."""
    ends = np.stack((firsts, lasts + WINDOW_BYTES), axis=1)
    if side.characters != side.n_bytes:
        ends = np.rint(ends * (side.characters / side.n_bytes)).astype(np.int64)
    return [(start, end) for start, end in ends.tolist()]
