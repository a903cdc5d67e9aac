"""Families of hash functions for other distances.

Source: Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, section 3.7.
"""

from collections.abc import Sequence
from math import floor, hypot


def sampled_bit(vector: Sequence[int], place: int) -> int:
    """Return one component. Two vectors at Hamming distance h of d components agree with probability 1 - h / d."""
    return vector[place]


def hyperplane_sketch(vector: Sequence[float], normals: Sequence[Sequence[float]]) -> list[bool]:
    """Return on which side of each hyperplane a vector lies. One in the plane counts as above."""
    return [sum(a * b for a, b in zip(vector, normal, strict=True)) >= 0 for normal in normals]


def angle(one: Sequence[bool], other: Sequence[bool]) -> float:
    """Estimate an angle in degrees: 180 times the share of hyperplanes that part two vectors."""
    return 180 * sum(a != b for a, b in zip(one, other, strict=True)) / len(one)


def line_bucket(point: Sequence[float], direction: Sequence[float], width: float, offset: float = 0.0) -> int:
    """Return the bucket of a point that is projected on a line with buckets of this width."""
    along = sum(a * b for a, b in zip(point, direction, strict=True)) / hypot(*direction)
    return floor((along + offset) / width)
