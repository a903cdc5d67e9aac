"""The numbers that two signatures give about their texts."""

from dataclasses import dataclass
from functools import cached_property

from schemas.signature import Signature
from streams.alignment import Alignment, align, common_symbols, steps, unaligned
from streams.distance import ByteDistance, edit_distance
from streams.intervals import Share, containment_share, distance_band, resemblance_share
from streams.minhash import resemblance
from streams.pairing import Pair, pair, same_lineage
from streams.passages import Passage, best_segment, passages, spread

# Below these no rule can find a relation, so that the alignment is not worth its time.
_GATE_SYMBOLS = 6
_GATE_SHARE = 0.12
_GATE_RATIO = 0.5

_REORDERED_RATIO = 0.5
_REORDERED_SHARE = 0.3
_REORDERED_GAP = 0.2

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
        length_ratio: Bytes of the shorter over bytes of the longer.
        rate: Bytes per LD symbol at which both were compared: the coarser one.
        symbols_shorter: LD symbols at this rate.
        symbols_longer: The same of the longer.
        common: Symbols that both have, whatever their order.
        matches: Symbols that both have in the same order.
        resemblance: Of the sketches.
        containment_shorter: Common symbols over those of the shorter.
        containment_longer: The same of the longer.
        spread_shorter: Share of the text between the ends of the middle 90 % of the matches.
        spread_longer: The same of the longer.
        segment_matches: Matches in the best segment: the stretch of the longer where they are densest.
        segment: Where the best segment stands; None without a match.
        passages: The longest common passages, in the order of the text.
        passages_omitted: How many more there are.
        distance: Estimated edit distance.
        low: Lower end of its 90 % band.
        high: Upper end.
        expected: Distance of unrelated texts of these lengths.
        scattered: The distance was read from the survival of windows among scattered edits.
    """

    shorter_digest: bytes
    longer_characters: int
    length_ratio: float
    rate: int
    symbols_shorter: int
    symbols_longer: int
    common: int
    matches: int
    resemblance: Share
    containment_shorter: Share
    containment_longer: Share
    spread_shorter: float
    spread_longer: float
    segment_matches: int
    segment: Passage | None
    passages: tuple[Passage, ...]
    passages_omitted: int
    distance: float
    low: float
    high: float
    expected: float
    scattered: bool

    @cached_property
    def order_free(self) -> float:
        """Common symbols over those of the shorter."""
        return self.containment_shorter.value

    @cached_property
    def order_free_longer(self) -> float:
        """Common symbols over those of the longer."""
        return self.containment_longer.value

    @cached_property
    def in_order(self) -> float:
        """Matches over the symbols of the shorter."""
        return _ratio(self.matches, self.symbols_shorter)

    @cached_property
    def order_gap(self) -> float:
        """Common symbols that stand in another order, over those of the shorter."""
        return self.order_free - self.in_order

    @cached_property
    def symbol_resemblance(self) -> float:
        """Common symbols over all symbols of both."""
        return _ratio(self.common, self.symbols_shorter + self.symbols_longer - self.common)

    @cached_property
    def mean_resemblance(self) -> float:
        """Mean of two independent estimates of the resemblance; without LD symbols that of the sketch."""
        if not self.rate:
            return self.resemblance.value
        return (self.symbol_resemblance + self.resemblance.value) / 2

    @cached_property
    def spread(self) -> float:
        """The smaller of both spreads."""
        return min(self.spread_shorter, self.spread_longer)

    @cached_property
    def segment_cover(self) -> float:
        """Matches of the best segment over the symbols of the shorter."""
        return _ratio(self.segment_matches, self.symbols_shorter)

    @cached_property
    def segment_share(self) -> float:
        """Matches of the best segment over all matches."""
        return _ratio(self.segment_matches, self.matches)

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
    sides = both.shorter_side, both.longer_side
    common = common_symbols(sides[0].symbols, sides[1].symbols)
    return _numbers(both, common, align(*sides) if _is_worth_aligning(both, common) else unaligned(*sides))


def _is_worth_aligning(both: Pair, common: int) -> bool:
    if both.is_equal or same_lineage(both.shorter, both.longer):
        return True
    if common < _GATE_SYMBOLS:
        return False
    fewer = min(len(both.shorter_side.symbols), len(both.longer_side.symbols))
    return common >= _GATE_SHARE * fewer or both.length_ratio >= _GATE_RATIO


def _numbers(both: Pair, common: int, alignment: Alignment) -> Estimate:
    between = steps(alignment)
    segment = best_segment(alignment)
    found, omitted = passages(alignment, between)
    distance = edit_distance(alignment, between, equal=both.is_equal)
    low, high = _band(distance, both, common, alignment)
    return Estimate(
        shorter_digest=both.shorter.digest,
        longer_characters=max(both.shorter.characters, both.longer.characters),
        length_ratio=both.length_ratio,
        rate=both.rate,
        symbols_shorter=len(both.shorter_side.symbols),
        symbols_longer=len(both.longer_side.symbols),
        common=common,
        matches=alignment.matches,
        resemblance=resemblance_share(float(resemblance(both.shorter, both.longer))),
        containment_shorter=containment_share(common, len(both.shorter_side.symbols)),
        containment_longer=containment_share(common, len(both.longer_side.symbols)),
        spread_shorter=spread(alignment.shorter, alignment.starts_shorter),
        spread_longer=spread(alignment.longer, alignment.starts_longer),
        segment_matches=segment.matches,
        segment=segment.place,
        passages=found,
        passages_omitted=omitted,
        distance=_scaled(distance.value, both),
        low=_scaled(low, both),
        high=_scaled(high, both),
        expected=_scaled(distance.expected, both),
        scattered=distance.scattered,
    )


def _band(distance: ByteDistance, both: Pair, common: int, alignment: Alignment) -> tuple[float, float]:
    if both.is_equal:
        return 0.0, 0.0
    symbols, moved = len(both.shorter_side.symbols), common - alignment.matches
    much_moved = common >= _REORDERED_SHARE * symbols and moved >= _REORDERED_GAP * symbols
    reordered = much_moved and alignment.matches > 0 and both.length_ratio >= _REORDERED_RATIO
    return distance_band(distance, both.longer.n_bytes, reordered=reordered)


def _scaled(distance: float, both: Pair) -> float:
    """A distance in characters: the difference of lengths is known, the rest is as wide as characters are here."""
    shorter, longer = both.shorter, both.longer
    width = (shorter.characters + longer.characters) / (shorter.n_bytes + longer.n_bytes)
    return abs(longer.characters - shorter.characters) + (distance - (longer.n_bytes - shorter.n_bytes)) * width


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
