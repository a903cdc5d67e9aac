"""Alignment of two LD signatures: what two texts have in common, in order."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearstream.streams.estimates.comparing import reach_table
from nearstream.streams.fingerprints.parameters import LD_WINDOW_BYTES
from tests.reference.matching_symbols import TAKEN, align_symbols


class MatchingBlock(NamedTuple):
    """Common text without a visible difference inside.

    Starts and ends are bytes of both normal forms, at which the common text is expected to start and end.
    """

    start_shorter: float
    start_longer: float
    end_shorter: float
    end_longer: float
    length: float


@dataclass(frozen=True)
class Side:
    """One text of a pair, as its LD signature shows it at the common rate."""

    # Int64 of shape (2, n + 1). First row: bytes where the window of each symbol starts, then the end of the text.
    # Second row: the symbols, then 0.
    windows: NDArray[np.int64]
    n_bytes: int  # length of the normal form in bytes
    characters: int  # length of the normal form in characters
    rate: int  # bytes per symbol, on average
    grain: int = 0  # bytes by which positions may be off, 0 where they are exact to the byte

    @property
    def symbols(self) -> int:
        """Return the number of symbols."""
        return int(self.windows.shape[1]) - 1

    def starts(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the bytes where the windows of these symbols start."""
        starts: NDArray[np.int64] = self.windows[0, indices]
        return starts

    def without(self, indices: NDArray[np.int64]) -> "Side":
        """Return this text with these symbols marked so that they match nothing."""
        windows = self.windows.copy()
        windows[1, indices] += TAKEN
        return replace(self, windows=windows)


@dataclass(frozen=True)
class Alignment:
    """A longest common subsequence of the symbols of two texts.

    There may be several. Which one is found depends only on the two texts and on which of them is the shorter.
    """

    shorter: Side  # one text
    longer: Side  # the other text
    common: int  # number of symbols that both texts have, in any order
    matches: int  # number of symbols that match in order
    # Shape (2, matches + 2), indices of the matching symbols in both texts. -1 precedes them and the number of symbols
    # follows them, for the ends of both texts.
    matched: NDArray[np.int64]
    # Maximal runs of matches between which no symbol is lost and no text moved, grown to their expected ends.
    blocks: list[MatchingBlock]

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Return the bytes where matching windows start.

        Shape (2, matches + 2): the first and the last column are the ends of both texts.
        """
        starts: NDArray[np.int64] = np.array(
            (self.shorter.starts(self.matched[0]), self.longer.starts(self.matched[1]))
        )
        starts[:, 0] = -LD_WINDOW_BYTES
        return starts

    @cached_property
    def lost(self) -> NDArray[np.int64]:
        """Return the number of unmatched symbols before each match and before the end.

        They are counted in the text that has more of them there.
        """
        steps = self.matched[:, 1:] - self.matched[:, :-1]
        lost: NDArray[np.int64] = np.maximum(steps[0], steps[1]) - 1
        return lost

    @cached_property
    def gaps(self) -> NDArray[np.int64]:
        """Return the bytes from the start of each matching window to the next.

        Shape (2, matches + 1).
        """
        return np.diff(self.starts)

    def align_rest(self) -> "Alignment":
        """Align what these matches leave over, which is common text in another order."""
        in_shorter, in_longer = self.matched[:, 1:-1]
        return align(self.shorter.without(in_shorter), self.longer.without(in_longer))


def align(shorter: Side, longer: Side, least: int = 0) -> Alignment:
    """Align two texts, without any match if they have fewer than `least` common symbols."""
    reach, grain = reach_table(shorter.rate), max(shorter.grain, longer.grain)
    common, matched, blocks = align_symbols(shorter.windows, longer.windows, reach, grain, least, shorter.rate)
    return Alignment(
        shorter, longer, common, matched.shape[1] - 2, matched, [MatchingBlock(*row) for row in blocks.tolist()]
    )


def total(lengths: Iterable[float]) -> float:
    """Add lengths from the first to the last, as C does. `sum` compensates for rounding from Python 3.12 on."""
    return reduce(add, lengths, 0.0)
