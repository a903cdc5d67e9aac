"""Edit distance of two texts, estimated from their aligned LD signatures."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, sqrt

import numpy as np

from nearstream.streams.estimates.comparing import unrelated_costs
from nearstream.streams.fingerprints.parameters import LD_WINDOW_BYTES
from tests.reference.alignment import Alignment, MatchingBlock, total
from tests.reference.matching_symbols import RATIO_STEPS, cheapest_path
from tests.reference.scattered import scattered_edits

_COSTS = np.frombuffer(unrelated_costs())
_LEAST_COST = 0.70  # unrelated texts differ in at least this share of the longer one

# Between blocks less than this many rates apart, about half of the text is common after all, in runs too short for a
# window.
_NARROW_RATES = 4
_NARROW_SHARE = 0.5

# Between edits all over a text lies hidden common text, of which this share costs nothing. Fewer blocks than this are
# too few to estimate how much there is.
_HIDDEN_WEIGHT = 0.65
_HIDDEN_BLOCKS = 8
_MAX_EXPONENT = 20.0
_PLACES = 8  # changed places, which are few up to this count
_WORD, _PASSAGE_DEVIATION, _Z_90 = 12.0, 4.5, 1.645


@dataclass(frozen=True)
class ByteDistance:
    """An edit distance in bytes of the normal forms."""

    value: float  # the distance, between `least` and `expected`
    least: int  # difference of the lengths
    expected: float  # distance of unrelated texts of these lengths
    low: float  # the value, or less if another reading of the edits is likely
    high: float  # the value, or more if another reading of the edits is likely
    scattered: bool  # whether single characters were edited all over the texts


def edit_distance(alignment: Alignment, blocks: Sequence[MatchingBlock], rate: int, *, equal: bool) -> ByteDistance:
    """Estimate the edit distance of the whole texts.

    Edits all over the texts are counted. Others are the cheapest path from block to block of common text. Both methods
    refine the distance of two LD signatures (Coates: "A Fast Metric of Document Similarity").
    """
    shorter, longer = alignment.shorter.n_bytes, alignment.longer.n_bytes
    least = longer - shorter
    expected = least + float(_COSTS[round(shorter / longer * RATIO_STEPS)]) * shorter
    if equal or not alignment.matches:
        value = 0.0 if equal else expected
        return ByteDistance(value, least, expected, value, value, scattered=False)
    edits = scattered_edits(alignment)
    value = _block_edits(blocks, shorter, longer, rate) if edits is None else edits.value
    value = min(max(value, least), expected)
    if edits is None:
        doubt = passage_doubt(alignment)
        return ByteDistance(value, least, expected, value - doubt, value + doubt, scattered=False)
    return ByteDistance(value, least, expected, min(value, edits.low), max(value, edits.high), scattered=edits.single)


def passage_doubt(alignment: Alignment) -> float:
    """Return the error of the distance of texts with few changed places, in bytes, and 0 for other texts."""
    grain = max(1, alignment.shorter.grain, alignment.longer.grain)
    steps = zip(alignment.lost.tolist(), *alignment.gaps.tolist(), strict=True)
    rooms = [min(one, other) - LD_WINDOW_BYTES for lost, one, other in steps if lost or abs(other - one) >= grain]
    if len(rooms) > _PLACES:
        return 0.0
    edits = total([max(1.0, room / _WORD) for room in rooms])
    return _Z_90 * _PASSAGE_DEVIATION * sqrt(edits) * (alignment.shorter.n_bytes / alignment.shorter.characters)


def _block_edits(blocks: Sequence[MatchingBlock], shorter: int, longer: int, rate: int) -> float:
    """Return the cost of the cheapest path that keeps some blocks, in order.

    The text between two of them costs what unrelated texts of these lengths do. A short block whose texts have moved
    against each other may not be worth its moves and is left out (chaining with gap costs: Myers, Miller 1995).
    """
    wide = max(_NARROW_SHARE, 1 - _HIDDEN_WEIGHT * _hidden_share(blocks, shorter, rate))
    # The end of the texts counts as a block that starts there.
    path = (*blocks, (shorter, longer, shorter, longer, 0.0))
    return cheapest_path(path, unrelated_costs(), (_NARROW_RATES * rate, _NARROW_SHARE), wide, _LEAST_COST * wide)


def _hidden_share(blocks: Sequence[MatchingBlock], shorter: int, rate: int) -> float:
    """Return the share of the text between blocks that is common too.

    Such text lies in common runs that contain no sampled window (see native/estimates/distance.h).
    """
    if len(blocks) < _HIDDEN_BLOCKS:
        return 0.0
    seen = total([block.length for block in blocks])
    beyond = max(1.0, seen / len(blocks) - (LD_WINDOW_BYTES - 1))
    # The positive solution of m + m rate / (m + rate) = beyond.
    half = beyond / 2 - rate
    mean = half + sqrt(half * half + beyond * rate)
    all_runs = len(blocks) * exp(min(_MAX_EXPONENT, (LD_WINDOW_BYTES - 1) / mean)) * (mean + rate)
    return min(1.0, max(0.0, all_runs - seen) / max(1.0, shorter - seen))
