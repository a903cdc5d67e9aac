"""Where the common text of two documents stands."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from streams.alignment import Alignment, Side
from streams.pair_loops import WINDOW_BYTES

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

    @property
    def length(self) -> int:
        """Characters in both texts together."""
        return self.shorter[1] - self.shorter[0] + self.longer[1] - self.longer[0]


@dataclass(frozen=True)
class CommonText:
    """Passages of two texts, found when they are asked for: only events tell them.

    Attributes:
        alignment: What both have in the same order.
    """

    alignment: Alignment

    @cached_property
    def in_order(self) -> tuple[Passage, ...]:
        """All passages of the alignment, in the order of the text."""
        return passages(self.alignment)

    @cached_property
    def moved(self) -> tuple[Passage, ...]:
        """Passages in another order.

        What the alignment leaves over is aligned again, up to four times; each time another set of passages is found
        in order.
        """
        return tuple(_moved(self.alignment))


def passages(alignment: Alignment) -> tuple[Passage, ...]:
    """Maximal runs of at least two matches, between which few symbols are lost and no text has moved far."""
    drift = np.abs(alignment.gaps[0] - alignment.gaps[1])
    breaks = (alignment.lost > _LOST_MAX) | (drift > _DRIFT_MAX)
    breaks[[0, -1]] = True
    edges = np.flatnonzero(breaks)
    long = np.flatnonzero(edges[1:] - edges[:-1] >= _MATCHES_MIN)
    ends = alignment.starts[:, (edges[long] + 1, edges[long + 1])]
    spans = (_spans(side, *each) for side, each in zip((alignment.shorter, alignment.longer), ends, strict=True))
    return tuple(map(Passage, *spans))


def longest(found: tuple[Passage, ...]) -> tuple[Passage, ...]:
    """The 16 longest passages, in order."""
    if len(found) <= PASSAGES_MAX:
        return found
    by_length = sorted(range(len(found)), key=lambda place: -found[place].length)
    return tuple(found[place] for place in sorted(by_length[:PASSAGES_MAX]))


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
    told = sorted(sorted(found, key=lambda span: span[0] - span[1])[:PASSAGES_MAX])
    return tuple(told), len(found) - len(told)


def _moved(alignment: Alignment) -> Iterator[Passage]:
    for _ in range(_MOVES):
        if alignment.common - alignment.matches < _MATCHES_MIN:
            return
        alignment = alignment.rest()
        found = passages(alignment)
        if not found:
            return
        yield from found


def _spans(side: Side, firsts: NDArray[np.int64], lasts: NDArray[np.int64]) -> list[tuple[int, int]]:
    """From one window to the end of another, in characters of average width."""
    ends = np.rint(np.array((firsts, lasts + WINDOW_BYTES)) * side.characters / side.n_bytes)
    starts, stops = ends.astype(np.int64).tolist()
    return list(zip(starts, stops, strict=True))
