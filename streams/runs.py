"""Runs of neighbours in an array, and rows that stand in one."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Rows(NamedTuple):
    """Stretches of an array, one for each of several texts; what lies between them means nothing.

    Where they begin and end is told by numbers of Python: of few rows numpy would spend longer on its calls.
    """

    values: NDArray[Any]
    starts: list[int]
    stops: list[int]

    @classmethod
    def between(cls, values: NDArray[Any], bounds: list[int]) -> "Rows":
        """Rows that follow each other, each from one bound to the next."""
        return cls(values, bounds[:-1], bounds[1:])

    def each(self) -> list[NDArray[Any]]:
        """Every row, in order."""
        values = self.values
        return [values[start:stop] for start, stop in zip(self.starts, self.stops, strict=True)]


def starts_run(values: NDArray[Any], rows: Iterable[int] = (0,)) -> NDArray[np.bool_]:
    """For each value whether it differs from the one before it; where a row starts, it always does."""
    starts = np.empty(values.size + 1, dtype=np.bool_)
    np.not_equal(values[1:], values[:-1], out=starts[1:-1])
    for row in rows:
        starts[row] = True
    return starts[:-1]


def first_place(places: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each of these ascending places the first of the gapless run that it stands in."""
    numbers = np.arange(places.size)
    starts = starts_run(places - numbers)
    first: NDArray[np.int64] = places[np.maximum.accumulate(np.where(starts, numbers, 0))]
    return first
