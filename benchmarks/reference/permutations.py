"""Minhash by explicit orders of rows.

Source: Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, section 3.3. A column is a set of rows.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from fractions import Fraction
from typing import TypeVar

Row = TypeVar("Row")
INFINITE = float("inf")


def minhash(column: Collection[Row], order: Sequence[Row]) -> Row:
    """Return the first row in an order that a column has.

    Raises:
        ValueError: The column has none of the rows.
    """
    for row in order:
        if row in column:
            return row
    raise ValueError("a column with one of the rows expected")


def signature_matrices(
    columns: Sequence[Collection[int]], rows: int, hashes: Sequence[Callable[[int], int]]
) -> Iterator[list[list[float]]]:
    """Yield the signature matrix after each row: one line for each hash function, one number for each column.

    Each hash function stands for an order of the rows. A column without a row so far has an infinite number.
    """
    matrix: list[list[float]] = [[INFINITE] * len(columns) for _ in hashes]
    for row in range(rows):
        for line, place in zip(matrix, (function(row) for function in hashes), strict=True):
            for index, column in enumerate(columns):
                if row in column:
                    line[index] = min(line[index], place)
        yield [list(line) for line in matrix]


def first_rows(column: Collection[Row], order: Sequence[Row], count: int) -> Row | None:
    """Return the minhash of a column if only the first `count` rows of an order are read. None: it has none of them."""
    return next((row for row in order[:count] if row in column), None)


def grouped_resemblance(one: Collection[Row], other: Collection[Row], groups: Sequence[Sequence[Row]]) -> Fraction:
    """Return the mean resemblance of two columns in groups of rows.

    A group of which both have no row is left out. One of which one has none counts as 0.

    Raises:
        ValueError: Both columns have no row in any group.
    """
    found = []
    for group in groups:
        ours, theirs = {row for row in group if row in one}, {row for row in group if row in other}
        if ours or theirs:
            found.append(Fraction(len(ours & theirs), len(ours | theirs)))
    if not found:
        raise ValueError("a column with a row in one of the groups expected")
    return sum(found, Fraction(0)) / len(found)
