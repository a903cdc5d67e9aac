"""What two LD signatures have in common, with its order."""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Indel

WINDOW_BYTES = 16  # each symbol stands for this many bytes of the normal form, from its position on

_FIRST_CODE_POINT = 0xE000  # from here on no surrogate is in the way of a 19-bit symbol
_CELLS = 1 << 13  # few enough to be cheap, so many that few symbols share one


@dataclass(frozen=True)
class Side:
    """One text of a pair, as its LD signature shows it at the common rate.

    Attributes:
        symbols: Shape (n,).
        positions: Shape (n,), byte where the window of each symbol starts.
        n_bytes: Length of the normal form.
        characters: The same in characters.
    """

    symbols: NDArray[np.uint32]
    positions: NDArray[np.int64]
    n_bytes: int
    characters: int

    @cached_property
    def cells(self) -> NDArray[np.int64]:
        """For each symbol its place in a table of its low bits."""
        return (self.symbols & np.uint32(_CELLS - 1)).astype(np.int64)

    @cached_property
    def apart(self) -> NDArray[np.int64]:
        """Shape (n + 1,), bytes from one window to the next, from the start and to the last that would fit."""
        bounds = np.empty(len(self.positions) + 2, np.int64)
        bounds[0], bounds[1:-1], bounds[-1] = 0, self.positions, self.n_bytes - WINDOW_BYTES
        return bounds[1:] - bounds[:-1]


@dataclass(frozen=True)
class Alignment:
    """Matches of two texts in order: symbol `in_shorter[k]` of one equals symbol `in_longer[k]` of the other."""

    shorter: Side
    longer: Side
    in_shorter: NDArray[np.int64]
    in_longer: NDArray[np.int64]

    @cached_property
    def starts_shorter(self) -> NDArray[np.int64]:
        """Byte of the shorter text where the window of each match starts."""
        return self.shorter.positions[self.in_shorter]

    @cached_property
    def starts_longer(self) -> NDArray[np.int64]:
        """The same of the longer text."""
        return self.longer.positions[self.in_longer]

    @property
    def matches(self) -> int:
        """How many symbols match in order."""
        return len(self.in_shorter)


@dataclass(frozen=True)
class Steps:
    """What lies between neighbouring matches; step 0 leads to the first match, the last one to the end.

    Attributes:
        gaps: Shape (2, matches + 1), bytes from the start of one matching window to that of the next, in both texts.
        drift: By how many bytes both texts move against each other.
        lost: Symbols without a match; of both texts the larger count.
    """

    gaps: NDArray[np.int64]
    drift: NDArray[np.int64]
    lost: NDArray[np.int64]


@dataclass(frozen=True)
class Shared:
    """Symbols of two texts that the other one has, with few others: enough for all that they have in common.

    Attributes:
        shorter: One text.
        longer: The other one.
        of_shorter: Ascending places of such symbols in it.
        of_longer: The same of the other one.
    """

    shorter: Side
    longer: Side
    of_shorter: NDArray[np.int64]
    of_longer: NDArray[np.int64]

    def common(self) -> int:
        """Size of the intersection of both multisets of symbols, whatever their order."""
        if not (self.of_shorter.size and self.of_longer.size):
            return 0
        one = self.shorter.symbols[self.of_shorter].tolist()
        other = self.longer.symbols[self.of_longer].tolist()
        if set(one).isdisjoint(other):
            return 0
        return (Counter(one) & Counter(other)).total()

    def align(self) -> Alignment:
        """A longest common subsequence of both sequences of symbols.

        It is not unique: the same one comes back only for the same order of texts.
        """
        one, other = self.shorter.symbols[self.of_shorter], self.longer.symbols[self.of_longer]
        codes = Indel.opcodes(_string(one), _string(other))
        blocks = np.array([(block.a, block.b, block.size) for block in codes.as_matching_blocks()], np.int64)
        sizes = blocks[:, 2]
        ends = sizes.cumsum()
        # The k-th match stands k places after the start of its block, less the matches before this block.
        in_shorter, in_longer = (blocks[:, :2].T - (ends - sizes)).repeat(sizes, axis=1) + np.arange(ends[-1])
        return Alignment(self.shorter, self.longer, self.of_shorter[in_shorter], self.of_longer[in_longer])

    def without(self, alignment: Alignment) -> "Shared":
        """What an alignment leaves over."""
        return Shared(
            self.shorter,
            self.longer,
            _others(self.of_shorter, alignment.in_shorter, len(self.shorter.symbols)),
            _others(self.of_longer, alignment.in_longer, len(self.longer.symbols)),
        )


def shared(shorter: Side, longer: Side) -> Shared:
    """What both may have in common: symbols whose low bits the other one has too."""
    return Shared(shorter, longer, _met(shorter, longer), _met(longer, shorter))


def align(shorter: Side, longer: Side) -> Alignment:
    """A longest common subsequence of both sequences of symbols, for texts in an order of their own."""
    return shared(shorter, longer).align()


def unaligned(shorter: Side, longer: Side) -> Alignment:
    """The pair without any match."""
    nothing = np.zeros(0, np.int64)
    return Alignment(shorter, longer, nothing, nothing)


def steps(alignment: Alignment) -> Steps:
    """The text between the matches, from the start of both texts to their ends."""
    shorter, longer = alignment.shorter, alignment.longer
    # A window that ends where the text starts counts as the match before the first.
    places = np.empty((4, alignment.matches + 2), np.int64)
    places[:, 0] = -1, -1, -WINDOW_BYTES, -WINDOW_BYTES
    places[0, 1:-1], places[1, 1:-1] = alignment.in_shorter, alignment.in_longer
    places[2, 1:-1], places[3, 1:-1] = alignment.starts_shorter, alignment.starts_longer
    places[:, -1] = len(shorter.symbols), len(longer.symbols), shorter.n_bytes, longer.n_bytes
    between = places[:, 1:] - places[:, :-1]
    lost = np.maximum(between[0], between[1])
    lost -= 1
    return Steps(between[2:], np.abs(between[2] - between[3]), lost)


def _met(side: Side, other: Side) -> NDArray[np.int64]:
    """Places of symbols whose low bits the other text has too."""
    seen = np.zeros(_CELLS, np.bool_)
    seen[other.cells] = True
    return seen[side.cells].nonzero()[0]


def _others(places: NDArray[np.int64], matched: NDArray[np.int64], symbols: int) -> NDArray[np.int64]:
    free = np.ones(symbols, np.bool_)
    free[matched] = False
    return places[free[places]]


def _string(symbols: NDArray[np.uint32]) -> str:
    """Each symbol as one code point: the form in which the aligner is fastest."""
    return (symbols + np.uint32(_FIRST_CODE_POINT)).astype("<u4", copy=False).tobytes().decode("utf-32-le")
