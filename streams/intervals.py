"""How far estimated numbers may be off."""

from bisect import bisect_right
from dataclasses import dataclass
from math import sqrt

from streams.distance import ByteDistance

_Z_95 = 1.959964
_SLOTS = 128
_CHANCE = 2**-8  # two different slots agree in their low 8 bits
# Windows overlap while edits cluster: so many symbols say as much as one independent draw.
_SYMBOLS_PER_DRAW = 8

# 90 % band of the distance, in shares of the longer length, by (distance - least) / longer.
_BAND_FROM = (0.0, 0.01, 0.03, 0.06, 0.10, 0.20, 0.30, 0.40)
_BAND_MINUS = (0.005, 0.016, 0.028, 0.036, 0.045, 0.069, 0.073, 0.105)
_BAND_PLUS = (0.002, 0.011, 0.026, 0.045, 0.074, 0.115, 0.160, 0.134)
_REORDERED_BAND = (0.08, 0.27)  # an alignment in order cannot follow moves: far too low


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
    """A resemblance over 128 slots of 8 bits, the ends corrected for chance agreement like the value."""
    low, high = wilson(value * (1 - _CHANCE) + _CHANCE, _SLOTS)
    return Share(value, max(0.0, (low - _CHANCE) / (1 - _CHANCE)), max(0.0, (high - _CHANCE) / (1 - _CHANCE)))


def containment_share(common: int, symbols: int) -> Share:
    """Share of a text's LD symbols that the other text has too."""
    if not symbols:
        return Share(0.0, 0.0, 1.0)
    value = common / symbols
    return Share(value, *wilson(value, symbols / _SYMBOLS_PER_DRAW))


def distance_band(distance: ByteDistance, longer: int, *, reordered: bool) -> tuple[float, float]:
    """Ends of the 90 % band of a distance, in bytes, between `least` and `expected`.

    Args:
        distance: The estimate.
        longer: Bytes of the longer text.
        reordered: The common text stands in another order.
    """
    row = bisect_right(_BAND_FROM, (distance.value - distance.least) / longer) - 1
    minus, plus = _REORDERED_BAND if reordered else (_BAND_MINUS[row], _BAND_PLUS[row])
    low, high = distance.value - minus * longer, distance.value + plus * longer
    return max(low, distance.least), min(high, distance.expected)
