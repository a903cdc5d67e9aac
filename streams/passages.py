"""Where the common text of two documents stands."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streams.alignment import WINDOW_BYTES, Alignment, Side, Steps, align, steps

PASSAGES_MAX = 16
_LOST_MAX = 2
_DRIFT_MAX = 32
_MATCHES_MIN = 2
_MOVES = 4
_NEW_RATES = 4  # where text is only cut out, one junction in ten seems to hold more than so many symbols could say


@dataclass(frozen=True)
class Passage:
    """Common text as `[start, end)` in characters of both normal forms; the ends may reach further."""

    shorter: tuple[int, int]
    longer: tuple[int, int]


def passages(alignment: Alignment, between: Steps, most: int = PASSAGES_MAX) -> tuple[tuple[Passage, ...], int]:
    """The `most` longest passages in the order of the text, with the number of those left out."""
    breaks = (between.lost > _LOST_MAX) | (between.drift > _DRIFT_MAX)
    breaks[[0, -1]] = True
    edges = np.flatnonzero(breaks)
    firsts, lasts = edges[:-1], edges[1:] - 1
    enough = lasts - firsts >= _MATCHES_MIN - 1
    firsts, lasts = firsts[enough], lasts[enough]
    omitted = max(0, len(firsts) - most)
    if omitted:
        one, other = alignment.starts_shorter, alignment.starts_longer
        lengths = one[lasts] - one[firsts] + other[lasts] - other[firsts]
        longest = np.sort(np.argsort(-lengths, kind="stable")[:most])
        firsts, lasts = firsts[longest], lasts[longest]
    runs = zip(firsts.tolist(), lasts.tolist(), strict=True)
    return tuple(_passage(alignment, first, last) for first, last in runs), omitted


def moved(alignment: Alignment) -> Iterator[Passage]:
    """Common passages that stand in another order than those of the alignment.

    What it leaves over is aligned again, up to four times; each time another set of passages is found in order.
    """
    shorter, longer = alignment.shorter, alignment.longer
    free = np.ones(len(shorter.symbols), np.bool_), np.ones(len(longer.symbols), np.bool_)
    for _ in range(_MOVES):
        free[0][alignment.in_shorter] = free[1][alignment.in_longer] = False
        kept = np.flatnonzero(free[0]), np.flatnonzero(free[1])
        if min(len(kept[0]), len(kept[1])) < _MATCHES_MIN:
            return
        left = align(_only(shorter, kept[0]), _only(longer, kept[1]))
        alignment = Alignment(shorter, longer, kept[0][left.in_shorter], kept[1][left.in_longer])
        found, _ = passages(alignment, steps(alignment), alignment.matches)
        if not found:
            return
        yield from found


def uncovered(
    covered: Iterable[tuple[int, int]], characters: int, rate: int
) -> tuple[tuple[tuple[int, int], ...], int]:
    """The longest stretches of a text between its common passages, in order, with the number of those left out.

    Where a passage ends, up to a few symbols are not sampled: stretches below 4 times the rate say nothing.

    Args:
        covered: Passages as `[start, end)`, in any order.
        characters: Length of the text.
        rate: Characters per LD symbol.
    """
    at, found = 0, []
    for start, end in (*sorted(covered), (characters, characters)):
        if start - at >= min(_NEW_RATES * rate, characters):
            found.append((at, start))
        at = max(at, end)
    longest = sorted(sorted(found, key=lambda span: span[0] - span[1])[:PASSAGES_MAX])
    return tuple(longest), len(found) - len(longest)


def _only(side: Side, symbols: NDArray[np.int64]) -> Side:
    return Side(side.symbols[symbols], side.positions[symbols], side.n_bytes, side.characters)


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
