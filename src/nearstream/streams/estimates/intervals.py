"""Confidence intervals of shares."""

from dataclasses import dataclass
from math import sqrt

from nearstream.streams.fingerprints.parameters import KEPT_SLOT_BITS, SLOTS

_Z_95 = 1.959964
_CHANCE = 2**-KEPT_SLOT_BITS  # probability that two different slots agree in the bits that are compared
# Windows overlap and edits cluster, so this many symbols say as much as one independent draw.
_SYMBOLS_PER_DRAW = 8


@dataclass(frozen=True)
class Proportion:
    """A share in [0, 1] with the ends of its 95 % interval."""

    value: float
    low: float
    high: float


def wilson(share: float, draws: float) -> tuple[float, float]:
    """Return the 95 % score interval of a share (Wilson 1927).

    Args:
        share: The share that was found.
        draws: Number of independent draws in which it was found.
    """
    if draws <= 0:
        return 0.0, 1.0
    z2 = _Z_95 * _Z_95 / draws
    centre = share + z2 / 2
    half = _Z_95 * sqrt(share * (1 - share) / draws + z2 / (4 * draws))
    return max(0.0, (centre - half) / (1 + z2)), min(1.0, (centre + half) / (1 + z2))


def resemblance_share(value: float) -> Proportion:
    """Return a resemblance over 128 slots of 4 bits with its interval.

    The ends of the interval are corrected for chance agreement, as the value is.
    """
    low, high = wilson(value * (1 - _CHANCE) + _CHANCE, SLOTS)
    return Proportion(value, max(0.0, (low - _CHANCE) / (1 - _CHANCE)), max(0.0, (high - _CHANCE) / (1 - _CHANCE)))


def containment_share(value: float, symbols: int) -> Proportion:
    """Return a containment with its interval.

    Args:
        value: The containment, estimated mostly from LD symbols.
        symbols: Number of LD symbols of the contained text.
    """
    return Proportion(value, *wilson(value, symbols / _SYMBOLS_PER_DRAW))
