"""Each rule with its numbers and bounds, to explain a verdict.

`rules.decide` is written for speed. This page states its conditions as data, one comparison at a time. A test
compares both on random numbers.
"""

from dataclasses import dataclass
from operator import ge, gt, le, lt

from nearstream.streams.estimates.estimate import Estimate
from nearstream.streams.relations.rules import (
    COVERED,
    EQUAL_DIGEST,
    FEW_EDITS,
    NO_COMMON_TEXT,
    REORDERED,
    SAME_LINEAGE,
    SCATTERED_NOISE,
    SHARED_PASSAGE,
    SKETCH_RESEMBLANCE,
    SPREAD_EDITS,
    TOO_SHORT,
    Rule,
)
from nearstream.streams.relations.thresholds import Thresholds

_SIGNS = {"<": lt, "<=": le, ">": gt, ">=": ge}
# (number, sign, threshold). A condition is a tuple of clauses that all hold, a clause is a tuple of comparisons of
# which one holds.
_Comparison = tuple[str, str, str]
_Clauses = tuple[tuple[_Comparison, ...], ...]

_COMMON_TEXT: _Clauses = (
    (("shared", ">=", "order_free_min"),),
    (("common", ">=", "symbols_min"),),
    (("common_words", ">=", "common_words_min"),),
)
_CONDITIONS: dict[Rule, _Clauses] = {
    FEW_EDITS: (
        (("distance_ratio", "<=", "distance_ratio_max"),),
        (("matches", ">=", "symbols_min"),),
    ),
    SCATTERED_NOISE: (
        (("distance_ratio", "<=", "noise_ratio_max"),),
        (("length_ratio", ">=", "length_ratio_min"),),
        (("shared", "<", "version_min"),),
        (("matches", ">=", "symbols_min"),),
        (("spread_shorter", ">", "noise_spread_min"),),
    ),
    NO_COMMON_TEXT: (
        (
            ("shared", "<", "order_free_min"),
            ("common", "<", "symbols_min"),
            ("common_words", "<", "common_words_min"),
        ),
    ),
    REORDERED: (
        (("length_ratio", ">=", "length_ratio_min"),),
        (("shared_shorter", ">=", "reordered_min"),),
        (("order_gap", ">=", "order_gap"),),
    ),
    COVERED: (
        (("shared_shorter", ">=", "containment_min"),),
        (("length_ratio", "<=", "length_ratio_max"),),
        (("segment_cover", ">=", "segment_cover_min"), ("length_ratio", "<", "small_ratio")),
    ),
    SPREAD_EDITS: (
        (("shared_shorter", ">=", "version_min"),),
        (("spread", ">=", "spread_min"),),
        (("segment_share", "<", "segment_share_max"), ("spread", ">=", "wide_spread")),
    ),
    SHARED_PASSAGE: _COMMON_TEXT,
}
_BEFORE = (FEW_EDITS, SCATTERED_NOISE)  # rules that need no common shingles
_OF_TWO_SITES = (SCATTERED_NOISE, SPREAD_EDITS)  # rules that never hold for two pages of one site
_SKETCH_ONLY: _Clauses = ((("mean_resemblance", ">=", "mean_resemblance_min"),),)


@dataclass(frozen=True)
class Comparison:
    """One number of an estimate against its bound.

    Attributes:
        number: Name of the number, a field of `Estimate`.
        value: Its value.
        sign: `<`, `<=`, `>` or `>=`.
        threshold: Name of the bound, a field of `Thresholds`.
        bound: Its value.
        holds: Whether the comparison holds.
    """

    number: str
    value: float
    sign: str
    threshold: str
    bound: float
    holds: bool

    @property
    def lacks(self) -> float:
        """Distance of the number from the bound, over the bound. 0 if the comparison holds."""
        if self.holds:
            return 0.0
        return abs(self.value - self.bound) / self.bound if self.bound else abs(self.value)


@dataclass(frozen=True)
class Condition:
    """The condition of one rule, with the numbers of two documents.

    Attributes:
        rule: The rule.
        clauses: All of these hold if the rule does. Of each clause, one comparison is enough. Empty for a rule that
            compares no numbers.
        holds: Whether the condition holds. The first rule that holds decides.
        of_one_site: The rule never holds for two pages of one site, as these documents are.
    """

    rule: Rule
    clauses: tuple[tuple[Comparison, ...], ...]
    holds: bool
    of_one_site: bool = False

    @property
    def lacks(self) -> float:
        """Largest missing part of a bound, 0 if the rule holds."""
        return max((min(each.lacks for each in clause) for clause in self.clauses), default=0.0)

    @property
    def failing(self) -> tuple[Comparison, ...]:
        """The nearest comparison of each clause that does not hold."""
        return tuple(
            min(clause, key=lambda each: each.lacks)
            for clause in self.clauses
            if not any(each.holds for each in clause)
        )


def conditions(estimate: Estimate, thresholds: Thresholds) -> tuple[Condition, ...]:
    """Return the conditions of all rules in the order in which they are tried."""
    first = (
        Condition(EQUAL_DIGEST, (), estimate.is_equal),
        Condition(SAME_LINEAGE, (), estimate.same_lineage),
        Condition(TOO_SHORT, (), estimate.is_short),
    )
    if not estimate.rate:
        return (*first, _condition(SKETCH_RESEMBLANCE, _SKETCH_ONLY, estimate, thresholds))
    return (*first, *(_condition(rule, clauses, estimate, thresholds) for rule, clauses in _CONDITIONS.items()))


def nearest(estimate: Estimate, thresholds: Thresholds) -> Condition:
    """Return the rule that unrelated texts come closest to, with all that it lacks.

    A rule after `no_common_text` is tried only if that does not hold, so it also needs common text.
    """
    if not estimate.rate:
        return _condition(SKETCH_RESEMBLANCE, _SKETCH_ONLY, estimate, thresholds)
    candidates = [
        _condition(rule, clauses if rule in _BEFORE else (*_COMMON_TEXT, *clauses), estimate, thresholds)
        for rule, clauses in _CONDITIONS.items()
        if rule not in (NO_COMMON_TEXT, SHARED_PASSAGE) and not (estimate.same_site and rule in _OF_TWO_SITES)
    ]
    passage = _condition(SHARED_PASSAGE, _COMMON_TEXT, estimate, thresholds)
    return min((passage, *candidates), key=lambda each: (each.lacks, len(each.failing)))


def _condition(rule: Rule, clauses: _Clauses, estimate: Estimate, thresholds: Thresholds) -> Condition:
    compared = tuple(tuple(_compared(each, estimate, thresholds) for each in clause) for clause in clauses)
    of_one_site = estimate.same_site and rule in _OF_TWO_SITES
    holds = not of_one_site and all(any(each.holds for each in clause) for clause in compared)
    return Condition(rule, compared, holds, of_one_site)


def _compared(comparison: _Comparison, estimate: Estimate, thresholds: Thresholds) -> Comparison:
    number, sign, threshold = comparison
    value, bound = float(getattr(estimate, number)), float(getattr(thresholds, threshold))
    return Comparison(number, value, sign, threshold, bound, _SIGNS[sign](value, bound))
