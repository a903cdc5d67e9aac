"""Thresholds of the rules that distinguish relations."""

from dataclasses import asdict, dataclass, replace

_COUNTS = frozenset(("symbols_min", "common_words_min"))
_ASCENDING = ("order_free_min", "version_min", "containment_min")
# How far a threshold is moved to see whether a pair is close to it.
_STEP = 0.07
_STEPS = {"order_gap": 0.05, "distance_ratio_max": 0.03, "order_free_min": 0.02}


@dataclass(frozen=True)
class Thresholds:
    """Thresholds of the rules.

    The defaults are the values that define the relations for exact shingles and words. All are in [0, 1] except two
    counts, `symbols_min` and `common_words_min`.

    Raises:
        ValueError: A threshold is out of range, or not order_free_min <= version_min <= containment_min.
    """

    distance_ratio_max: float = 0.15  # largest distance over the longer length of a near-duplicate
    # Least share of the shorter text's shingles that the longer text has if it contains it.
    containment_min: float = 0.70
    order_free_min: float = 0.09  # common share of the shingles of either text below which two texts are unrelated
    version_min: float = 0.25  # least common share at which edits all over a text make a version
    symbols_min: float = 4  # fewer common LD symbols than this prove nothing
    common_words_min: float = 12  # if common shingles represent fewer words than this, they are chance
    order_gap: float = 0.20  # least share of a text in another order at which it is rearranged
    reordered_min: float = 0.30  # least common share of a rearranged text
    length_ratio_max: float = 0.85  # largest ratio of lengths at which the shorter text can lie inside the longer
    # Least ratio of lengths at which texts can be rearranged or differ by scattered noise.
    length_ratio_min: float = 0.50
    segment_cover_min: float = 0.65  # least share of the shorter text that one segment of the longer must hold
    small_ratio: float = 0.30  # ratio of lengths below which the segment does not matter
    spread_min: float = 0.50  # least share of both texts over which the common text of a version is spread
    # Share of the common text in one segment from which this text is a passage, not a version.
    segment_share_max: float = 0.90
    wide_spread: float = 0.75  # spread of the common text from which it is a version even then
    noise_ratio_max: float = 0.50  # largest distance over length of scattered noise
    noise_spread_min: float = 0.60  # share of the shorter text beyond which common text is spread among scattered noise

    def __post_init__(self) -> None:
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


def neighbours(thresholds: Thresholds) -> tuple[Thresholds, ...]:
    """Return copies of the thresholds with one of them moved, down and up.

    A threshold moves by 0.07, `order_gap` by 0.05, `distance_ratio_max` by 0.03 and `order_free_min` by 0.02. Counts do
    not move.
    """
    shares = {name: value for name, value in asdict(thresholds).items() if name not in _COUNTS}
    return tuple(
        replace(thresholds, **{name: _clamp(value + sign * _STEPS.get(name, _STEP), *_range(thresholds, name))})
        for name, value in shares.items()
        for sign in (-1, 1)
    )


def _clamp(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


def _range(thresholds: Thresholds, name: str) -> tuple[float, float]:
    """Return the range in which a threshold can move without being refused."""
    if name not in _ASCENDING:
        return 0.0, 1.0
    values = (0.0, *(getattr(thresholds, other) for other in _ASCENDING), 1.0)
    index = _ASCENDING.index(name) + 1
    return values[index - 1], values[index + 1]
