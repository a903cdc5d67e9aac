"""Polynomial hashes of runs of values, and what mixes and sorts hashes."""

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from tests.reference.ragged import starts_run


def constant(value: int) -> NDArray[np.uint64]:
    """Return a number as an operand, an array without dimensions.

    numpy would convert a Python number again in each call, which takes longer.
    """
    return np.array(value, dtype=np.uint64)


_FMIX_SHIFT, _MIX_SHIFT = constant(33), constant(32)
_FMIX_FIRST, _FMIX_SECOND = constant(0xFF51AFD7ED558CCD), constant(0xC4CEB9FE1A85EC53)
_MIX_FACTOR = constant(0xD6E8FEB86659FD93)


class Rolling:
    """Polynomial hashes of runs of values, modulo 2**64.

    After Karp and Rabin (1987), the hash of values v[s:e] is the sum of v[j] * base**(e - 1 - j). One prefix sum over a
    sequence gives the hash of every run in it. The object keeps the powers of its base for the longest sequence seen,
    16 to 32 bytes per element.
    """

    def __init__(self, base: int) -> None:
        """Prepare the powers of an odd base.

        An even base has no inverse modulo 2**64.
        """
        self._base = base
        self._tables = _power_tables(base, 1 << 12)

    def prefix(self, values: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return the prefix sums of values, with one element more than `values`."""
        inverses = self._upto(values.size)[1]
        # The terms are stored backwards, because numpy accumulates four times as slowly if input and output are both
        # stored forwards.
        terms = np.empty(values.size, dtype=np.uint64)[::-1]
        np.multiply(values, inverses[1 : values.size + 1], out=terms)
        sums = np.empty(values.size + 1, dtype=np.uint64)
        sums[0] = 0
        np.add.accumulate(terms, out=sums[1:])
        return sums

    def runs(
        self, prefix: NDArray[np.uint64], starts: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> NDArray[np.uint64]:
        """Return the hashes of the runs [start, end).

        Args:
            prefix: Prefix sums of the sequence.
            starts: Start of each run.
            ends: End of each run.
        """
        hashes = prefix.take(ends)
        hashes -= prefix.take(starts)
        hashes *= self._upto(prefix.size)[0].take(ends)
        return hashes

    def windows(self, prefix: NDArray[np.uint64], width: int) -> NDArray[np.uint64]:
        """Return the hashes of all runs of `width` values, in order.

        There are none if there are fewer values.
        """
        if prefix.size <= width:
            return np.empty(0, dtype=np.uint64)
        hashes = prefix[width:] - prefix[:-width]
        hashes *= self._upto(prefix.size)[0][width : prefix.size]
        return hashes

    def mixed_windows(self, prefix: NDArray[np.uint64], width: int, salt: int) -> NDArray[np.uint64]:
        """Return the hashes of all runs of `width` values, salted and mixed.

        Only their top bits are well mixed, see `mix`.
        """
        hashes = self.windows(prefix, width)
        hashes += constant(salt)
        return mix(hashes)

    def _upto(self, size: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return powers and inverse powers for exponents up to at least `size`."""
        tables = self._tables
        if tables[0].size <= size:
            # Replace both tables at once, because another thread may be using the old ones.
            tables = self._tables = _power_tables(self._base, 1 << size.bit_length())
        return tables


def fmix64(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix hashes in place with the 64-bit finaliser of MurmurHash3 (Appleby 2011).

    All bits of the result are well mixed.
    """
    shifted = values >> _FMIX_SHIFT
    values ^= shifted
    values *= _FMIX_FIRST
    values ^= np.right_shift(values, _FMIX_SHIFT, out=shifted)
    values *= _FMIX_SECOND
    values ^= np.right_shift(values, _FMIX_SHIFT, out=shifted)
    return values


def mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix hashes in place with one multiplication.

    Only the top bits are well mixed. This is for hashes that are needed at every byte, where `fmix64` takes too long.
    """
    values ^= values >> _MIX_SHIFT
    values *= _MIX_FACTOR
    return values


def distinct(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the distinct values in ascending order."""
    return distinct_rows([values])[0]


def distinct_rows(rows: Sequence[NDArray[np.uint64]]) -> list[NDArray[np.uint64]]:
    """Return the distinct values of each row in ascending order.

    numpy sorts in place with vector instructions, which makes this ten times as fast as numpy.unique.
    """
    values = np.concatenate(rows)
    bounds = [0, *accumulate([row.size for row in rows])]
    for start, stop in pairwise(bounds):
        values[start:stop].sort()
    kept = starts_run(values, bounds).nonzero()[0]
    if kept.size < values.size:
        values, bounds = values.take(kept), kept.searchsorted(bounds).tolist()
    return [values[start:stop] for start, stop in pairwise(bounds)]


def _power_tables(base: int, size: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    return _powers(base, size), _powers(pow(base, -1, 1 << 64), size)


def _powers(base: int, size: int) -> NDArray[np.uint64]:
    powers = np.full(size, base, dtype=np.uint64)
    powers[0] = 1
    return np.multiply.accumulate(powers, out=powers)
