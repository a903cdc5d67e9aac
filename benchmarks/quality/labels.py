"""Label the relation of two texts by exact measurement."""

from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Indel, Levenshtein

from benchmarks.quality.corpus import Relation, shingles, words

_RUN_WORDS = 4
_TRIM = 0.05
_NEAR, _NOISE = 0.15, 0.50  # distances over the longer length
_FIRST_CODE_POINT = 0xE000


@dataclass(frozen=True)
class Measured:
    """A text prepared for comparison: its words and hashed 5-word shingles."""

    words: tuple[str, ...]
    shingles: NDArray[np.int64]

    @classmethod
    def of(cls, text: str) -> "Measured":
        """Prepare a text for comparison."""
        return cls(tuple(words(text)), shingles(text))


@dataclass(frozen=True)
class InOrder:
    """The common words of two texts that are in equal order."""

    share: float  # share of the words of the shorter text that are in common runs of at least four
    # Share of a text from the run with the 5 % point of these words to the run with the 95 % point. The smaller value
    # of both texts counts.
    spread: float
    # Number of such words in the best segment of the longer text, where a common word scores +1 and any other word
    # between them -1.
    segment: int


def label(one: Measured, other: Measured) -> Relation:
    """Return the relation of two texts: the first definition that holds.

    See `docs/relations.md`, where these bounds are applied to estimates.
    """
    if one.words == other.words:
        return "exact_duplicate"
    small, big = sorted((one, other), key=lambda text: len(text.words))
    fewer, ratio = len(small.words), len(small.words) / max(1, len(big.words))
    distance = _distance(small, big)
    if distance <= _NEAR:
        return "near_duplicate"
    common = np.intersect1d(small.shingles, big.shingles, assume_unique=True).size
    inside = common / max(1, small.shingles.size)
    most = common / max(1, min(small.shingles.size, big.shingles.size))
    if most < 0.25 and ratio >= 0.50 and distance <= _NOISE:
        return "version"
    if most < 0.10 or most * fewer < 12:
        return "unrelated"
    lie = in_order(small.words, big.words)
    return _related(lie, inside, ratio, fewer)


def in_order(small: tuple[str, ...], big: tuple[str, ...]) -> InOrder:
    """Locate common words of two texts by a longest common subsequence."""
    number = {word: chr(_FIRST_CODE_POINT + at) for at, word in enumerate(dict.fromkeys(small + big))}
    strings = ("".join(map(number.__getitem__, each)) for each in (small, big))
    runs = [run for run in Indel.opcodes(*strings).as_matching_blocks() if run.size >= _RUN_WORDS]
    if not runs:
        return InOrder(0.0, 0.0, 0)
    upto = list(accumulate(run.size for run in runs))
    first, last = (runs[bisect_left(upto, part * upto[-1])] for part in (_TRIM, 1 - _TRIM))
    spread = min((last.a + last.size - first.a) / len(small), (last.b + last.size - first.b) / len(big))
    positions = np.concatenate([np.arange(run.b, run.b + run.size) for run in runs])
    return InOrder(upto[-1] / len(small), spread, _segment(positions))


def _related(lie: InOrder, inside: float, ratio: float, fewer: int) -> Relation:
    moved = inside - lie.share
    if ratio >= 0.50 and inside >= 0.30 and moved >= 0.20:
        return "rearranged"
    if inside >= 0.70 and ratio <= 0.85 and (lie.segment >= 0.65 * fewer or ratio < 0.30):
        return "containment"
    in_one = lie.segment >= 0.90 * lie.share * fewer
    if inside >= 0.25 and lie.spread >= 0.50 and (not in_one or lie.spread >= 0.75):
        return "version"
    return "overlap"


def _distance(small: Measured, big: Measured) -> float:
    """Return the distance of two texts over the longer length. Beyond `_NOISE` it is only known to be larger."""
    one, other = " ".join(small.words), " ".join(big.words)
    longer = max(len(one), len(other), 1)
    most = int(_NOISE * longer)
    return Levenshtein.distance(one, other, score_cutoff=most) / longer


def _segment(positions: NDArray[np.int64]) -> int:
    """Return the number of common words in Kadane's maximum subarray."""
    height = 2 * np.arange(len(positions)) - positions
    sums = height - np.minimum.accumulate(height)
    stop = int(sums.argmax())
    return stop - int(height[: stop + 1].argmin()) + 1
