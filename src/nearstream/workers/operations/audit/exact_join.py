"""Every pair with a resemblance or more, none missed: what an index is measured against.

Each set is probed against those before it, by the filters of Leskovec, Rajaraman and Ullman, Mining of Massive
Datasets, section 3.9: prefix, position and length of the suffix. Bounds are fractions, because floats give bounds that
are too small: (1 - .9) * 10 is less than 1.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


def prefix_length(size: int, resemblance: Fraction) -> int:
    """Return how many first symbols index a set: size - ceil(J size) + 1.

    Two sets with this resemblance or more share a symbol in their prefixes.
    """
    return size - ceil(resemblance * size) + 1


def longest(size: int, resemblance: Fraction) -> int:
    """Return the largest size that can reach a resemblance to a set of `size` symbols."""
    return floor(size / resemblance)


def may_reach(size: int, place: int, other_size: int, other_place: int, resemblance: Fraction) -> bool:
    """Return whether two sets can reach a resemblance.

    The first symbol that they share is at these places, counted from 1. At best they share all symbols after it in the
    shorter suffix.
    """
    shared = 1 + min(size - place, other_size - other_place)
    return shared * resemblance.denominator >= resemblance.numerator * (size + other_size - shared)


class _Posting(NamedTuple):
    number: int
    place: int
    size: int


class ExactJoin:
    """All sets so far, by the symbols of their prefixes.

    Attributes:
        features: Symbols of all sets together, 8 bytes each.
        compared: Pairs of sets that were compared symbol by symbol.
    """

    def __init__(self, resemblance: Fraction) -> None:
        """Prepare for pairs with at least this resemblance, in (0, 1]."""
        if not 0 < resemblance <= 1:
            raise ValueError(f"a resemblance above 0, at most 1 expected, not {resemblance}")
        self.features = self.compared = 0
        self._resemblance = resemblance
        self._names: list[str] = []
        self._sets: list[NDArray[np.uint64]] = []
        self._postings: dict[int, list[_Posting]] = {}

    def add(self, name: str, features: Sequence[int] | NDArray[np.uint64]) -> list[tuple[str, Fraction]]:
        """Add a set, and return the earlier ones with at least the resemblance, with theirs.

        A set without features has no partner.
        """
        found = self.probe(features)
        self.insert(name, features)
        return found

    def insert(self, name: str, features: Sequence[int] | NDArray[np.uint64]) -> None:
        """Add a set without looking for others."""
        own = np.unique(np.asarray(features, dtype=np.uint64))
        number, size = len(self._sets), own.size
        for place, symbol in enumerate(self._prefix(own), 1):
            self._postings.setdefault(symbol, []).append(_Posting(number, place, size))
        self._names.append(name)
        self._sets.append(own)
        self.features += size

    def probe(self, features: Sequence[int] | NDArray[np.uint64]) -> list[tuple[str, Fraction]]:
        """Return the sets with at least the resemblance to one that is not added."""
        return self._probe(np.unique(np.asarray(features, dtype=np.uint64)))

    def _prefix(self, own: NDArray[np.uint64]) -> list[int]:
        first: list[int] = own[: prefix_length(own.size, self._resemblance)].tolist() if own.size else []
        return first

    def _probe(self, own: NDArray[np.uint64]) -> list[tuple[str, Fraction]]:
        size, seen = own.size, set[int]()
        least = ceil(self._resemblance * size)
        found: list[tuple[int, Fraction]] = []
        for place, symbol in enumerate(self._prefix(own), 1):
            for posting in self._postings.get(symbol, ()):
                if posting.number in seen:
                    continue
                seen.add(posting.number)  # the first common symbol decides, later ones are no better
                if posting.size >= least and may_reach(size, place, posting.size, posting.place, self._resemblance):
                    resemblance = self._compare(own, self._sets[posting.number])
                    if resemblance >= self._resemblance:
                        found.append((posting.number, resemblance))
        return [(self._names[number], resemblance) for number, resemblance in sorted(found)]

    def _compare(self, one: NDArray[np.uint64], other: NDArray[np.uint64]) -> Fraction:
        self.compared += 1
        common = int(np.intersect1d(one, other, assume_unique=True).size)
        return Fraction(common, one.size + other.size - common)
