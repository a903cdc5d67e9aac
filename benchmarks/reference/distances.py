"""Distance measures.

Source: Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, section 3.5.
"""

from collections.abc import Collection, Hashable, Sequence
from math import acos, degrees, sqrt

from rapidfuzz.distance import OSA, Indel
from rapidfuzz.distance import Levenshtein as _Levenshtein


def minkowski(one: Sequence[float], other: Sequence[float], r: float) -> float:
    """Return the distance L_r. The limit for large r is `largest_difference`."""
    return float(sum(abs(a - b) ** r for a, b in zip(one, other, strict=True)) ** (1 / r))


def largest_difference(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the distance of the maximum norm."""
    return max(abs(a - b) for a, b in zip(one, other, strict=True))


def jaccard(one: Collection[Hashable], other: Collection[Hashable]) -> float:
    """Return 1 minus the resemblance of two sets that are not both empty."""
    ours, theirs = set(one), set(other)
    return 1 - len(ours & theirs) / len(ours | theirs)


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the cosine of the angle between two vectors."""
    dot = sum(a * b for a, b in zip(one, other, strict=True))
    return dot / sqrt(sum(a * a for a in one) * sum(b * b for b in other))


def angle(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the cosine distance, an angle in degrees."""
    return degrees(acos(max(-1.0, min(1.0, cosine(one, other)))))


def insert_delete(one: str, other: str) -> int:
    """Return the edit distance of the source: insertions and deletions, |x| + |y| - 2 |longest common subsequence|."""
    return Indel.distance(one, other)


def levenshtein(one: str, other: str) -> int:
    """Return the edit distance in which a substitution counts as one."""
    return _Levenshtein.distance(one, other)


def with_swaps(one: str, other: str) -> int:
    """Return the edit distance in which a swap of neighbours counts as one too."""
    return OSA.distance(one, other)


def hamming(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    """Return the number of components in which two vectors differ."""
    return sum(a != b for a, b in zip(one, other, strict=True))
