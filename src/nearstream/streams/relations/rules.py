"""Rules by which an estimate becomes a relation."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter, ge, gt, le, lt
from typing import Any, Literal

from nearstream.schemas.documents import evidence
from nearstream.streams.estimates.estimate import Estimate
from nearstream.streams.relations.thresholds import Thresholds

Relation = evidence.Relation | Literal["unrelated"]
SIGNS = {"<": lt, "<=": le, ">": gt, ">=": ge}
_Number = Callable[[Any], float]

Comparison = tuple[str, str, str]
"""A field of an estimate, a sign, and the threshold that the field is compared with."""
Clauses = tuple[tuple[Comparison, ...], ...]
"""A condition: all of these clauses hold, each by one of its comparisons."""


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

    def holds(self, estimate: Estimate, thresholds: Thresholds) -> bool:
        """Return whether its condition holds."""
        if self.of_two_sites and estimate.same_site:
            return False
        for clause in self._compiled:  # loops, because a pair has some ten comparisons
            for number, compare, bound in clause:
                if compare(number(estimate), bound(thresholds)):
                    break
            else:
                return False
        return True

    @cached_property
    def _compiled(self) -> tuple[tuple[tuple[_Number, Callable[[float, float], bool], _Number], ...], ...]:
        return tuple(
            tuple((attrgetter(number), SIGNS[sign], attrgetter(bound)) for number, sign, bound in clause)
            for clause in self.clauses
        )


EQUAL_DIGEST = Rule("equal_digest", "exact_duplicate")
EQUAL_MAIN_CONTENT = Rule("equal_main_content", "near_duplicate")  # of pages that show other texts beside it
SAME_LINEAGE = Rule("same_lineage", "version")
COMMON_END = Rule("common_end", "overlap")
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
RULES = (FEW_EDITS, SCATTERED_NOISE, NO_COMMON_TEXT, REORDERED, COVERED, SPREAD_EDITS, SHARED_PASSAGE)
"""The rules that numbers decide, in the order in which they are tried."""

_CONSULTED = {
    rule: frozenset(name for earlier in RULES[: place + 1] for name in earlier.thresholds)
    for place, rule in enumerate(RULES)
}


def decide(estimate: Estimate, thresholds: Thresholds) -> Rule:
    """Return the first rule whose condition holds for an estimate.

    Short texts, equal digests and lineage are not considered here.
    """
    return next((rule for rule in RULES[:-1] if rule.holds(estimate, thresholds)), RULES[-1])


def consulted_thresholds(rule: Rule) -> frozenset[str]:
    """Return the names of the thresholds checked until this rule held.

    A rule that `decide` never returns has no such thresholds.
    """
    return _CONSULTED.get(rule, frozenset())


def compared_fields(threshold: str) -> tuple[str, ...]:
    """Return the fields of an estimate that a threshold is compared with."""
    comparisons = [each for rule in RULES for clause in rule.clauses for each in clause]
    return tuple(dict.fromkeys(number for number, _, name in comparisons if name == threshold))
