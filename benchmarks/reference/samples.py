"""Other samples of a set of features, each with its estimate of the resemblance.

Source: Mark Manasse, "Finding similar things quickly in large collections". Features are hashes.
"""

from collections.abc import Collection, Mapping
from typing import TypeVar

Feature = TypeVar("Feature")
SLOTS = 128


def smallest(one: Collection[int], other: Collection[int], count: int) -> float:
    """Estimate a resemblance from the `count` smallest features of either set.

    The smallest of the union are compared, all of which are among the smallest of one set.
    """
    ours, theirs = sorted(one)[:count], sorted(other)[:count]
    union = sorted({*ours, *theirs})[:count]
    return sum(feature in ours and feature in theirs for feature in union) / len(union) if union else 0.0


def bins(features: Collection[int], count: int) -> list[int | None]:
    """Return the smallest feature of each of `count` bins, by remainder. None: the bin is empty."""
    found: list[int | None] = [None] * count
    for feature in sorted(features, reverse=True):
        found[feature % count] = feature // count
    return found


def bin_resemblance(one: list[int | None], other: list[int | None]) -> float:
    """Estimate a resemblance from bins. Those empty on both sides are not counted, those empty on one side differ."""
    pairs = [pair for pair in zip(one, other, strict=True) if pair != (None, None)]
    return sum(ours == theirs for ours, theirs in pairs) / len(pairs) if pairs else 0.0


def two_bit(matching: int, slots: int = SLOTS) -> float:
    """Estimate a resemblance from slots of two bits, of which a quarter matches by chance. It is never negative."""
    return max(0.0, (matching - slots / 4) / (slots * 3 / 4))


def replicate(weights: Mapping[Feature, int]) -> set[tuple[Feature, int]]:
    """Return a set in which each feature is as often as it weighs: f becomes (f, 1) to (f, n)."""
    return {(feature, number) for feature, weight in weights.items() for number in range(1, weight + 1)}
