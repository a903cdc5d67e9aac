"""The edit distance of two texts, estimated from their aligned LD signatures."""

from dataclasses import dataclass
from operator import add

import numpy as np
from numpy.typing import NDArray

from streams.alignment import WINDOW_BYTES, Alignment, Steps
from streams.stretches import Stretches

# Edits that unrelated English costs beyond the difference of lengths, over the shorter length, by
# shorter / longer; measured on texts of 250 to 8,000 characters.
_RATIOS = np.array((0.0, 0.0625, 0.125, 0.25, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0))
_FOREIGN = np.array((0.0, 0.030, 0.115, 0.265, 0.355, 0.465, 0.560, 0.650, 0.710, 0.770))

# Between stretches that are hardly apart, about half of the text is common after all: too short for a window.
_NARROW_RATES = 4
_NARROW_SHARE = 0.5

_LOOK_BACK = 16  # so many stretches in a row may be left out

_SCATTERED_MATCHES = 8
_SCATTERED_RATIO = 0.9
_SCATTERED_DRIFT = 0.10
_SCATTERED_LARGEST = 0.40

_FINE_STEPS = 256
_FINE = np.interp(np.arange(_FINE_STEPS + 1) / _FINE_STEPS, _RATIOS, _FOREIGN)
_LEAST = 1e-9  # bytes; no length, yet no division by 0


@dataclass(frozen=True)
class ByteDistance:
    """An edit distance in bytes of the normal forms.

    Attributes:
        value: Between `least` and `expected`.
        least: Difference of the lengths.
        expected: That of unrelated texts of these lengths.
        scattered: Estimated from the survival of windows, since single edits lie all over the text.
    """

    value: float
    least: int
    expected: float
    scattered: bool


def edit_distance(alignment: Alignment, between: Steps, common: Stretches, rate: int, *, equal: bool) -> ByteDistance:
    """Estimated edit distance of the whole texts; 0, the only one possible, if their digests are `equal`.

    Block edits are the cheapest way from stretch to stretch of common text. Scattered edits are read from the share
    of surviving windows: a window of N bytes survives edits of density p with probability (1 - p)^N, solved for p.
    Both refine the distance of two LD signatures (Coates: "A Fast Metric of Document Similarity").

    Args:
        alignment: Matches of both texts.
        between: The steps between them.
        common: Their stretches, with those in another order: some of them may be the cheaper way.
        rate: Bytes per symbol.
        equal: Both have the same normal form.
    """
    shorter, longer = alignment.shorter.n_bytes, alignment.longer.n_bytes
    least = longer - shorter
    expected = least + float(_FINE[round(shorter / longer * _FINE_STEPS)]) * shorter
    if equal:
        return ByteDistance(0.0, least, expected, scattered=False)
    if not alignment.matches:
        return ByteDistance(expected, least, expected, scattered=False)
    scattered = _is_scattered(alignment, between)
    value = least + _of_scattered_edits(alignment) if scattered else _of_blocks(common, shorter, longer, rate)
    return ByteDistance(min(max(value, least), expected), least, expected, scattered)


def _is_scattered(alignment: Alignment, between: Steps) -> bool:
    if alignment.matches < _SCATTERED_MATCHES:
        return False
    if alignment.shorter.n_bytes < _SCATTERED_RATIO * alignment.longer.n_bytes:
        return False
    lost = between.lost
    if lost.max() > _SCATTERED_LARGEST * lost.sum():
        return False
    edited = lost > 0
    drift, gaps = between.drift[edited].sum(), between.gaps.max(axis=0)[edited].sum()
    return bool(drift <= _SCATTERED_DRIFT * gaps)


def _of_scattered_edits(alignment: Alignment) -> float:
    survived = alignment.matches / len(alignment.shorter.symbols)
    return float((1 - survived ** (1 / WINDOW_BYTES)) * alignment.shorter.n_bytes)


def _of_blocks(common: Stretches, shorter: int, longer: int, rate: int) -> float:
    """Cost of the cheapest way through both texts that keeps some stretches, in order.

    Between two of them the texts cost what unrelated ones of these lengths do. A short stretch whose texts have moved
    against each other is not worth its moves: it is left out (chaining with gap costs: Myers, Miller 1995).
    """
    count = common.starts.shape[1] + 1
    # The start of the texts counts as a stretch that ends there, their end as one that starts there.
    starts, ends = np.empty((2, count)), np.zeros((2, count))
    starts[:, :-1], starts[0, -1], starts[1, -1] = common.starts, shorter, longer
    ends[:, 1:] = common.ends
    reached = [0.0]
    for top in range(0, count, _LOOK_BACK):
        low, bottom = max(0, top - _LOOK_BACK), top + _LOOK_BACK
        costs = _between(starts[:, top:bottom, None] - ends[:, None, low:bottom], rate)
        for row in costs.tolist():
            # A stretch can only follow those before it: as many as are reached.
            reached.append(min(map(add, reached[low:], row)))
    return reached[-1]


def _between(apart: NDArray[np.float64], rate: int) -> NDArray[np.float64]:
    """Expected distance of what lies between two stretches, as of unrelated text.

    Args:
        apart: Shape (2, rows, columns), bytes of both texts between the end of one stretch and the start of another;
            below 0 where they overlap or stand in another order, which costs all these bytes.
        rate: Bytes per symbol.
    """
    one, other = apart
    smaller, larger = np.minimum(one, other), np.abs(np.maximum(one, other))
    within = np.maximum(smaller, 0.0)
    share: NDArray[np.float64] = _FINE[(within * _FINE_STEPS / (larger + _LEAST)).astype(np.intp)]
    share[smaller < _NARROW_RATES * rate] *= _NARROW_SHARE
    share *= within
    share += larger
    share -= smaller
    return share
