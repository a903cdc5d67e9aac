"""What two LD signatures have in common, with its order."""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Indel

WINDOW_BYTES = 16  # each symbol stands for this many bytes of the normal form, from its position on

_FIRST_CODE_POINT = np.uint32(0xE000)  # from here on no surrogate is in the way of a 19-bit symbol
_LITTLE_ENDIAN = np.dtype("<u4")
_CELLS = 1 << 13  # few enough to be cheap, so many that few symbols share one
_CELL = np.uint32(_CELLS - 1)


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
        return (self.symbols & _CELL).astype(np.int64)

    @cached_property
    def seen(self) -> NDArray[np.bool_]:
        """Whether a symbol has these low bits."""
        table = np.zeros(_CELLS, np.bool_)
        table[self.cells] = True
        return table

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """Shape (n + 2,), the positions and the end of the text; -1 finds a window that ends where the text starts."""
        places = np.empty(len(self.positions) + 2, np.int64)
        places[:-2], places[-2], places[-1] = self.positions, self.n_bytes, -WINDOW_BYTES
        return places


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
class Alignment:
    """Matches of two texts in order.

    Attributes:
        shorter: One text.
        longer: The other one.
        matched: Shape (2, matches + 2), places of equal symbols in both; before them -1, after them the number of
            symbols: the ends of both texts.
    """

    shorter: Side
    longer: Side
    matched: NDArray[np.int64]

    @property
    def matches(self) -> int:
        """How many symbols match in order."""
        return len(self.matched[0]) - 2

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Shape (2, matches + 2), bytes where their windows start, between the ends of both texts."""
        starts = np.empty_like(self.matched)
        starts[0], starts[1] = self.shorter.places[self.matched[0]], self.longer.places[self.matched[1]]
        return starts

    @cached_property
    def steps(self) -> Steps:
        """The text between the matches, from the start of both texts to their ends."""
        apart = self.matched[:, 1:] - self.matched[:, :-1]
        lost = np.maximum(apart[0], apart[1])
        lost -= 1
        gaps = self.starts[:, 1:] - self.starts[:, :-1]
        return Steps(gaps, np.abs(gaps[0] - gaps[1]), lost)


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

    @property
    def at_most(self) -> int:
        """No more symbols than these are common."""
        return min(len(self.of_shorter), len(self.of_longer))

    def common(self) -> int:
        """Size of the intersection of both multisets of symbols, whatever their order."""
        if not self.at_most:
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
        blocks = Indel.opcodes(_string(one), _string(other)).as_matching_blocks()
        matched = np.empty((2, sum([block.size for block in blocks]) + 2), np.int64)
        matched[:, 0] = -1
        matched[:, -1] = len(self.shorter.symbols), len(self.longer.symbols)
        in_shorter, in_longer = matched
        start = 1
        for block in blocks:
            end = start + block.size
            in_shorter[start:end] = self.of_shorter[block.a : block.a + block.size]
            in_longer[start:end] = self.of_longer[block.b : block.b + block.size]
            start = end
        return Alignment(self.shorter, self.longer, matched)

    def without(self, alignment: Alignment) -> "Shared":
        """What an alignment leaves over."""
        return Shared(
            self.shorter,
            self.longer,
            _others(self.of_shorter, alignment.matched[0]),
            _others(self.of_longer, alignment.matched[1]),
        )


def shared(shorter: Side, longer: Side) -> Shared:
    """What both may have in common: symbols whose low bits the other one has too."""
    return Shared(shorter, longer, longer.seen[shorter.cells].nonzero()[0], shorter.seen[longer.cells].nonzero()[0])


def unaligned(shorter: Side, longer: Side) -> Alignment:
    """The pair without any match."""
    return Alignment(shorter, longer, np.array(((-1, len(shorter.symbols)), (-1, len(longer.symbols)))))


def _others(places: NDArray[np.int64], matched: NDArray[np.int64]) -> NDArray[np.int64]:
    """Those that are not matched; the ends of the text, which are, fall outside."""
    if len(matched) == len(places) + 2:
        return places[:0]
    free = np.ones(matched[-1] + 2, np.bool_)
    free[matched] = False
    return places[free[places]]


def _string(symbols: NDArray[np.uint32]) -> str:
    """Each symbol as one code point: the form in which the aligner is fastest."""
    return (symbols + _FIRST_CODE_POINT).astype(_LITTLE_ENDIAN, copy=False).tobytes().decode("utf-32-le")
