"""Where the common text of two documents lies, found in Python."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from nearstream.schemas.documents.signature import Signature
from nearstream.streams.estimates.passages import CommonText, Passage
from nearstream.streams.fingerprints.parameters import LD_WINDOW_BYTES
from tests.reference.alignment import Alignment, Side, align
from tests.reference.common_text import layout
from tests.reference.pair import SignaturePair, pair, span_in_characters

_LOST_MAX = 2
_DRIFT_MAX = 32
_MATCHES_MIN = 2
_MOVES = 4


def common_text(a: Signature, b: Signature) -> CommonText:
    """Return where the common text of two documents lies."""
    both = pair(a, b)
    alignment = align(both.shorter_side, both.longer_side, both.least_common)
    return CommonText(passages(alignment), tuple(_moved(alignment)), _segment(both, alignment), _changes(alignment))


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
