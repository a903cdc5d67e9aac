"""Estimate: the numbers that two signatures give about their texts."""

from dataclasses import dataclass, field
from functools import cached_property

from nearstream.schemas.signature import Signature
from nearstream.streams.estimates.alignment import align
from nearstream.streams.estimates.common_text import BlockLayout, common_shingles, find_moved, layout
from nearstream.streams.estimates.distance import edit_distance
from nearstream.streams.estimates.intervals import Proportion, containment_share, distance_band, resemblance_share
from nearstream.streams.estimates.pair import SignaturePair, pair, span_in_characters
from nearstream.streams.estimates.passages import CommonText, Passage, longest
from nearstream.streams.fingerprints.minhash import resemblance

_KINSHIP_UNIT = 0.02  # about one standard deviation of the distance of unrelated texts


@dataclass(frozen=True)
class Estimate:
    """What two signatures say about their texts, in whichever order they are given.

    The shorter text has fewer bytes in its normal form, then fewer symbols, then the smaller digest. Shares are in
    [0, 1]. Spans and distances are in characters of the normal forms. Without an LD signature `rate` and all numbers of
    symbols are 0 and the distance is `expected`.

    Attributes:
        shorter_digest: Digest of the shorter text, to identify it.
        longer_characters: Characters of the text that has more of them.
        fewer_words: Words of the text that has fewer of them. Shingles, where no spaces separate the words.
        length_ratio: Smaller over larger number of words. Of bytes, where no spaces separate the words.
        rate: Bytes per LD symbol at which both texts were compared, which is the coarser rate.
        symbols_shorter: LD symbols of the shorter text at this rate.
        symbols_longer: LD symbols of the longer text at this rate.
        common: Symbols that both texts have, in any order.
        matches: Symbols that both texts have in one order.
        sketch_resemblance: Resemblance of the sketches.
        shingles_shorter: Distinct shingles of the shorter text.
        shingles_longer: Distinct shingles of the longer text.
        common_shingles: Shingles that both texts have, estimated from the common blocks and from the sketches.
        text_in_order: Share of the shorter text in common blocks, in order, of at least four words.
        spread_shorter: Share of the shorter text from the block that holds the 5 % point of this common text to the
            block that holds the 95 % point.
        spread_longer: The corresponding share of the longer text.
        segment_cover: Share of the shorter text that the best segment holds. The best segment is the part of the longer
            text where common text outweighs other text most.
        segment_share: Share of all common text in order that the best segment holds.
        segment: Where the best segment is expected to lie, None without a match.
        common_text: All common passages.
        distance: Estimated edit distance.
        low: Lower end of its 90 % band.
        high: Upper end of its 90 % band.
        expected: Distance of unrelated texts of these lengths.
        scattered: Whether the distance was read from the survival of windows among scattered edits.
    """

    shorter_digest: bytes
    longer_characters: int
    fewer_words: int
    length_ratio: float
    rate: int
    symbols_shorter: int
    symbols_longer: int
    common: int
    matches: int
    sketch_resemblance: float
    shingles_shorter: int
    shingles_longer: int
    common_shingles: float
    text_in_order: float
    spread_shorter: float
    spread_longer: float
    segment_cover: float
    segment_share: float
    segment: Passage | None
    common_text: CommonText = field(repr=False, compare=False)
    distance: float
    low: float
    high: float
    expected: float
    scattered: bool

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
        return containment_share(_ratio(self.common_shingles, self.shingles_longer), self.symbols_longer)

    @cached_property
    def passages(self) -> tuple[Passage, ...]:
        """Return the longest common passages, in the order of the text."""
        return longest(self.common_text.in_order)

    @property
    def passages_omitted(self) -> int:
        """Return the number of passages that `passages` leaves out."""
        return len(self.common_text.in_order) - len(self.passages)

    @property
    def order_free(self) -> float:
        """Return common symbols over the symbols of the shorter text."""
        return _ratio(self.common, self.symbols_shorter)

    @cached_property
    def in_order(self) -> float:
        """Return matches over the symbols of the shorter text."""
        return _ratio(self.matches, self.symbols_shorter)

    @cached_property
    def shared_shorter(self) -> float:
        """Return the containment of the shorter text: common shingles over its shingles."""
        return _ratio(self.common_shingles, self.shingles_shorter)

    @cached_property
    def shared(self) -> float:
        """Return the larger containment of both."""
        return _ratio(self.common_shingles, min(self.shingles_shorter, self.shingles_longer))

    @property
    def common_words(self) -> float:
        """Return the number of words that the common shingles represent.

        They are counted in the text with fewer words.
        """
        return self.shared * self.fewer_words

    @cached_property
    def order_gap(self) -> float:
        """Return the share of the shorter text that comes in another order."""
        return max(0.0, self.shared_shorter - self.text_in_order)

    @cached_property
    def mean_resemblance(self) -> float:
        """Return common shingles over all shingles of both texts.

        It is a mean of two estimates, or the resemblance of the sketches if there are no LD symbols.
        """
        if not self.rate:
            return self.sketch_resemblance
        return _ratio(self.common_shingles, self.shingles_shorter + self.shingles_longer - self.common_shingles)

    @cached_property
    def spread(self) -> float:
        """Return the smaller of both spreads."""
        return min(self.spread_shorter, self.spread_longer)

    @cached_property
    def distance_ratio(self) -> float:
        """Return the distance over the longer length."""
        return self.distance / self.longer_characters

    @cached_property
    def kinship(self) -> float:
        """Return how far the distance is below that of unrelated texts.

        The unit is about one standard deviation of the distance of unrelated texts.
        """
        return (self.expected - self.distance) / (_KINSHIP_UNIT * self.longer_characters)


