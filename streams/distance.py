"""The edit distance of two texts, estimated from their aligned LD signatures."""

from dataclasses import dataclass

import numpy as np

from streams.alignment import WINDOW_BYTES, Alignment, Steps

# Edits that unrelated English costs beyond the difference of lengths, over the shorter length, by
# shorter / longer; measured on texts of 250 to 8,000 characters.
_RATIOS = np.array((0.0, 0.0625, 0.125, 0.25, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0))
_FOREIGN = np.array((0.0, 0.030, 0.115, 0.265, 0.355, 0.465, 0.560, 0.650, 0.710, 0.770))

# Share of a step that is foreign text, by its lost symbols: few mean an edit and its neighbours, many
# a replaced stretch.
_LOST_FROM = np.array((2, 5, 17, 65))
_LOST_WEIGHTS = np.array((0.11, 0.19, 0.37, 0.92, 0.98))
_DRIFT_WEIGHT = 0.60
_IN_PLACE_LOST = 2

_SCATTERED_MATCHES = 8
_SCATTERED_RATIO = 0.9
_SCATTERED_DRIFT = 0.10
_SCATTERED_LARGEST = 0.40


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


def edit_distance(alignment: Alignment, between: Steps, *, equal: bool) -> ByteDistance:
    """Estimated edit distance of the whole texts; 0, the only one possible, if their digests are `equal`.

    Block edits are added up step by step, from the gaps that the signatures keep beside their symbols.
    Scattered edits are read from the share of surviving windows: a window of N bytes survives edits of
    density p with probability (1 - p)^N, solved for p. Both refine the distance of two LD signatures
    (Coates: "A Fast Metric of Document Similarity").
    """
    shorter, longer = alignment.shorter.n_bytes, alignment.longer.n_bytes
    least = longer - shorter
    expected = least + float(np.interp(shorter / longer, _RATIOS, _FOREIGN)) * shorter
    if equal:
        return ByteDistance(0.0, least, expected, scattered=False)
    if not alignment.matches:
        return ByteDistance(expected, least, expected, scattered=False)
    scattered = _is_scattered(alignment, between)
    beyond = _of_scattered_edits(alignment) if scattered else _of_blocks(between, least)
    return ByteDistance(min(least + beyond, expected), least, expected, scattered)


def _is_scattered(alignment: Alignment, between: Steps) -> bool:
    if alignment.matches < _SCATTERED_MATCHES:
        return False
    if alignment.shorter.n_bytes < _SCATTERED_RATIO * alignment.longer.n_bytes:
        return False
    edited = between.lost > 0
    drift = between.drift[edited].sum()
    gaps = np.maximum(between.gaps_shorter, between.gaps_longer)[edited].sum()
    lost = between.lost[edited]
    return bool(drift <= _SCATTERED_DRIFT * gaps and lost.max(initial=0) <= _SCATTERED_LARGEST * lost.sum())


def _of_scattered_edits(alignment: Alignment) -> float:
    survived = alignment.matches / len(alignment.shorter.symbols)
    return float((1 - survived ** (1 / WINDOW_BYTES)) * alignment.shorter.n_bytes)


def _of_blocks(between: Steps, least: int) -> float:
    in_place = (between.drift == 0) & (~between.lost_differs | (between.lost <= _IN_PLACE_LOST))
    replaced = np.flatnonzero((between.lost > 0) & ~in_place)
    one, other = between.gaps_shorter[replaced], between.gaps_longer[replaced]
    smaller, larger = np.minimum(one, other), np.maximum(one, other)
    weights = _LOST_WEIGHTS[np.searchsorted(_LOST_FROM, between.lost[replaced], side="right")]
    foreign = weights * np.interp(smaller / larger, _RATIOS, _FOREIGN) * smaller
    return float(_DRIFT_WEIGHT * max(0, between.drift.sum() - least) + foreign.sum())
