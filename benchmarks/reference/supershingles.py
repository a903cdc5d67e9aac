"""Supershingles and megashingles: runs of minima, and groups of runs.

Source: Mark Manasse, "Finding similar things quickly in large collections". A run of k minima agrees if all of them do.
"""

from collections.abc import Sequence
from itertools import combinations
from math import comb


def run_probability(resemblance: float, run: int) -> float:
    """Return the probability that a run of independent minima agrees."""
    return resemblance**run


def group_probability(resemblance: float, run: int, runs: int, needed: int) -> float:
    """Return the probability that at least `needed` of some runs agree."""
    agrees = run_probability(resemblance, run)
    return sum(comb(runs, k) * agrees**k * (1 - agrees) ** (runs - k) for k in range(needed, runs + 1))


def groups(runs: Sequence[bytes], size: int) -> list[tuple[tuple[int, ...], tuple[bytes, ...]]]:
    """Return every group of `size` runs with their places: two sketches share one if and only if that many agree."""
    return [(places, tuple(runs[place] for place in places)) for places in combinations(range(len(runs)), size)]
