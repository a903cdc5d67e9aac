"""Rules by which an estimate becomes a relation."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from operator import ge, gt, le, lt
from struct import Struct
from typing import Literal

from nearstream.schemas.documents import evidence
from nearstream.streams.estimates.estimate import PACKED, Estimate
from nearstream.streams.native import native
from nearstream.streams.relations.thresholds import Thresholds, neighbours

Relation = evidence.Relation | Literal["unrelated"]
SIGNS = {"<": lt, "<=": le, ">": gt, ">=": ge}
_STEP = Struct("=BBB5xd")  # number, sides, ends, bound: as native/estimates/deciding.h reads a comparison
_SIDES = {"<": 1, "<=": 3, ">": 4, ">=": 6}
_NUMBERS = Estimate._fields[1:]  # those that are compared come first
_ENDS_CLAUSE, _ENDS_RULE, _OF_TWO_SITES = 1, 2, 4

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

RULES_OF_TEXTS = (EQUAL_DIGEST, TOO_SHORT, *RULES)
"""The rules that two texts decide, whatever their lineage."""


def decide(estimates: bytes, thresholds: Thresholds) -> list[Rule]:
    """Return the first rule that holds for each of the packed estimates, whatever the lineage."""
    return [RULES_OF_TEXTS[place] for place in native.decide(estimates, (_packed(thresholds),))]


def is_near_threshold(estimate: Estimate, rule: Rule, thresholds: Thresholds) -> bool:
    """Return whether moving one threshold a little changes the relation that a rule of numbers decided."""
    if not rule.clauses:
        return False
    places = native.decide(PACKED.pack(*estimate), _packed_neighbours(thresholds))
    return any(RULES_OF_TEXTS[place].relation != rule.relation for place in set(places))


@cache
def _packed_neighbours(thresholds: Thresholds) -> tuple[bytes, ...]:
    return tuple(map(_packed, neighbours(thresholds)))


@cache
def _packed(thresholds: Thresholds) -> bytes:
    """Return the conditions of all rules but the last one, which holds if no other does."""
    return b"".join(step for rule in RULES[:-1] for step in _steps(rule, thresholds))


def _steps(rule: Rule, thresholds: Thresholds) -> Iterator[bytes]:
    for place, clause in enumerate(rule.clauses, 1):
        end = _ENDS_CLAUSE | _ENDS_RULE * (place == len(rule.clauses)) | _OF_TWO_SITES * rule.of_two_sites
        for at, (number, sign, threshold) in enumerate(clause, 1):
            ends = end * (at == len(clause))
            yield _STEP.pack(_NUMBERS.index(number), _SIDES[sign], ends, getattr(thresholds, threshold))
