"""The bounds of the rules that tell relations apart."""

from dataclasses import asdict, dataclass, replace
from functools import cache

_COUNTS = frozenset(("symbols_min", "common_words_min"))
_STEP = 0.07
_STEPS = {"order_gap": 0.05, "order_free_min": 0.02}


@dataclass(frozen=True)
class Thresholds:
    """Bounds in [0, 1], but for two counts: those by which the relations are defined for exact shingles and words.

    Attributes:
        mean_resemblance_min: From here on a near-duplicate.
        containment_min: Share of the shorter's shingles that the longer must have to contain it.
        order_free_min: Common share of the shingles of either text below which two texts are unrelated.
        version_min: Common share from which edits all over a text make a version.
        symbols_min: Fewer common LD symbols prove nothing.
        common_words_min: Fewer words that common shingles stand for are chance.
        order_gap: Share of a text in another order from which it is rearranged.
        reordered_min: Common share that a rearranged text must have.
        length_ratio_max: Up to here the shorter can lie inside the longer.
        length_ratio_min: From here on texts can be rearranged, or differ by scattered noise.
        segment_cover_min: Share of the shorter that one segment of the longer must hold.
        small_ratio: Below this ratio of lengths the segment does not matter.
        spread_min: Share of both texts over which the common text of a version is spread.
        segment_share_max: From here on one segment holds the common text, so that it is a passage.
        wide_spread: From here on it is a version even then.
        noise_ratio_max: Largest distance over length of scattered noise.
        noise_spread_min: Share of the shorter over which its common text is spread.

    Raises:
        ValueError: A bound is out of range, or not order_free_min <= version_min <= containment_min.
    """

    mean_resemblance_min: float = 0.70
    containment_min: float = 0.70
    order_free_min: float = 0.09
    version_min: float = 0.25
    symbols_min: float = 4
    common_words_min: float = 12
    order_gap: float = 0.20
    reordered_min: float = 0.30
    length_ratio_max: float = 0.85
    length_ratio_min: float = 0.50
    segment_cover_min: float = 0.65
    small_ratio: float = 0.30
    spread_min: float = 0.50
    segment_share_max: float = 0.90
    wide_spread: float = 0.75
    noise_ratio_max: float = 0.50
    noise_spread_min: float = 0.60

    def __post_init__(self) -> None:
        """Refuses bounds that no rule can use."""
        for name, value in asdict(self).items():
            if name in _COUNTS and not value >= 1:
                raise ValueError(f"{name} of at least 1 expected, not {value}")
            if name not in _COUNTS and not 0 <= value <= 1:
                raise ValueError(f"{name} in [0, 1] expected, not {value}")
        if not self.order_free_min <= self.version_min <= self.containment_min:
            raise ValueError(
                "order_free_min <= version_min <= containment_min expected,"
                f" not {self.order_free_min}, {self.version_min}, {self.containment_min}"
            )


DEFAULT_THRESHOLDS = Thresholds()


@cache
def neighbours(thresholds: Thresholds, names: frozenset[str]) -> tuple[Thresholds, ...]:
    """The same thresholds with one of these bounds moved: by .07, order_gap by .05, order_free_min by .02."""
    shares = {name: value for name, value in asdict(thresholds).items() if name in names - _COUNTS}
    return tuple(
        replace(thresholds, **{name: _kept_in(_room(thresholds, name), value + sign * _STEPS.get(name, _STEP))})
        for name, value in shares.items()
        for sign in (-1, 1)
    )


def _kept_in(room: tuple[float, float], value: float) -> float:
    return min(max(value, room[0]), room[1])


def _room(thresholds: Thresholds, name: str) -> tuple[float, float]:
    """How far a bound can move before the thresholds are refused."""
    ordered = ("order_free_min", "version_min", "containment_min")
    if name not in ordered:
        return 0.0, 1.0
    values = (0.0, *(getattr(thresholds, each) for each in ordered), 1.0)
    place = ordered.index(name) + 1
    return values[place - 1], values[place + 1]
