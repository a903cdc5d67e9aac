"""Share of true pairs among found ones, from a field that no score has used.

Source: Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, section 3.8.3: pairs that do not belong together are
random in that field, pairs that do are not.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, variance

_Z_95 = 1.959964


@dataclass(frozen=True)
class Mean:
    """The mean of a field over some pairs.

    Attributes:
        value: The mean.
        squared_error: Square of its standard error.
        pairs: Number of pairs, at least 2.
    """

    value: float
    squared_error: float
    pairs: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Mean | None":
        """Return the mean of a field. None: fewer than two pairs have it."""
        if len(values) < 2:
            return None
        return cls(fmean(values), variance(values) / len(values), len(values))


def true_share(mean: float, certain: float, random: float) -> float:
    """Return the share of true pairs, 1 at the mean of certain pairs and 0 at that of random ones.

    Args:
        mean: Mean of the field over the pairs in question, such as the days between two observations.
        certain: Its mean over pairs that are certain.
        random: Its mean over random pairs of the same window.

    Raises:
        ValueError: Certain and random pairs have the same mean, so the field does not separate them.
    """
    if certain == random:
        raise ValueError("two means expected: certain pairs have the same as random ones")
    return (random - mean) / (random - certain)


def is_telling(certain: Mean, random: Mean) -> bool:
    """Return whether the means of certain and random pairs differ by more than chance."""
    error = sqrt(certain.squared_error + random.squared_error)
    return abs(random.value - certain.value) > 2 * _Z_95 * error


def share_interval(mean: Mean, certain: Mean, random: Mean) -> tuple[float, float]:
    """Return the 95 % interval of the share of true pairs.

    It takes the pairs as independent, and each mean as normal (first-order propagation of errors). Its ends may be
    below 0 or above 1, as the share itself may.
    """
    share = true_share(mean.value, certain.value, random.value)
    spread = mean.squared_error + share**2 * certain.squared_error + (1 - share) ** 2 * random.squared_error
    half = _Z_95 * sqrt(spread) / abs(random.value - certain.value)
    return share - half, share + half
