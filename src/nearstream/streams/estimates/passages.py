"""Passages: where the common text of two documents lies, in characters."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from struct import Struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearstream.schemas.documents.signature import Signature
from nearstream.streams.estimates.alignment import Alignment, Side, align, reach_table
from nearstream.streams.estimates.common_text import layout
from nearstream.streams.estimates.comparing import fields_of
from nearstream.streams.estimates.pair import SignaturePair, pair, span_in_characters
from nearstream.streams.estimates.stated import refuse_incomparable, same_lineage
from nearstream.streams.fingerprints.parameters import LD_WINDOW_BYTES
from nearstream.streams.native import fastest, native

PASSAGES_MAX = 16
_LOST_MAX = 2
_DRIFT_MAX = 32
_MATCHES_MIN = 2
_MOVES = 4
_PLACES = Struct("=4q")
_NEW_RATES = 4  # even where text was only cut out, one junction in ten leaves a gap of more rates than this


class Passage(NamedTuple):
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
    """Where the common text of two documents lies.

    Attributes:
        in_order: All passages that both texts have in one order, in the order of the text.
        moved: The passages in another order. What the alignment leaves over is aligned again, up to four times. Each
            time another set of passages is found in order.
        segment: Where the best segment is expected to lie, None without a match.
        changes: Where symbols are lost or one text has grown, as exactly as common windows show it. If that is nowhere,
            all places without a common window, since a change has to be in one of them. A span may be empty or end
            before it starts where a text has nothing.
    """

    in_order: tuple[Passage, ...]
    moved: tuple[Passage, ...]
    segment: Passage | None
    changes: tuple[Passage, ...]

    @cached_property
    def passages(self) -> tuple[Passage, ...]:
        """Return the 16 longest passages in order, in the order of the text."""
        return longest(self.in_order)

    @property
    def passages_omitted(self) -> int:
        """Return the number of passages that `passages` leaves out."""
        return len(self.in_order) - len(self.passages)


def common_text(a: Signature, b: Signature) -> CommonText:
    """Return where the common text of two documents lies. The order of the arguments does not matter.

    Raises:
        ValueError: The signatures are of two schemes or two collections, or a normal form is empty.
    """
    refuse_incomparable(a, b)
    return _common_text(a, b)


def common_text_numpy(a: Signature, b: Signature) -> CommonText:
    """Return where the common text of two documents lies, without C."""
    both = pair(a, b)
    alignment = align(both.shorter_side, both.longer_side, both.least_common)
    return CommonText(passages(alignment), tuple(_moved(alignment)), _segment(both, alignment), _changes(alignment))


def common_text_native(a: Signature, b: Signature) -> CommonText:
    """Return where the common text of two documents lies in one call of C."""
    found = native.common_text(fields_of(a), fields_of(b), same_lineage(a, b), reach_table)
    in_order, moved, segment, changes = (
        tuple([Passage((start, end), (start_longer, end_longer)) for start, end, start_longer, end_longer in numbers])
        for numbers in map(_PLACES.iter_unpack, found)
    )
    return CommonText(in_order, moved, segment[0] if segment else None, changes)


_common_text = fastest(common_text_native, common_text_numpy)


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


def uncovered(covered: Iterable[tuple[int, int]], characters: int, rate: int) -> list[tuple[int, int]]:
    """Return the spans of a text outside its common passages.

    Up to a few symbols are not sampled at the end of a passage, so spans shorter than 4 times the rate are ignored.

    Args:
        covered: Passages as `[start, end)`, in any order.
        characters: Length of the text.
        rate: Characters per LD symbol.
    """
    position, found = 0, []
    for start, end in (*sorted(covered), (characters, characters)):
        if start - position >= min(_NEW_RATES * rate, characters):
            found.append((position, start))
        position = max(position, end)
    return found


def changed(of_one: Iterable[tuple[int, int]], of_other: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return which changes leave something in one text, from their spans in both.

    Where a text is shorter by a window or more, text was probably only cut out. Such places count if there is no other.
    """
    both = [(own, other) for own, other in zip(of_one, of_other, strict=True) if own[1] > own[0]]
    grown = [own for own, other in both if own[1] - own[0] > other[1] - other[0] - LD_WINDOW_BYTES]
    return grown or [own for own, _ in both]


def longest_spans(found: Sequence[tuple[int, int]]) -> tuple[tuple[tuple[int, int], ...], int]:
    """Return the 16 longest spans, in order, and the number of those left out."""
    kept = sorted(sorted(found, key=lambda span: span[0] - span[1])[:PASSAGES_MAX])
    return tuple(kept), len(found) - len(kept)


def _segment(both: SignaturePair, alignment: Alignment) -> Passage | None:
    spans = layout(alignment.blocks, both.lead).segment_spans
    if spans is None:
        return None
    return Passage(span_in_characters(spans[0], both.shorter), span_in_characters(spans[1], both.longer))


def _changes(alignment: Alignment) -> tuple[Passage, ...]:
    grain = max(alignment.shorter.grain, alignment.longer.grain)
    seen = (alignment.lost > 0) | (np.abs(alignment.gaps[0] - alignment.gaps[1]) > grain)
    bare = (alignment.gaps > LD_WINDOW_BYTES).any(axis=0)
    kept = np.flatnonzero(bare & seen if (bare & seen).any() else bare)
    sides = alignment.shorter, alignment.longer
    # From the end of one window to the start of another.
    starts, stops = alignment.starts[:, kept] + LD_WINDOW_BYTES, alignment.starts[:, kept + 1] - LD_WINDOW_BYTES
    spans = (_spans(side, *ends) for side, *ends in zip(sides, starts, stops, strict=True))
    return tuple(map(Passage, *spans))


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
