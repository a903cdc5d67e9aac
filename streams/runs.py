"""Runs of neighbours in an array."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def starts_run(values: NDArray[Any]) -> NDArray[np.bool_]:
    """For each value whether it differs from the one before it; the first always does."""
    starts = np.empty(values.size, dtype=np.bool_)
    starts[:1] = True
    np.not_equal(values[1:], values[:-1], out=starts[1:])
    return starts


def first_place(places: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each of these ascending places the first of the gapless run that it stands in."""
    numbers = np.arange(places.size)
    starts = starts_run(places - numbers)
    first: NDArray[np.int64] = places[np.maximum.accumulate(np.where(starts, numbers, 0))]
    return first
