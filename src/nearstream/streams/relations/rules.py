"""Rules by which an estimate becomes a relation."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from nearstream.schemas.documents import evidence
from nearstream.streams.estimates.estimate import Estimate
from nearstream.streams.relations.thresholds import Thresholds

Relation = evidence.Relation | Literal["unrelated"]


@dataclass(frozen=True)
class Rule:
    """One rule: the relation that holds if its condition does.

    Attributes:
        name: Name of the rule in events.
        relation: The relation that the rule decides.
        thresholds: Names of all thresholds in its condition.
    """

    name: str
    relation: Relation
    thresholds: tuple[str, ...] = ()


EQUAL_DIGEST = Rule("equal_digest", "exact_duplicate")
EQUAL_MAIN_CONTENT = Rule("equal_main_content", "near_duplicate")  # of pages that show other texts beside it
SAME_LINEAGE = Rule("same_lineage", "version")
COMMON_END = Rule("common_end", "overlap")
TOO_SHORT = Rule("too_short", "unrelated")
FEW_EDITS = Rule("few_edits", "near_duplicate", ("distance_ratio_max", "symbols_min"))
SCATTERED_NOISE = Rule(
    "scattered_noise",
    "version",
    ("noise_ratio_max", "length_ratio_min", "version_min", "symbols_min", "noise_spread_min"),
)
NO_COMMON_TEXT = Rule("no_common_text", "unrelated", ("order_free_min", "symbols_min", "common_words_min"))
REORDERED = Rule("reordered", "rearranged", ("length_ratio_min", "reordered_min", "order_gap"))
COVERED = Rule("covered", "containment", ("containment_min", "length_ratio_max", "segment_cover_min", "small_ratio"))
SPREAD_EDITS = Rule("spread_edits", "version", ("version_min", "spread_min", "segment_share_max", "wide_spread"))
SHARED_PASSAGE = Rule("shared_passage", "overlap", NO_COMMON_TEXT.thresholds)

# Without LD symbols only the sketch decides.
SKETCH_RESEMBLANCE = Rule("mean_resemblance", "near_duplicate", ("mean_resemblance_min",))
_SKETCH_UNRELATED = Rule("no_common_text", "unrelated", ("mean_resemblance_min",))

# The fields of an estimate that each threshold in [0, 1] is compared with.
COMPARED_FIELDS = {
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
    "distance_ratio_max": ("distance_ratio",),
    "noise_ratio_max": ("distance_ratio",),
    "noise_spread_min": ("spread_shorter",),
}


def decide(estimate: Estimate, thresholds: Thresholds) -> Rule:
    """Return the first rule whose condition holds for an estimate.

    Short texts, equal digests and lineage are not considered here. Pages of one site are no versions of each other,
    since what they share is their frame.
    """
    if not estimate.rate:
        alike = estimate.mean_resemblance >= thresholds.mean_resemblance_min
        return SKETCH_RESEMBLANCE if alike else _SKETCH_UNRELATED
    for rule, holds in _CONDITIONS:
        if holds(estimate, thresholds):
            return rule
    return SHARED_PASSAGE


def consulted_thresholds(rule: Rule) -> frozenset[str]:
    """Return the names of the thresholds checked until this rule held.

    A rule that `decide` never returns has no such thresholds.
    """
    return _CONSULTED.get(rule, frozenset())


def _has_few_edits(estimate: Estimate, thresholds: Thresholds) -> bool:
    return estimate.distance_ratio <= thresholds.distance_ratio_max and estimate.matches >= thresholds.symbols_min


def _is_scattered_noise(estimate: Estimate, thresholds: Thresholds) -> bool:
    return (
        not estimate.same_site
        and estimate.distance_ratio <= thresholds.noise_ratio_max
        and estimate.length_ratio >= thresholds.length_ratio_min
        and estimate.shared < thresholds.version_min
        and estimate.matches >= thresholds.symbols_min
        and estimate.spread_shorter > thresholds.noise_spread_min
    )


def _lacks_common_text(estimate: Estimate, thresholds: Thresholds) -> bool:
    return (
        estimate.shared < thresholds.order_free_min
        or estimate.common < thresholds.symbols_min
        or estimate.common_words < thresholds.common_words_min
    )


def _is_reordered(estimate: Estimate, thresholds: Thresholds) -> bool:
    return (
        estimate.length_ratio >= thresholds.length_ratio_min
        and estimate.shared_shorter >= thresholds.reordered_min
        and estimate.order_gap >= thresholds.order_gap
    )


def _is_covered(estimate: Estimate, thresholds: Thresholds) -> bool:
    return (
        estimate.shared_shorter >= thresholds.containment_min
        and estimate.length_ratio <= thresholds.length_ratio_max
        and (estimate.segment_cover >= thresholds.segment_cover_min or estimate.length_ratio < thresholds.small_ratio)
    )


def _has_spread_edits(estimate: Estimate, thresholds: Thresholds) -> bool:
    return (
        not estimate.same_site
        and estimate.shared_shorter >= thresholds.version_min
        and estimate.spread >= thresholds.spread_min
        and (estimate.segment_share < thresholds.segment_share_max or estimate.spread >= thresholds.wide_spread)
    )


_CONDITIONS: tuple[tuple[Rule, Callable[[Estimate, Thresholds], bool]], ...] = (
    (FEW_EDITS, _has_few_edits),
    (SCATTERED_NOISE, _is_scattered_noise),
    (NO_COMMON_TEXT, _lacks_common_text),
    (REORDERED, _is_reordered),
    (COVERED, _is_covered),
    (SPREAD_EDITS, _has_spread_edits),
)
_ORDER = (*(rule for rule, _ in _CONDITIONS), SHARED_PASSAGE)
_CONSULTED = {
    rule: frozenset(name for earlier in _ORDER[: index + 1] for name in earlier.thresholds)
    for index, rule in enumerate(_ORDER)
} | {rule: frozenset(rule.thresholds) for rule in (SKETCH_RESEMBLANCE, _SKETCH_UNRELATED)}
