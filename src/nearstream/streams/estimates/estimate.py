"""Estimate: the numbers that two signatures give about their texts, with their intervals."""

from dataclasses import dataclass
from math import sqrt
from struct import Struct
from typing import NamedTuple

from nearstream.streams.fingerprints.parameters import KEPT_SLOT_BITS, SLOTS

_Z_95 = 1.959964
_CHANCE = 2**-KEPT_SLOT_BITS  # probability that two different slots agree in the bits that are compared
# Windows overlap and edits cluster, so this many symbols say as much as one independent draw.
_SYMBOLS_PER_DRAW = 8
# The fields of an estimate in order, as native/estimates/estimate.h packs them.
PACKED = Struct("=16s9q19d5?3x")


@dataclass(frozen=True)
class Proportion:
    """A share in [0, 1] with the ends of its 95 % interval."""

    value: float
    low: float
    high: float


def wilson(share: float, draws: float) -> tuple[float, float]:
    """Return the 95 % score interval of a share in independent draws (Wilson 1927)."""
    if draws <= 0:
        return 0.0, 1.0
    z2 = _Z_95 * _Z_95 / draws
    centre = share + z2 / 2
    half = _Z_95 * sqrt(share * (1 - share) / draws + z2 / (4 * draws))
    return max(0.0, (centre - half) / (1 + z2)), min(1.0, (centre + half) / (1 + z2))


def resemblance_share(value: float) -> Proportion:
    """Return a resemblance over 128 slots of 4 bits with its interval."""
    low, high = wilson(value * (1 - _CHANCE) + _CHANCE, SLOTS)
    return Proportion(value, max(0.0, (low - _CHANCE) / (1 - _CHANCE)), max(0.0, (high - _CHANCE) / (1 - _CHANCE)))


def containment_share(value: float, symbols: int) -> Proportion:
    """Return a containment with its interval, from the number of LD symbols of the contained text."""
    return Proportion(value, *wilson(value, symbols / _SYMBOLS_PER_DRAW))


class Estimate(NamedTuple):
    """What two signatures say about their texts, in whichever order they are given.

    The shorter text has fewer bytes in its normal form, then fewer symbols, then the smaller digest. Shares are in
    [0, 1]. Distances are in characters of the normal forms.
    """

    shorter_digest: bytes  # digest of the shorter text, to identify it
    longer_characters: int  # characters of the text that has more of them
    fewer_words: int  # Words of the text that has fewer of them. Shingles, where no spaces separate the words.
    rate: int  # bytes per LD symbol at which both texts were compared, which is the coarser rate
    symbols_shorter: int  # LD symbols of the shorter text at this rate
    symbols_longer: int  # LD symbols of the longer text at this rate
    common: int  # symbols that both texts have, in any order
    matches: int  # symbols that both texts have in one order
    shingles_shorter: int  # shingles of the shorter text, each as often as it comes
    shingles_longer: int  # shingles of the longer text, each as often as it comes
    length_ratio: float  # Smaller over larger number of words. Of bytes, where no spaces separate the words.
    sketch_resemblance: float  # resemblance of the sketches
    # Shingles that both texts have, each as often as both have it, estimated from the common blocks and from the
    # sketches.
    common_shingles: float
    text_in_order: float  # share of the shorter text in common blocks, in order, of at least four words
    # Share of the shorter text from the block that holds the 5 % point of this common text to the block that holds the
    # 95 % point.
    spread_shorter: float
    spread_longer: float  # the corresponding share of the longer text
    # Share of the shorter text that the best segment holds. The best segment is the part of the longer text where
    # common text outweighs other text most.
    segment_cover: float
    segment_share: float  # share of all common text in order that the best segment holds
    distance: float  # estimated edit distance
    low: float  # lower end of its 90 % band
    high: float  # upper end of its 90 % band
    expected: float  # distance of unrelated texts of these lengths
    shared_shorter: float  # containment of the shorter text: common shingles over its shingles
    shared: float  # the larger containment of both
    common_words: float  # number of words that the common shingles represent, in the text with fewer words
    order_gap: float  # share of the shorter text that comes in another order
    # Common shingles over all shingles of both texts. It is a mean of two estimates, or the resemblance of the sketches
    # if there are no LD symbols, and then at most what the lengths allow.
    mean_resemblance: float
    spread: float  # the smaller of both spreads
    distance_ratio: float  # the distance over the longer length
    scattered: bool  # whether single characters were edited all over the texts, as the distance was read
    is_equal: bool  # whether both texts have one normal form
    is_short: bool  # whether either text is too short for its numbers to say anything
    same_lineage: bool  # whether both are states of one document or of one lineage
    same_site: bool  # whether the lineages of both are different URLs of one host

    @property
    def resemblance(self) -> Proportion:
        """Return the resemblance of the sketches with its interval."""
        return resemblance_share(self.sketch_resemblance)

    @property
    def containment_shorter(self) -> Proportion:
        """Return common shingles over those of the shorter text, with its interval."""
        return containment_share(self.shared_shorter, self.symbols_shorter)

    @property
    def containment_longer(self) -> Proportion:
        """Return common shingles over those of the longer text, with its interval."""
        return containment_share(ratio(self.common_shingles, self.shingles_longer), self.symbols_longer)

    @property
    def order_free(self) -> float:
        """Return common symbols over the symbols of the shorter text."""
        return ratio(self.common, self.symbols_shorter)

    @property
    def in_order(self) -> float:
        """Return matches over the symbols of the shorter text."""
        return ratio(self.matches, self.symbols_shorter)

    @property
    def changed_characters(self) -> int:
        """Return the distance in whole characters, which is at least 1 unless the texts are equal."""
        return 0 if self.is_equal else max(1, round(self.distance))


def unpack_estimates(packed: bytes) -> list[Estimate]:
    """Return estimates that C packed."""
    return list(map(Estimate._make, PACKED.iter_unpack(packed)))


def ratio(part: float, whole: float) -> float:
    """Return a share, 0 of nothing."""
    return part / whole if whole else 0.0
