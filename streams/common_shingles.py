"""How many shingles two texts share."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, sqrt

from streams.alignment import Alignment, Stretch
from streams.intervals import weighted_shingles
from streams.pairing import Pair
from streams.stretches import shingle_bytes

# Fewer symbols in another order are not worth an alignment of their own.
_MOVED_SYMBOLS = 4
_MOVED_SHARE = 0.02


@dataclass(frozen=True)
class Moved:
    """Common stretches in another order; their matches stand for so many times as many common symbols."""

    stretches: Sequence[Stretch]
    times: float


NOT_MOVED = Moved((), 1.0)


def moved(alignment: Alignment) -> Moved:
    """What is common in another order, if it is worth an alignment, which cannot follow many moves."""
    symbols = alignment.common - alignment.matches
    if not alignment.matches or symbols < max(_MOVED_SYMBOLS, _MOVED_SHARE * alignment.shorter.symbols):
        return NOT_MOVED
    rest = alignment.rest()
    return Moved(rest.stretches, symbols / rest.matches)


def common_shingles(both: Pair, found: Sequence[Stretch], apart: Moved, alike: float) -> float:
    """Shingles that both have, from the bytes at which a common one starts together with what the sketches say.

    The length of each stretch is known to about one rate; what was found in another order stands for all that moved,
    which is known to about the rest.

    Args:
        both: Two texts.
        found: Their common stretches in order.
        apart: Those in another order.
        alike: Resemblance of the sketches.
    """
    lead, shingles = both.lead, both.shorter.shingles
    if both.is_equal:
        return min(shingles, both.longer.shingles)  # others may lie about one of both
    each = shingles / max(1.0, both.shorter.n_bytes - lead)
    elsewhere = shingle_bytes(apart.stretches, lead)
    guessed = elsewhere * (apart.times - 1)
    inside = shingle_bytes(found, lead) + elsewhere + guessed
    deviation = hypot(both.rate * sqrt(len(found) + 1), guessed)
    return weighted_shingles(inside * each, deviation * each, alike, (shingles, both.longer.shingles))
