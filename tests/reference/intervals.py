"""Error bounds of estimates: a band of distances, and a mean weighted by variance."""

from bisect import bisect_right

from nearstream.streams.fingerprints.parameters import KEPT_SLOT_BITS, SLOTS
from tests.reference.distance import ByteDistance

_CHANCE = 2**-KEPT_SLOT_BITS  # probability that two different slots agree in the bits that are compared

# 90 % band of the distance, as shares of the longer length, by (distance - least) / longer.
_BAND_FROM = (0.0, 0.01, 0.03, 0.06, 0.10, 0.20, 0.30, 0.40)
_BAND_MINUS = (0.003, 0.009, 0.014, 0.022, 0.030, 0.060, 0.090, 0.200)
_BAND_PLUS = (0.004, 0.015, 0.016, 0.018, 0.020, 0.025, 0.025, 0.025)


def weighted_shingles(found: float, deviation: float, resemblance: float, sizes: tuple[int, int]) -> float:
    """Estimate how many shingles two texts share from two independent estimates.

    The result is their mean, weighted by inverse variance. A resemblance J of sets of n and m shingles corresponds to
    J / (1 + J) * (n + m) common shingles.
    """
    both, most = sum(sizes), min(sizes)
    sketched = resemblance / (1 + resemblance) * both
    # One more agreeing and one more differing slot, because no count is certain.
    agreeing = (SLOTS * (resemblance * (1 - _CHANCE) + _CHANCE) + 1) / (SLOTS + 2)
    slope = both / ((1 + resemblance) * (1 + resemblance)) / (1 - _CHANCE)
    variance = agreeing * (1 - agreeing) / SLOTS * slope * slope
    weight = deviation * deviation / (deviation * deviation + variance) if both else 0.0
    return float(min(most, weight * sketched + (1 - weight) * min(found, most)))


def distance_band(distance: ByteDistance, longer: int) -> tuple[float, float]:
    """Return the 90 % band of a distance, in bytes, between `least` and `expected`."""
    row = bisect_right(_BAND_FROM, (distance.value - distance.least) / longer) - 1
    low, high = distance.value - _BAND_MINUS[row] * longer, distance.value + _BAND_PLUS[row] * longer
    return max(min(low, distance.low), distance.least), min(max(high, distance.high), distance.expected)
