"""Each rule with its numbers and bounds, one comparison at a time, to explain a verdict."""

from dataclasses import dataclass

from nearstream.schemas.documents.evidence import Comparison
from nearstream.streams.estimates.estimate import Estimate
from nearstream.streams.relations import rules
from nearstream.streams.relations.rules import (
    EQUAL_DIGEST,
    NO_COMMON_TEXT,
    RULES,
    SAME_LINEAGE,
    SHARED_PASSAGE,
    SIGNS,
    TOO_SHORT,
    Clauses,
    Rule,
)
from nearstream.streams.relations.thresholds import Thresholds

_DECIMALS = 4


@dataclass(frozen=True)
class Condition:
    """The condition of one rule, with the numbers of two documents."""

    rule: Rule  # the rule
    # All of these hold if the rule does. Of each clause, one comparison is enough. Empty for a rule that compares no
    # numbers.
    clauses: tuple[tuple[Comparison, ...], ...]
    holds: bool  # Whether the condition holds. The first rule that holds decides.
    of_one_site: bool = False  # the rule never holds for two pages of one site, as these documents are

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
    return (*first, *(_condition(rule, rule.clauses, estimate, thresholds) for rule in RULES))


def nearest(estimate: Estimate, thresholds: Thresholds) -> Condition:
    """Return the rule that unrelated texts come closest to, with all that it lacks.

    A rule after `no_common_text` is tried only if that does not hold, so it also needs common text.
    """
    common_text, after = SHARED_PASSAGE.clauses, RULES.index(NO_COMMON_TEXT)
    candidates = [
        _condition(rule, rule.clauses if place < after else (*common_text, *rule.clauses), estimate, thresholds)
        for place, rule in enumerate(RULES)
        if rule not in (NO_COMMON_TEXT, SHARED_PASSAGE) and not (estimate.same_site and rule.of_two_sites)
    ]
    passage = _condition(SHARED_PASSAGE, common_text, estimate, thresholds)
    return min((passage, *candidates), key=lambda each: (each.lacks, len(each.failing)))


def _condition(rule: Rule, clauses: Clauses, estimate: Estimate, thresholds: Thresholds) -> Condition:
    compared = tuple(tuple(_compared(each, estimate, thresholds) for each in clause) for clause in clauses)
    of_one_site = estimate.same_site and rule.of_two_sites
    holds = not of_one_site and all(any(each.holds for each in clause) for clause in compared)
    return Condition(rule, compared, holds, of_one_site)


def _compared(comparison: rules.Comparison, estimate: Estimate, thresholds: Thresholds) -> Comparison:
    number, sign, threshold = comparison
    value, bound = float(getattr(estimate, number)), float(getattr(thresholds, threshold))
    return Comparison(number, round(value, _DECIMALS), sign, threshold, bound, SIGNS[sign](value, bound))
