"""The edit distance of two texts, estimated from their aligned LD signatures."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from streams.alignment import WINDOW_BYTES, Alignment
from streams.stretches import Stretch

# Edits that unrelated English costs beyond the difference of lengths, over the shorter length, by
# shorter / longer; measured on texts of 250 to 8,000 characters.
_RATIOS = np.array((0.0, 0.0625, 0.125, 0.25, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0))
_FOREIGN = np.array((0.0, 0.030, 0.115, 0.265, 0.355, 0.465, 0.560, 0.650, 0.710, 0.770))

# Between stretches that are hardly apart, about half of the text is common after all: too short for a window.
_NARROW_RATES = 4
_NARROW_SHARE = 0.5

_CHEAPEST = 0.70  # unrelated texts differ in this share of the longer one at least
_LOOK_BACK = 32  # so many stretches in a row may be left out

_SCATTERED_MATCHES = 8
_SCATTERED_RATIO = 0.9
_SCATTERED_DRIFT = 0.10
_SCATTERED_LARGEST = 0.40

_FINE_STEPS = 256
_FINE = np.interp(np.arange(_FINE_STEPS + 1) / _FINE_STEPS, _RATIOS, _FOREIGN).tolist()


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


def edit_distance(alignment: Alignment, common: Sequence[Stretch], rate: int, *, equal: bool) -> ByteDistance:
    """Estimated edit distance of the whole texts; 0, the only one possible, if their digests are `equal`.

    Block edits are the cheapest way from stretch to stretch of common text. Scattered edits are read from the share
    of surviving windows: a window of N bytes survives edits of density p with probability (1 - p)^N, solved for p.
    Both refine the distance of two LD signatures (Coates: "A Fast Metric of Document Similarity").

    Args:
        alignment: Matches of both texts.
        common: Their stretches, with those in another order: some of them may be the cheaper way.
        rate: Bytes per symbol.
        equal: Both have the same normal form.
    """
    shorter, longer = alignment.shorter.n_bytes, alignment.longer.n_bytes
    least = longer - shorter
    expected = least + _FINE[round(shorter / longer * _FINE_STEPS)] * shorter
    if equal:
        return ByteDistance(0.0, least, expected, scattered=False)
    if not alignment.matches:
        return ByteDistance(expected, least, expected, scattered=False)
    scattered = _is_scattered(alignment)
    value = least + _of_scattered_edits(alignment) if scattered else _of_blocks(common, shorter, longer, rate)
    return ByteDistance(min(max(value, least), expected), least, expected, scattered)


def _is_scattered(alignment: Alignment) -> bool:
    if alignment.matches < _SCATTERED_MATCHES:
        return False
    if alignment.shorter.n_bytes < _SCATTERED_RATIO * alignment.longer.n_bytes:
        return False
    between = alignment.steps
    lost = between.lost
    if lost.max() > _SCATTERED_LARGEST * lost.sum():
        return False
    edited = lost > 0
    drift, gaps = between.drift[edited].sum(), between.gaps.max(axis=0)[edited].sum()
    return bool(drift <= _SCATTERED_DRIFT * gaps)


def _of_scattered_edits(alignment: Alignment) -> float:
    survived = alignment.matches / len(alignment.shorter.symbols)
    return float((1 - survived ** (1 / WINDOW_BYTES)) * alignment.shorter.n_bytes)


def _of_blocks(common: Sequence[Stretch], shorter: int, longer: int, rate: int) -> float:
    """Cost of the cheapest way through both texts that keeps some stretches, in order.

    Between two of them the texts cost what unrelated ones of these lengths do. A short stretch whose texts have moved
    against each other is not worth its moves: it is left out (chaining with gap costs: Myers, Miller 1995).
    """
    narrow = _NARROW_RATES * rate
    # The start of the texts counts as a stretch that ends there, their end as one that starts there.
    ends = [(0.0, 0.0, 0.0, 0.0)]
    for start, other_start, end, other_end, _ in (*common, Stretch(shorter, longer, shorter, longer, 0.0)):
        cheapest = float("inf")
        # No way from here on costs less than what was lost before, and the least that the way from there costs.
        rest = _CHEAPEST * (start - _NARROW_SHARE * narrow)
        for before, other_before, reached, bound in islice(reversed(ends), _LOOK_BACK):
            if bound + rest >= cheapest:
                break
            one, other = start - before, other_start - other_before
            smaller, larger = (one, other) if one < other else (other, one)
            if smaller <= 0:
                # They overlap, or stand in another order: all these bytes are lost.
                cost = reached + abs(larger) - smaller
            else:
                share = _FINE[int(smaller / larger * _FINE_STEPS)]
                if smaller < narrow:
                    share *= _NARROW_SHARE
                cost = reached + larger - smaller + share * smaller
            if cost < cheapest:
                cheapest = cost
        ends.append((end, other_end, cheapest, min(ends[-1][3], cheapest - _CHEAPEST * end)))
    return ends[-1][2]
