"""Rules by which an estimate becomes a relation."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from operator import ge, gt, le, lt
from typing import Literal

from nearstream.schemas.documents import evidence
from nearstream.streams.estimates.estimate import Estimate
from nearstream.streams.relations.thresholds import Thresholds, neighbours

Relation = evidence.Relation | Literal["unrelated"]
SIGNS = {"<": lt, "<=": le, ">": gt, ">=": ge}

Comparison = tuple[str, str, str]
"""A field of an estimate, a sign, and the threshold that the field is compared with."""
Clauses = tuple[tuple[Comparison, ...], ...]
"""A condition: all of these clauses hold, each by one of its comparisons."""
_Bounded = tuple[tuple[tuple[str, Callable[[float, float], bool], float], ...], ...]


@dataclass(frozen=True)
class Rule:
    """One rule: the relation that holds if its condition does."""

    name: str  # name of the rule in events
    relation: Relation  # the relation that the rule decides
    clauses: Clauses = field(default=(), repr=False)  # Its condition. Empty for a rule that compares no numbers.
    of_two_sites: bool = False  # it never holds for two pages of one site

    @cached_property
    def thresholds(self) -> tuple[str, ...]:
        """Names of all thresholds in its condition."""
        return tuple(dict.fromkeys(threshold for clause in self.clauses for _, _, threshold in clause))


EQUAL_DIGEST = Rule("equal_digest", "exact_duplicate")
EQUAL_MAIN_CONTENT = Rule("equal_main_content", "near_duplicate")  # of pages that show other texts beside it
SAME_LINEAGE = Rule("same_lineage", "version")
COMMON_END = Rule("common_end", "overlap")
VERBATIM = Rule("verbatim", "containment")  # a short item of a reference, all windows of which are in the document
OWN_PASSAGE = Rule("own_passage", "overlap")
TOO_SHORT = Rule("too_short", "unrelated")
FEW_EDITS = Rule(
    "few_edits",
    "near_duplicate",
    (
        (("distance_ratio", "<=", "distance_ratio_max"),),
        (("matches", ">=", "symbols_min"),),
    ),
)
# Pages of one site are no versions of each other, since what they share is their frame.
SCATTERED_NOISE = Rule(
    "scattered_noise",
    "version",
    (
        (("distance_ratio", "<=", "noise_ratio_max"),),
        (("length_ratio", ">=", "length_ratio_min"),),
        (("shared", "<", "version_min"),),
        (("matches", ">=", "symbols_min"),),
        (("spread_shorter", ">", "noise_spread_min"),),
    ),
    of_two_sites=True,
)
NO_COMMON_TEXT = Rule(
    "no_common_text",
    "unrelated",
    ((("shared", "<", "order_free_min"), ("common", "<", "symbols_min"), ("common_words", "<", "common_words_min")),),
)
REORDERED = Rule(
    "reordered",
    "rearranged",
    (
        (("length_ratio", ">=", "length_ratio_min"),),
        (("shared_shorter", ">=", "reordered_min"),),
        (("order_gap", ">=", "order_gap"),),
    ),
)
COVERED = Rule(
    "covered",
    "containment",
    (
        (("shared_shorter", ">=", "containment_min"),),
        (("length_ratio", "<=", "length_ratio_max"),),
        (("segment_cover", ">=", "segment_cover_min"), ("length_ratio", "<", "small_ratio")),
    ),
)
SPREAD_EDITS = Rule(
    "spread_edits",
    "version",
    (
        (("shared_shorter", ">=", "version_min"),),
        (("spread", ">=", "spread_min"),),
        (("segment_share", "<", "segment_share_max"), ("spread", ">=", "wide_spread")),
    ),
    of_two_sites=True,
)
SHARED_PASSAGE = Rule(
    "shared_passage",
    "overlap",
    (
        (("shared", ">=", "order_free_min"),),
        (("common", ">=", "symbols_min"),),
        (("common_words", ">=", "common_words_min"),),
    ),
)
RULES = (FEW_EDITS, SCATTERED_NOISE, REORDERED, NO_COMMON_TEXT, COVERED, SPREAD_EDITS, SHARED_PASSAGE)
"""The rules that numbers decide, in the order in which they are tried."""


def decide(estimate: Estimate, thresholds: Thresholds) -> Rule:
    """Return the first rule that holds for two texts, whatever their lineage."""
    if estimate.is_equal:
        return EQUAL_DIGEST
    if estimate.is_short:
        return TOO_SHORT
    for rule, clauses in _bounded(thresholds):
        if not (rule.of_two_sites and estimate.same_site) and _hold(clauses, estimate):
            return rule
    return RULES[-1]


def is_near_threshold(estimate: Estimate, rule: Rule, thresholds: Thresholds) -> bool:
    """Return whether moving one threshold a little changes the relation that a rule of numbers decided."""
    return bool(rule.clauses) and any(
        decide(estimate, moved).relation != rule.relation
        for moved, numbers, low, high in _moved(thresholds)
        if any([low <= getattr(estimate, number) <= high for number in numbers])
    )


def _hold(clauses: _Bounded, estimate: Estimate) -> bool:
    for clause in clauses:
        for number, is_met, bound in clause:
            if is_met(getattr(estimate, number), bound):
                break
        else:
            return False
    return True


@cache
def _bounded(thresholds: Thresholds) -> tuple[tuple[Rule, _Bounded], ...]:
    """Return all rules but the last one, which holds if no other does."""
    return tuple(
        (
            rule,
            tuple(
                tuple((number, SIGNS[sign], getattr(thresholds, name)) for number, sign, name in clause)
                for clause in rule.clauses
            ),
        )
        for rule in RULES[:-1]
    )


@cache
def _moved(thresholds: Thresholds) -> tuple[tuple[Thresholds, tuple[str, ...], float, float], ...]:
    """Return thresholds with one moved, with the numbers that it bounds, and from where to where."""
    compared = [each for rule in RULES for clause in rule.clauses for each in clause]
    found = []
    for moved in neighbours(thresholds):
        for name, bound in asdict(moved).items():
            low, high = sorted((bound, getattr(thresholds, name)))
            if low < high:
                found.append((moved, tuple({one for one, _, by in compared if by == name}), low, high))
    return tuple(found)
