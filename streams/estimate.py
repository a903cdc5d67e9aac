"""The numbers that two signatures give about their texts."""

from dataclasses import dataclass, field
from functools import cached_property

from schemas.signature import Signature
from streams.alignment import align
from streams.common_shingles import common_shingles, moved
from streams.distance import edit_distance
from streams.intervals import Share, containment_share, distance_band, resemblance_share
from streams.minhash import resemblance
from streams.pairing import Pair, characters, pair
from streams.passages import CommonText, Passage, longest
from streams.stretches import Layout, layout

_KINSHIP_UNIT = 0.02  # about one standard deviation of the distance of unrelated texts


@dataclass(frozen=True)
class Estimate:
    """What two signatures say about their texts, whichever of them is named first.

    "Shorter" means: fewer bytes of the normal form, then fewer symbols, then the smaller digest. Shares are
    in [0, 1], spans and distances in characters of the normal forms. Without an LD signature `rate` is 0,
    all numbers of symbols are 0 and the distance is `expected`.

    Attributes:
        shorter_digest: Tells which text is the shorter one.
        longer_characters: Characters of the text that has more of them.
        fewer_words: Words of the text that has fewer of them; shingles, where no spaces part the words.
        length_ratio: Fewer over more words, or bytes where no spaces part the words.
        rate: Bytes per LD symbol at which both were compared: the coarser one.
        symbols_shorter: LD symbols at this rate.
        symbols_longer: The same of the longer.
        common: Symbols that both have, whatever their order.
        matches: Symbols that both have in the same order.
        sketch_resemblance: Of the sketches.
        shingles_shorter: Distinct shingles of the shorter.
        shingles_longer: The same of the longer.
        common_shingles: How many of them both have, from the common stretches and from the sketches.
        text_in_order: Share of the shorter in common stretches of at least four words, in order.
        spread_shorter: Share of the text from the stretch that holds the 5 % point of this common text to the one
            that holds the 95 % point.
        spread_longer: The same of the longer.
        segment_cover: Share of the shorter in the best segment: the part of the longer where common text outweighs
            the other most.
        segment_share: The same over all common text in order.
        segment: Where the best segment is expected to stand; None without a match.
        common_text: All common passages.
        distance: Estimated edit distance.
        low: Lower end of its 90 % band.
        high: Upper end.
        expected: Distance of unrelated texts of these lengths.
        scattered: The distance was read from the survival of windows among scattered edits.
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
    def resemblance(self) -> Share:
        """Of the sketches."""
        return resemblance_share(self.sketch_resemblance)

    @property
    def containment_shorter(self) -> Share:
        """Common shingles over those of the shorter."""
        return containment_share(self.shared_shorter, self.symbols_shorter)

    @property
    def containment_longer(self) -> Share:
        """The same of the longer."""
        return containment_share(_ratio(self.common_shingles, self.shingles_longer), self.symbols_longer)

    @cached_property
    def passages(self) -> tuple[Passage, ...]:
        """The longest common passages, in the order of the text."""
        return longest(self.common_text.in_order)

    @property
    def passages_omitted(self) -> int:
        """How many more there are."""
        return len(self.common_text.in_order) - len(self.passages)

    @property
    def order_free(self) -> float:
        """Common symbols over those of the shorter."""
        return _ratio(self.common, self.symbols_shorter)

    @cached_property
    def in_order(self) -> float:
        """Matches over the symbols of the shorter."""
        return _ratio(self.matches, self.symbols_shorter)

    @cached_property
    def shared_shorter(self) -> float:
        """Containment of the shorter: common shingles over its shingles."""
        return _ratio(self.common_shingles, self.shingles_shorter)

    @cached_property
    def shared(self) -> float:
        """Larger containment of both."""
        return _ratio(self.common_shingles, min(self.shingles_shorter, self.shingles_longer))

    @property
    def common_words(self) -> float:
        """Words of the text with fewer of them that common shingles stand for."""
        return self.shared * self.fewer_words

    @cached_property
    def order_gap(self) -> float:
        """Share of the shorter that the longer has in another order."""
        return max(0.0, self.shared_shorter - self.text_in_order)

    @cached_property
    def mean_resemblance(self) -> float:
        """Common shingles over all shingles of both: a mean of two estimates; without LD symbols that of the sketch."""
        if not self.rate:
            return self.sketch_resemblance
        return _ratio(self.common_shingles, self.shingles_shorter + self.shingles_longer - self.common_shingles)

    @cached_property
    def spread(self) -> float:
        """The smaller of both spreads."""
        return min(self.spread_shorter, self.spread_longer)

    @cached_property
    def distance_ratio(self) -> float:
        """Distance over the longer length."""
        return self.distance / self.longer_characters

    @cached_property
    def kinship(self) -> float:
        """By how many standard deviations of unrelated texts the distance is below theirs."""
        return (self.expected - self.distance) / (_KINSHIP_UNIT * self.longer_characters)


def estimate(a: Signature, b: Signature) -> Estimate:
    """All numbers about two texts; the order of the arguments does not matter.

    Whole signatures and those that an index keeps give the same numbers.

    Raises:
        ValueError: Two schemes or two collections, or an empty normal form.
    """
    both = pair(a, b)
    alignment = align(both.shorter_side, both.longer_side, both.least_common)
    shorter, longer = both.shorter, both.longer
    lie, apart = layout(alignment.stretches, both.lead), moved(alignment)
    distance = edit_distance(
        alignment, sorted((*alignment.stretches, *apart.stretches)), both.rate, equal=both.is_equal
    )
    band = (0.0, 0.0) if both.is_equal else distance_band(distance, longer.n_bytes)
    value, low, high, expected = both.characters(distance.value, *band, distance.expected)
    alike = resemblance(shorter, longer)
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
        sketch_resemblance=alike,
        shingles_shorter=shorter.shingles,
        shingles_longer=longer.shingles,
        common_shingles=common_shingles(both, alignment.stretches, apart, alike),
        text_in_order=min(1.0, lie.common / shorter.n_bytes),
        spread_shorter=min(1.0, lie.spreads[0] / shorter.n_bytes),
        spread_longer=min(1.0, lie.spreads[1] / longer.n_bytes),
        segment_cover=min(1.0, lie.segment / shorter.n_bytes),
        segment_share=_ratio(lie.segment, lie.common),
        segment=_segment(lie, both),
        common_text=CommonText(alignment),
        distance=value,
        low=low,
        high=high,
        expected=expected,
        scattered=distance.scattered,
    )


def _segment(lie: Layout, both: Pair) -> Passage | None:
    if lie.places is None:
        return None
    return Passage(characters(lie.places[0], both.shorter), characters(lie.places[1], both.longer))


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
