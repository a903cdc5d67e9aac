"""The edit distance of two texts, estimated from their aligned LD signatures."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from math import exp, sqrt

import numpy as np

from streams.alignment import Alignment, Stretch
from streams.pair_loops import SHARES, WINDOW_BYTES

try:
    from streams._native import cheapest_way
except ImportError:  # installed without a compiler
    from streams.pair_loops import cheapest_way

# Edits that unrelated English costs beyond the difference of lengths, over the shorter length, by
# shorter / longer; measured on texts of 250 to 8,000 characters.
_RATIOS = np.array((0.0, 0.0625, 0.125, 0.25, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0))
_FOREIGN = np.array((0.0, 0.030, 0.115, 0.265, 0.355, 0.465, 0.560, 0.650, 0.710, 0.770))

# Between stretches that are hardly apart, about half of the text is common after all: too short for a window.
_NARROW_RATES = 4
_NARROW_SHARE = 0.5

# So much of the common text that is hidden between edits all over a text costs nothing; fewer stretches tell nothing.
_HIDDEN_WEIGHT = 0.65
_HIDDEN_STRETCHES = 8
_MOST_EXPONENT = 20.0

_CHEAPEST = 0.70  # unrelated texts differ in this share of the longer one at least

_SCATTERED_MATCHES = 8
_SCATTERED_RATIO = 0.9
_SCATTERED_DRIFT = 0.10
_SCATTERED_LARGEST = 0.40
_SCATTERED_VARIANCE = 2.0
_SCATTERED_RUN = 8.0

_FINE = np.interp(np.arange(SHARES + 1) / SHARES, _RATIOS, _FOREIGN)
_PACKED = _FINE.tobytes()


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
    of surviving windows: among characters of w bytes, edited with density p, a window of N bytes touches
    (N - 1 + w) / w and survives with (1 - p) to this power, solved for p. Both refine the distance of two LD
    signatures (Coates: "A Fast Metric of Document Similarity").

    Args:
        alignment: Matches of both texts.
        common: Their stretches, with those in another order: some of them may be the cheaper way.
        rate: Bytes per symbol.
        equal: Both have the same normal form.
    """
    shorter, longer = alignment.shorter.n_bytes, alignment.longer.n_bytes
    least = longer - shorter
    expected = least + float(_FINE[round(shorter / longer * SHARES)]) * shorter
    if equal:
        return ByteDistance(0.0, least, expected, scattered=False)
    if not alignment.matches:
        return ByteDistance(expected, least, expected, scattered=False)
    single = _of_single_edits(alignment)
    value = _of_blocks(common, shorter, longer, rate) if single is None else least + single
    return ByteDistance(min(max(value, least), expected), least, expected, scattered=single is not None)


def _of_single_edits(alignment: Alignment) -> float | None:
    """Bytes of edited characters beside those by which the lengths differ; None unless they lie all over the text.

    A window survives if none of the characters that it touches was edited. Edits fall on the steps that lost symbols
    in proportion to their gaps; by what a step moves the texts against each other, characters were inserted or deleted
    in it, which the lengths tell already. Edits of single characters change the length by one at most, so that its
    variance is known too; words that were replaced have a larger one.
    """
    shorter = alignment.shorter
    if alignment.matches < _SCATTERED_MATCHES or shorter.n_bytes < _SCATTERED_RATIO * alignment.longer.n_bytes:
        return None
    lost, survived = alignment.lost, alignment.matches / shorter.symbols
    all_lost = lost.sum()
    # Of windows that survive this often few are lost in a row: passages of other text take more.
    most = _SCATTERED_RUN * np.count_nonzero(lost) / survived
    if all_lost > most or lost.max() >= _SCATTERED_LARGEST * all_lost:
        return None
    gaps = alignment.gaps[:, lost > 0]
    grown, gaps = gaps[1] - gaps[0], gaps.max(axis=0)
    length = gaps.sum()
    if np.abs(grown).sum() > _SCATTERED_DRIFT * length:
        return None
    width = shorter.n_bytes / shorter.characters
    edits = (1 - survived ** (width / (WINDOW_BYTES - 1 + width))) * shorter.characters
    own = edits / length * gaps
    beyond = (grown - grown.sum() / length * gaps) / width
    if np.count_nonzero(beyond * beyond > _SCATTERED_VARIANCE * np.maximum(own, 1.0)) > len(own) / 2:
        return None
    told = abs(np.clip(grown, -own, own).sum())
    return float((edits - told) * width)


def _of_blocks(common: Sequence[Stretch], shorter: int, longer: int, rate: int) -> float:
    """Cost of the cheapest way through both texts that keeps some stretches, in order.

    Between two of them the texts cost what unrelated ones of these lengths do. A short stretch whose texts have moved
    against each other is not worth its moves: it is left out (chaining with gap costs: Myers, Miller 1995).
    """
    wide = max(_NARROW_SHARE, 1 - _HIDDEN_WEIGHT * _hidden(common, shorter, rate))
    # The end of the texts counts as a stretch that starts there.
    ways = array("d", chain(*common, (shorter, longer, shorter, longer, 0.0))).tobytes()
    return cheapest_way(ways, _PACKED, (_NARROW_RATES * rate, _NARROW_SHARE), wide, _CHEAPEST * wide)


def _hidden(common: Sequence[Stretch], shorter: int, rate: int) -> float:
    """Share of the text between the stretches that is common too, in runs that no sampled window lies in.

    Between edits at random, common runs have exponential lengths, m bytes on average. One of N - 1 + x bytes holds a
    sampled window with the probability 1 - exp(-x / rate): of the runs exp(-(N - 1) / m) m / (m + rate) are seen, and
    these have N - 1 + m + m rate / (m + rate) bytes on average, which tells m.
    """
    if len(common) < _HIDDEN_STRETCHES:
        return 0.0
    seen = sum([each.length for each in common])
    beyond = max(1.0, seen / len(common) - (WINDOW_BYTES - 1))
    # Of m + m rate / (m + rate) = beyond the positive solution.
    half = beyond / 2 - rate
    mean = half + sqrt(half * half + beyond * rate)
    all_runs = len(common) * exp(min(_MOST_EXPONENT, (WINDOW_BYTES - 1) / mean)) * (mean + rate)
    return min(1.0, max(0.0, all_runs - seen) / max(1.0, shorter - seen))
