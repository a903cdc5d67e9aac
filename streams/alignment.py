"""What two LD signatures have in common, with its order."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Indel

WINDOW_BYTES = 16  # each symbol stands for this many bytes of the normal form, from its position on

_FIRST_CODE_POINT = 0xE000  # from here on no surrogate is in the way of a 19-bit symbol


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
        gaps_shorter: Shape (matches + 1,), bytes from the start of one matching window to that of the next.
        gaps_longer: The same of the longer text.
        drift: By how many bytes both texts move against each other.
        lost: Symbols without a match; of both texts the larger count.
        lost_differs: Both texts lost a different count.
    """

    gaps_shorter: NDArray[np.int64]
    gaps_longer: NDArray[np.int64]
    drift: NDArray[np.int64]
    lost: NDArray[np.int64]
    lost_differs: NDArray[np.bool_]


def common_symbols(a: NDArray[np.uint32], b: NDArray[np.uint32]) -> int:
    """Size of the intersection of both multisets of symbols, whatever their order."""
    a, b = np.sort(a), np.sort(b)
    repeat = np.arange(len(a)) - np.searchsorted(a, a)
    partner = np.searchsorted(b, a) + repeat
    inside = partner < len(b)
    return int(np.count_nonzero(b[partner[inside]] == a[inside]))


def align(shorter: Side, longer: Side) -> Alignment:
    """A longest common subsequence of both sequences of symbols.

    It is not unique: the same one comes back only for the same order of arguments.
    """
    codes = Indel.opcodes(_string(shorter.symbols), _string(longer.symbols))
    blocks = [(block.a, block.b, block.size) for block in codes.as_matching_blocks()]
    starts_shorter, starts_longer, sizes = np.array(blocks, dtype=np.int64).T
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return Alignment(
        shorter, longer, np.repeat(starts_shorter, sizes) + within, np.repeat(starts_longer, sizes) + within
    )


def unaligned(shorter: Side, longer: Side) -> Alignment:
    """The pair without any match."""
    nothing = np.zeros(0, np.int64)
    return Alignment(shorter, longer, nothing, nothing)


def steps(alignment: Alignment) -> Steps:
    """The text between the matches, from the start of both texts to their ends."""
    lost_shorter = _lost(alignment.in_shorter, len(alignment.shorter.symbols))
    lost_longer = _lost(alignment.in_longer, len(alignment.longer.symbols))
    # A window that ends where the text starts counts as the match before the first.
    gaps_shorter = _differences(-WINDOW_BYTES, alignment.starts_shorter, alignment.shorter.n_bytes)
    gaps_longer = _differences(-WINDOW_BYTES, alignment.starts_longer, alignment.longer.n_bytes)
    return Steps(
        gaps_shorter,
        gaps_longer,
        drift=np.abs(gaps_shorter - gaps_longer),
        lost=np.maximum(lost_shorter, lost_longer),
        lost_differs=lost_shorter != lost_longer,
    )


def _string(symbols: NDArray[np.uint32]) -> str:
    """Each symbol as one code point: the form in which the aligner is fastest."""
    return (symbols + np.uint32(_FIRST_CODE_POINT)).astype("<u4").tobytes().decode("utf-32-le")


def _lost(matched: NDArray[np.int64], symbols: int) -> NDArray[np.int64]:
    return _differences(-1, matched, symbols) - 1


def _differences(first: int, between: NDArray[np.int64], last: int) -> NDArray[np.int64]:
    ends = np.empty(len(between) + 2, np.int64)
    ends[0], ends[1:-1], ends[-1] = first, between, last
    return ends[1:] - ends[:-1]
