"""The rules by which numbers become a relation."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from streams.estimate import Estimate
from streams.thresholds import Thresholds

Relation = Literal["exact_duplicate", "near_duplicate", "containment", "version", "rearranged", "overlap", "unrelated"]


@dataclass(frozen=True)
class Rule:
    """One line of the table: what holds if its bounds do.

    Attributes:
        name: As events say it.
        relation: What it decides.
        bounds: Names of all thresholds in its condition.
    """

    name: str
    relation: Relation
    bounds: tuple[str, ...] = ()


EQUAL_DIGEST = Rule("equal_digest", "exact_duplicate")
SAME_LINEAGE = Rule("same_lineage", "version")
TOO_SHORT = Rule("too_short", "unrelated")
SCATTERED_NOISE = Rule(
    "scattered_noise",
    "version",
    ("noise_ratio_max", "length_ratio_min", "version_min", "symbols_min", "noise_spread_min"),
)
NO_COMMON_TEXT = Rule("no_common_text", "unrelated", ("order_free_min", "symbols_min", "common_words_min"))
MEAN_RESEMBLANCE = Rule("mean_resemblance", "near_duplicate", ("mean_resemblance_min", "order_gap"))
REORDERED = Rule("reordered", "rearranged", ("length_ratio_min", "reordered_min", "order_gap"))
COVERED = Rule("covered", "containment", ("containment_min", "length_ratio_max", "segment_cover_min", "small_ratio"))
SPREAD_EDITS = Rule("spread_edits", "version", ("version_min", "spread_min", "segment_share_max", "wide_spread"))
SHARED_PASSAGE = Rule("shared_passage", "overlap", NO_COMMON_TEXT.bounds)

# Without LD symbols only the sketch speaks.
_SKETCH_RESEMBLANCE = Rule("mean_resemblance", "near_duplicate", ("mean_resemblance_min",))
_SKETCH_UNRELATED = Rule("no_common_text", "unrelated", ("mean_resemblance_min",))


def decide(numbers: Estimate, bounds: Thresholds) -> Rule:
    """The first rule whose condition the numbers meet; lengths, digests and lineage are not looked at."""
    if not numbers.rate:
        alike = numbers.mean_resemblance >= bounds.mean_resemblance_min
        return _SKETCH_RESEMBLANCE if alike else _SKETCH_UNRELATED
    for rule, holds in _CONDITIONS:
        if holds(numbers, bounds):
            return rule
    return SHARED_PASSAGE


def _is_noise(numbers: Estimate, bounds: Thresholds) -> bool:
    return (
        numbers.distance_ratio <= bounds.noise_ratio_max
        and numbers.length_ratio >= bounds.length_ratio_min
        and numbers.shared < bounds.version_min
        and numbers.matches >= bounds.symbols_min
        and numbers.spread_shorter > bounds.noise_spread_min
    )


def _is_foreign(numbers: Estimate, bounds: Thresholds) -> bool:
    return (
        numbers.shared < bounds.order_free_min
        or numbers.common < bounds.symbols_min
        or numbers.common_words < bounds.common_words_min
    )


def _is_alike(numbers: Estimate, bounds: Thresholds) -> bool:
    return numbers.mean_resemblance >= bounds.mean_resemblance_min and numbers.order_gap < bounds.order_gap


def _is_reordered(numbers: Estimate, bounds: Thresholds) -> bool:
    return (
        numbers.length_ratio >= bounds.length_ratio_min
        and numbers.shared_shorter >= bounds.reordered_min
        and numbers.order_gap >= bounds.order_gap
    )


def _is_covered(numbers: Estimate, bounds: Thresholds) -> bool:
    return (
        numbers.shared_shorter >= bounds.containment_min
        and numbers.length_ratio <= bounds.length_ratio_max
        and (numbers.segment_cover >= bounds.segment_cover_min or numbers.length_ratio < bounds.small_ratio)
    )


def _is_edited(numbers: Estimate, bounds: Thresholds) -> bool:
    return (
        numbers.shared_shorter >= bounds.version_min
        and numbers.spread >= bounds.spread_min
        and (numbers.segment_share < bounds.segment_share_max or numbers.spread >= bounds.wide_spread)
    )


_CONDITIONS: tuple[tuple[Rule, Callable[[Estimate, Thresholds], bool]], ...] = (
    (SCATTERED_NOISE, _is_noise),
    (NO_COMMON_TEXT, _is_foreign),
    (MEAN_RESEMBLANCE, _is_alike),
    (REORDERED, _is_reordered),
    (COVERED, _is_covered),
    (SPREAD_EDITS, _is_edited),
)


def consulted(rule: Rule) -> frozenset[str]:
    """Names of the bounds that were looked at before this rule was found to hold; none without a condition."""
    return _CONSULTED.get(rule, frozenset())


# The numbers that a bound which can move is compared with.
COMPARED = {
    "mean_resemblance_min": ("mean_resemblance",),
    "containment_min": ("shared_shorter",),
    "order_free_min": ("shared",),
    "version_min": ("shared", "shared_shorter"),
    "order_gap": ("order_gap",),
    "reordered_min": ("shared_shorter",),
    "length_ratio_max": ("length_ratio",),
    "length_ratio_min": ("length_ratio",),
    "segment_cover_min": ("segment_cover",),
    "small_ratio": ("length_ratio",),
    "spread_min": ("spread",),
    "segment_share_max": ("segment_share",),
    "wide_spread": ("spread",),
    "noise_ratio_max": ("distance_ratio",),
    "noise_spread_min": ("spread_shorter",),
}
_ORDER = (*(rule for rule, _ in _CONDITIONS), SHARED_PASSAGE)
_CONSULTED = {
    rule: frozenset(name for earlier in _ORDER[: place + 1] for name in earlier.bounds)
    for place, rule in enumerate(_ORDER)
} | {rule: frozenset(rule.bounds) for rule in (_SKETCH_RESEMBLANCE, _SKETCH_UNRELATED)}
