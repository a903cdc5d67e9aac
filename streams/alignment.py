"""What two LD signatures have in common, with its order."""

from dataclasses import dataclass, replace
from functools import cache, cached_property
from struct import iter_unpack
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streams.pair_loops import TAKEN, WINDOW_BYTES

try:
    from streams._native import meet
except ImportError:  # installed without a compiler
    from streams.pair_loops import meet

_LEAST = 1e-9  # bytes; no growth, yet no division by 0
_COARSEST_RATE = 1 << 13  # of texts of 16 MB
_FARTHEST_RATES = 38  # from here on growth is the same in all bits of a float


class Stretch(NamedTuple):
    """Common text without a visible difference inside: bytes of both normal forms where it is expected to be."""

    start_shorter: float
    start_longer: float
    end_shorter: float
    end_longer: float
    length: float


@dataclass(frozen=True)
class Side:
    """One text of a pair, as its LD signature shows it at the common rate.

    Attributes:
        windows: int64 of shape (2, n + 1), bytes where the window of each symbol starts, then the end of the text; the
            symbols, then 0.
        n_bytes: Length of the normal form.
        characters: The same in characters.
        rate: Bytes per symbol, on average.
        grain: Bytes by which positions may be off; 0 where they are kept to the byte.
    """

    windows: bytes
    n_bytes: int
    characters: int
    rate: int
    grain: int = 0

    @property
    def symbols(self) -> int:
        """How many there are."""
        return len(self.windows) // 16 - 1

    def starts(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Bytes where these symbols start."""
        starts: NDArray[np.int64] = np.frombuffer(self.windows, np.int64, self.symbols + 1)[places]
        return starts

    def without(self, places: NDArray[np.int64]) -> "Side":
        """The same where these symbols count no more."""
        windows = np.frombuffer(bytearray(self.windows), np.int64).reshape(2, -1)
        windows[1, places] += TAKEN
        return replace(self, windows=windows.tobytes())


@dataclass(frozen=True)
class Alignment:
    """A longest common subsequence of the symbols of two texts: the same one for the same order of texts.

    Attributes:
        shorter: One text.
        longer: The other one.
        common: Symbols that both have, whatever their order.
        matches: Those that match in order.
        matched: Shape (2, matches + 2), places of equal symbols in both; before them -1, after them the number of
            symbols: the ends of both texts.
        stretches: Maximal runs of matches between which no symbol is lost and no text moved, grown to their expected
            ends.
    """

    shorter: Side
    longer: Side
    common: int
    matches: int
    matched: NDArray[np.int64]
    stretches: list[Stretch]

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Shape (2, matches + 2), bytes where their windows start, between the ends of both texts."""
        starts: NDArray[np.int64] = np.array(
            (self.shorter.starts(self.matched[0]), self.longer.starts(self.matched[1]))
        )
        starts[:, 0] = -WINDOW_BYTES
        return starts

    @cached_property
    def lost(self) -> NDArray[np.int64]:
        """Symbols without a match before each match, then before the end; of both texts the larger count."""
        apart = self.matched[:, 1:] - self.matched[:, :-1]
        lost: NDArray[np.int64] = np.maximum(apart[0], apart[1]) - 1
        return lost

    @cached_property
    def gaps(self) -> NDArray[np.int64]:
        """Shape (2, matches + 1), bytes from the start of one matching window to that of the next, in both texts."""
        return np.diff(self.starts)

    def rest(self) -> "Alignment":
        """What both have in common beside these matches: text in another order."""
        in_shorter, in_longer = self.matched[:, 1:-1]
        return align(self.shorter.without(in_shorter), self.longer.without(in_longer))


def align(shorter: Side, longer: Side, least: int = 0) -> Alignment:
    """The alignment of two texts; one without matches if fewer symbols than `least` are common."""
    reach, grain = _reach(min(shorter.rate, _COARSEST_RATE)), max(shorter.grain, longer.grain)
    common, matched, stretches = meet(shorter.windows, longer.windows, reach, grain, least)
    places = np.frombuffer(matched, np.int64).reshape(2, -1)
    found = list(map(Stretch._make, iter_unpack("5d", stretches)))
    return Alignment(shorter, longer, common, places.shape[1] - 2, places, found)


@cache
def _reach(rate: int) -> bytes:
    """float64: bytes from the window next to a stretch to its expected end, by the bytes r up to this window.

    The first difference lies after the last window of a stretch, yet before the end of the next sampled one, r bytes
    on. Windows are sampled at 1 / rate, those that differ in both texts; so a difference x bytes on is as likely as
    exp(x / rate), on average at r / (1 - exp(-r / rate)) - rate.
    """
    room = np.arange(_FARTHEST_RATES * rate + 1, dtype=np.float64)
    some = room + _LEAST
    return (some / -np.expm1(some / -max(rate, 1)) - rate - room).tobytes()
