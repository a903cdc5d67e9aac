"""Bits of information in each symbol of a signature.

Source: Peter Coates, "Super Fast Estimates of Levenshtein Distance" (blog), section on entropy. The correction is that
of Miller and Madow (1955): n draws of k symbols show (k - 1) / (2 n ln 2) bits less than there are.
"""

from collections import Counter
from collections.abc import Hashable, Iterable
from math import log, log2


def entropy(symbols: Iterable[Hashable]) -> float:
    """Return the entropy of symbols in bits, 0 of none."""
    counts = Counter(symbols)
    total = sum(counts.values())
    return -sum(count / total * log2(count / total) for count in counts.values())


def corrected_entropy(symbols: Iterable[Hashable]) -> float:
    """Return the entropy of symbols in bits, corrected for the number of draws."""
    drawn = list(symbols)
    if not drawn:
        return 0.0
    return entropy(drawn) + (len(set(drawn)) - 1) / (2 * len(drawn) * log(2))
