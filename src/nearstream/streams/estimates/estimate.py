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
_KINSHIP_UNIT = 0.02  # about one standard deviation of the distance of unrelated texts


@dataclass(frozen=True)
class Proportion:
    """A share in [0, 1] with the ends of its 95 % interval."""

    value: float
    low: float
    high: float


def wilson(share: float, draws: float) -> tuple[float, float]:
    """Return the 95 % score interval of a share (Wilson 1927).

    Args:
        share: The share that was found.
        draws: Number of independent draws in which it was found.
    """
    if draws <= 0:
        return 0.0, 1.0
    z2 = _Z_95 * _Z_95 / draws
    centre = share + z2 / 2
    half = _Z_95 * sqrt(share * (1 - share) / draws + z2 / (4 * draws))
    return max(0.0, (centre - half) / (1 + z2)), min(1.0, (centre + half) / (1 + z2))


def resemblance_share(value: float) -> Proportion:
    """Return a resemblance over 128 slots of 4 bits with its interval.

    The ends of the interval are corrected for chance agreement, as the value is.
    """
    low, high = wilson(value * (1 - _CHANCE) + _CHANCE, SLOTS)
    return Proportion(value, max(0.0, (low - _CHANCE) / (1 - _CHANCE)), max(0.0, (high - _CHANCE) / (1 - _CHANCE)))


def containment_share(value: float, symbols: int) -> Proportion:
    """Return a containment with its interval.

    Args:
        value: The containment, estimated mostly from LD symbols.
        symbols: Number of LD symbols of the contained text.
    """
    return Proportion(value, *wilson(value, symbols / _SYMBOLS_PER_DRAW))


class Estimate(NamedTuple):
    """What two signatures say about their texts, in whichever order they are given.

    The shorter text has fewer bytes in its normal form, then fewer symbols, then the smaller digest. Shares are in
    [0, 1]. Distances are in characters of the normal forms. Without an LD signature `rate` and all numbers of symbols
    are 0 and the distance is `expected`.

    Attributes:
        shorter_digest: Digest of the shorter text, to identify it.
        longer_characters: Characters of the text that has more of them.
        fewer_words: Words of the text that has fewer of them. Shingles, where no spaces separate the words.
        rate: Bytes per LD symbol at which both texts were compared, which is the coarser rate.
        symbols_shorter: LD symbols of the shorter text at this rate.
        symbols_longer: LD symbols of the longer text at this rate.
        common: Symbols that both texts have, in any order.
        matches: Symbols that both texts have in one order.
        shingles_shorter: Shingles of the shorter text, each as often as it comes.
        shingles_longer: Shingles of the longer text, each as often as it comes.
        length_ratio: Smaller over larger number of words. Of bytes, where no spaces separate the words.
        sketch_resemblance: Resemblance of the sketches.
        common_shingles: Shingles that both texts have, each as often as both have it, estimated from the common blocks
            and from the sketches.
        text_in_order: Share of the shorter text in common blocks, in order, of at least four words.
        spread_shorter: Share of the shorter text from the block that holds the 5 % point of this common text to the
            block that holds the 95 % point.
        spread_longer: The corresponding share of the longer text.
        segment_cover: Share of the shorter text that the best segment holds. The best segment is the part of the longer
            text where common text outweighs other text most.
        segment_share: Share of all common text in order that the best segment holds.
        distance: Estimated edit distance.
        low: Lower end of its 90 % band.
        high: Upper end of its 90 % band.
        expected: Distance of unrelated texts of these lengths.
        shared_shorter: Containment of the shorter text: common shingles over its shingles.
        shared: The larger containment of both.
        common_words: Number of words that the common shingles represent, in the text with fewer words.
        order_gap: Share of the shorter text that comes in another order.
        mean_resemblance: Common shingles over all shingles of both texts. It is a mean of two estimates, or the
            resemblance of the sketches if there are no LD symbols, and then at most what the lengths allow.
        spread: The smaller of both spreads.
        distance_ratio: The distance over the longer length.
        scattered: Whether single characters were edited all over the texts, as the distance was read.
        is_equal: Whether both texts have one normal form.
        is_short: Whether either text is too short for its numbers to say anything.
        same_lineage: Whether both are states of one document or of one lineage.
        same_site: Whether the lineages of both are different URLs of one host.
    """

    shorter_digest: bytes
    longer_characters: int
    fewer_words: int
    rate: int
    symbols_shorter: int
    symbols_longer: int
    common: int
    matches: int
    shingles_shorter: int
    shingles_longer: int
    length_ratio: float
    sketch_resemblance: float
    common_shingles: float
    text_in_order: float
    spread_shorter: float
    spread_longer: float
    segment_cover: float
    segment_share: float
    distance: float
    low: float
    high: float
    expected: float
    shared_shorter: float
    shared: float
    common_words: float
    order_gap: float
    mean_resemblance: float
    spread: float
    distance_ratio: float
    scattered: bool
    is_equal: bool
    is_short: bool
    same_lineage: bool
    same_site: bool

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

    @property
    def kinship(self) -> float:
        """Return how far the distance is below that of unrelated texts.

        The unit is about one standard deviation of the distance of unrelated texts.
        """
        return (self.expected - self.distance) / (_KINSHIP_UNIT * self.longer_characters)


def ratio(part: float, whole: float) -> float:
    """Return a share, 0 of nothing."""
    return part / whole if whole else 0.0
