"""How far estimated numbers may be off."""

from bisect import bisect_right
from dataclasses import dataclass
from math import sqrt

from streams.distance import ByteDistance
from streams.rules import KEPT_SLOT_BITS

_Z_95 = 1.959964
_SLOTS = 128
_CHANCE = 2**-KEPT_SLOT_BITS  # two different slots agree in the bits that are compared
# Windows overlap while edits cluster: so many symbols say as much as one independent draw.
_SYMBOLS_PER_DRAW = 8

# 90 % band of the distance, in shares of the longer length, by (distance - least) / longer.
_BAND_FROM = (0.0, 0.01, 0.03, 0.06, 0.10, 0.20, 0.30, 0.40)
_BAND_MINUS = (0.003, 0.009, 0.014, 0.022, 0.030, 0.060, 0.090, 0.200)
_BAND_PLUS = (0.004, 0.015, 0.016, 0.018, 0.020, 0.025, 0.025, 0.025)


@dataclass(frozen=True)
class Share:
    """A share in [0, 1] with the ends of its 95 % interval."""

    value: float
    low: float
    high: float


def wilson(share: float, draws: float) -> tuple[float, float]:
    """Ends of the 95 % score interval of a share found in so many draws (Wilson 1927)."""
    if draws <= 0:
        return 0.0, 1.0
    z2 = _Z_95 * _Z_95 / draws
    centre = share + z2 / 2
    half = _Z_95 * sqrt(share * (1 - share) / draws + z2 / (4 * draws))
    return max(0.0, (centre - half) / (1 + z2)), min(1.0, (centre + half) / (1 + z2))


def resemblance_share(value: float) -> Share:
    """A resemblance over 128 slots of 4 bits, the ends corrected for chance agreement like the value."""
    low, high = wilson(value * (1 - _CHANCE) + _CHANCE, _SLOTS)
    return Share(value, max(0.0, (low - _CHANCE) / (1 - _CHANCE)), max(0.0, (high - _CHANCE) / (1 - _CHANCE)))


def containment_share(value: float, symbols: int) -> Share:
    """A containment of a text with so many LD symbols, mostly told from these."""
    return Share(value, *wilson(value, symbols / _SYMBOLS_PER_DRAW))


def weighted_shingles(found: float, deviation: float, resemblance: float, sizes: tuple[int, int]) -> float:
    """Shingles that two texts share: mean of two independent estimates, each weighted by its inverse variance.

    A resemblance J of sets of n and m shingles stands for J / (1 + J) * (n + m) common ones.

    Args:
        found: Counted in common stretches.
        deviation: Standard deviation of this count.
        resemblance: Of the sketches.
        sizes: Shingles of both texts.
    """
    both, most = sum(sizes), min(sizes)
    sketched = resemblance / (1 + resemblance) * both
    # One agreeing and one differing slot more: no count is certain.
    agreeing = (_SLOTS * (resemblance * (1 - _CHANCE) + _CHANCE) + 1) / (_SLOTS + 2)
    slope = both / (1 + resemblance) ** 2 / (1 - _CHANCE)
    variance = agreeing * (1 - agreeing) / _SLOTS * slope * slope
    weight = deviation * deviation / (deviation * deviation + variance) if both else 0.0
    return min(most, weight * sketched + (1 - weight) * min(found, most))


def distance_band(distance: ByteDistance, longer: int) -> tuple[float, float]:
    """Ends of the 90 % band of a distance, in bytes, between `least` and `expected`.

    Args:
        distance: The estimate.
        longer: Bytes of the longer text.
    """
    row = bisect_right(_BAND_FROM, (distance.value - distance.least) / longer) - 1
    low, high = distance.value - _BAND_MINUS[row] * longer, distance.value + _BAND_PLUS[row] * longer
    return max(low, distance.least), min(high, distance.expected)
