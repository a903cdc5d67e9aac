"""Ragged arrays: rows of different lengths, and runs in them."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class RaggedRows(NamedTuple):
    """Rows of different lengths in one array, usually one for each text.

    `starts` and `stops` are Python lists, because these are faster than arrays if there are few rows.

    Attributes:
        values: The elements of all rows. Elements between rows have no meaning.
        starts: Index of the first element of each row.
        stops: Index after the last element of each row.
    """

    values: NDArray[Any]
    starts: list[int]
    stops: list[int]

    @classmethod
    def between(cls, values: NDArray[Any], bounds: list[int]) -> "RaggedRows":
        """Return adjacent rows, each from one bound to the next."""
        return cls(values, bounds[:-1], bounds[1:])

    def each(self) -> list[NDArray[Any]]:
        """Return all rows in order."""
        values = self.values
        return [values[start:stop] for start, stop in zip(self.starts, self.stops, strict=True)]


def starts_run(values: NDArray[Any], rows: Iterable[int] = (0,)) -> NDArray[np.bool_]:
    """Return for each value whether it starts a run of equal values.

    Args:
        values: Values in one dimension.
        rows: Indices at which a run starts in any case, such as the starts of rows.
    """
    starts = np.empty(values.size + 1, dtype=np.bool_)
    np.not_equal(values[1:], values[:-1], out=starts[1:-1])
    for row in rows:
        starts[row] = True
    return starts[:-1]


def run_start(positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each position the first of its run of consecutive ones.

    Args:
        positions: Distinct and ascending.
    """
    indices = np.arange(positions.size)
    starts = starts_run(positions - indices)
    first: NDArray[np.int64] = positions[np.maximum.accumulate(np.where(starts, indices, 0))]
    return first
