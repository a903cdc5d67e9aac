"""Passages: where the common text of two documents lies, in characters."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nearstream.schemas.signature import Signature
from nearstream.streams.estimates.alignment import Alignment, Side, align
from nearstream.streams.estimates.common_text import layout
from nearstream.streams.estimates.pair import SignaturePair, pair, span_in_characters
from nearstream.streams.fingerprints.parameters import LD_WINDOW_BYTES

PASSAGES_MAX = 16
_LOST_MAX = 2
_DRIFT_MAX = 32
_MATCHES_MIN = 2
_MOVES = 4
_NEW_RATES = 4  # even where text was only cut out, one junction in ten leaves a gap of more rates than this


@dataclass(frozen=True)
class Passage:
    """Common text as `[start, end)` in characters of both normal forms.

    The common text may extend beyond both ends.
    """

    shorter: tuple[int, int]
    longer: tuple[int, int]

    @property
    def length(self) -> int:
        """Return the number of characters in both texts together."""
        return self.shorter[1] - self.shorter[0] + self.longer[1] - self.longer[0]


@dataclass(frozen=True)
class CommonText:
    """The positions of the common text of two documents, computed on first use because only events contain them.

    Attributes:
        both: The two texts.
    """

    both: SignaturePair

    @cached_property
    def alignment(self) -> Alignment:
        """Return what both texts have in one order."""
        return align(self.both.shorter_side, self.both.longer_side, self.both.least_common)

    @cached_property
    def segment(self) -> Passage | None:
        """Return where the best segment is expected to lie, None without a match."""
        spans = layout(self.alignment.blocks, self.both.lead).segment_spans
        if spans is None:
            return None
        return Passage(span_in_characters(spans[0], self.both.shorter), span_in_characters(spans[1], self.both.longer))

    @cached_property
    def passages(self) -> tuple[Passage, ...]:
        """Return the longest common passages, in the order of the text."""
        return longest(self.in_order)

    @property
    def passages_omitted(self) -> int:
        """Return the number of passages that `passages` leaves out."""
        return len(self.in_order) - len(self.passages)

    @cached_property
    def in_order(self) -> tuple[Passage, ...]:
        """Return all passages of the alignment, in the order of the text."""
        return passages(self.alignment)

    @cached_property
    def moved(self) -> tuple[Passage, ...]:
        """Return the passages in another order.

        What the alignment leaves over is aligned again, up to four times. Each time another set of passages is found
        in order.
        """
        return tuple(_moved(self.alignment))


def common_text(a: Signature, b: Signature) -> CommonText:
    """Return where the common text of two documents lies. The order of the arguments does not matter.

    Raises:
        ValueError: The signatures are of two schemes or two collections, or a normal form is empty.
    """
    return CommonText(pair(a, b))


def passages(alignment: Alignment) -> tuple[Passage, ...]:
    """Return the passages that the matches of an alignment form.

    A passage is a maximal run of at least two matches, between which few symbols are lost and no text has moved far.
    """
    drift = np.abs(alignment.gaps[0] - alignment.gaps[1])
    breaks = (alignment.lost > _LOST_MAX) | (drift > _DRIFT_MAX)
    breaks[[0, -1]] = True
    edges = np.flatnonzero(breaks)
    long = np.flatnonzero(edges[1:] - edges[:-1] >= _MATCHES_MIN)
    ends = alignment.starts[:, (edges[long] + 1, edges[long + 1])]
    sides = alignment.shorter, alignment.longer
    spans = (_spans(side, *windows) for side, windows in zip(sides, ends, strict=True))
    return tuple(map(Passage, *spans))


def longest(found: tuple[Passage, ...]) -> tuple[Passage, ...]:
    """Return the 16 longest passages, in order."""
    if len(found) <= PASSAGES_MAX:
        return found
    by_length = sorted(range(len(found)), key=lambda index: -found[index].length)
    return tuple(found[index] for index in sorted(by_length[:PASSAGES_MAX]))


def uncovered(
    covered: Iterable[tuple[int, int]], characters: int, rate: int
) -> tuple[tuple[tuple[int, int], ...], int]:
    """Return the longest spans of a text outside its common passages.

    Up to a few symbols are not sampled at the end of a passage, so spans shorter than 4 times the rate are ignored.

    Args:
        covered: Passages as `[start, end)`, in any order.
        characters: Length of the text.
        rate: Characters per LD symbol.

    Returns:
        At most 16 spans, in order, and the number of those left out.
    """
    position, found = 0, []
    for start, end in (*sorted(covered), (characters, characters)):
        if start - position >= min(_NEW_RATES * rate, characters):
            found.append((position, start))
        position = max(position, end)
    kept = sorted(sorted(found, key=lambda span: span[0] - span[1])[:PASSAGES_MAX])
    return tuple(kept), len(found) - len(kept)


def _moved(alignment: Alignment) -> Iterator[Passage]:
    for _ in range(_MOVES):
        if alignment.common - alignment.matches < _MATCHES_MIN:
            return
        alignment = alignment.align_rest()
        found = passages(alignment)
        if not found:
            return
        yield from found


def _spans(side: Side, firsts: NDArray[np.int64], lasts: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return spans from the start of one window to the end of another.

    They are in characters of average width.
    """
    ends = np.rint(np.array((firsts, lasts + LD_WINDOW_BYTES)) * side.characters / side.n_bytes)
    starts, stops = ends.astype(np.int64).tolist()
    return list(zip(starts, stops, strict=True))
