"""How AND and OR of hash functions change their probabilities.

Source: Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, section 3.6.
"""

from collections.abc import Callable
from typing import NamedTuple

Curve = Callable[[float], float]


class Sensitivity(NamedTuple):
    """A family of functions: items up to `near` apart agree with `likely`, those from `far` on with `unlikely`."""

    near: float
    far: float
    likely: float
    unlikely: float

    def through(self, curve: Curve) -> "Sensitivity":
        """Return the family that a construction with this curve makes of this one."""
        return self._replace(likely=curve(self.likely), unlikely=curve(self.unlikely))


def all_of(rows: int) -> Curve:
    """Return the curve of an AND: all of `rows` functions agree."""
    return lambda p: p**rows


def any_of(bands: int) -> Curve:
    """Return the curve of an OR: any of `bands` functions agrees."""
    return lambda p: 1 - (1 - p) ** bands


def then(*curves: Curve) -> Curve:
    """Return the curve of constructions one after the other, the first one applied first."""

    def applied(p: float) -> float:
        for curve in curves:
            p = curve(p)
        return p

    return applied


def fixed_point(curve: Curve) -> float:
    """Return the probability inside (0, 1) that an S-curve leaves as it is: above it grows, below it falls."""
    low, high = 1e-9, 1 - 1e-9
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if curve(middle) < middle else (low, middle)
    return (low + high) / 2


def steepest(curve: Curve, steps: int = 100_000) -> tuple[float, float]:
    """Return where a curve is steepest, and its slope there."""
    slopes = ((steps * (curve((at + 1) / steps) - curve(at / steps)), (at + 0.5) / steps) for at in range(steps))
    slope, place = max(slopes)
    return place, slope