def estimate(a: Signature, b: Signature) -> Estimate:
    """Estimate all numbers about two texts.

    The order of the arguments does not matter. Whole signatures and those that an index keeps give equal numbers.

    Raises:
        ValueError: The signatures are of two schemes or two collections, or a normal form is empty.
    """
    both = pair(a, b)
    alignment = align(both.shorter_side, both.longer_side, both.least_common)
    shorter, longer = both.shorter, both.longer
    in_order, moved = layout(alignment.blocks, both.lead), find_moved(alignment)
    distance = edit_distance(alignment, sorted((*alignment.blocks, *moved.blocks)), both.rate, equal=both.is_equal)
    band = (0.0, 0.0) if both.is_equal else distance_band(distance, longer.n_bytes)
    value, low, high, expected = both.in_characters(distance.value, *band, distance.expected)
    sketch_resemblance = resemblance(shorter, longer)
    return Estimate(
        shorter_digest=shorter.digest,
        longer_characters=max(shorter.characters, longer.characters),
        fewer_words=both.fewer_words,
        length_ratio=both.length_ratio,
        rate=both.rate,
        symbols_shorter=both.shorter_side.symbols,
        symbols_longer=both.longer_side.symbols,
        common=alignment.common,
        matches=alignment.matches,
        sketch_resemblance=sketch_resemblance,
        shingles_shorter=shorter.shingles,
        shingles_longer=longer.shingles,
        common_shingles=common_shingles(both, alignment.blocks, moved, sketch_resemblance),
        text_in_order=min(1.0, in_order.common / shorter.n_bytes),
        spread_shorter=min(1.0, in_order.spreads[0] / shorter.n_bytes),
        spread_longer=min(1.0, in_order.spreads[1] / longer.n_bytes),
        segment_cover=min(1.0, in_order.segment / shorter.n_bytes),
        segment_share=_ratio(in_order.segment, in_order.common),
        segment=_segment(in_order, both),
        common_text=CommonText(alignment),
        distance=value,
        low=low,
        high=high,
        expected=expected,
        scattered=distance.scattered,
    )


def _segment(in_order: BlockLayout, both: SignaturePair) -> Passage | None:
    if in_order.segment_spans is None:
        return None
    shorter, longer = in_order.segment_spans
    return Passage(span_in_characters(shorter, both.shorter), span_in_characters(longer, both.longer))


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
