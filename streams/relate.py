"""Two signatures with their numbers become a verdict."""

from dataclasses import dataclass
from typing import Literal

from schemas.signature import Signature
from streams.estimate import Estimate
from streams.pairing import same_lineage
from streams.relation import COVERED, EQUAL_DIGEST, SAME_LINEAGE, TOO_SHORT, Relation, Rule, decide
from streams.thresholds import DEFAULT_THRESHOLDS, Thresholds
from streams.weakness import weaknesses

_WORDS_MIN = 8
_SPACELESS_BYTES_MIN = 40


@dataclass(frozen=True)
class Verdict:
    """How two documents are related, and why.

    Attributes:
        relation: The relation; `unrelated` makes no event.
        rule: Name of the rule that decided.
        bounds: All thresholds of its condition, name to value.
        inner: Which one lies inside, of a containment.
        same_lineage: Both are states of one thing.
        low_confidence: Why the numbers are weak, if they are.
    """

    relation: Relation
    rule: str
    bounds: dict[str, float]
    inner: Literal["newer", "older"] | None
    same_lineage: bool
    low_confidence: tuple[str, ...]


def relate(
    newer: Signature, older: Signature, estimate: Estimate, thresholds: Thresholds = DEFAULT_THRESHOLDS
) -> Verdict:
    """The verdict of the first rule that holds.

    Args:
        newer: The larger of both by (observed_at, id, version).
        older: The other one.
        estimate: Their numbers.
        thresholds: Bounds of the rules.
    """
    related = same_lineage(newer, older)
    rule = _rule(newer, older, estimate, thresholds)
    inner: Literal["newer", "older"] = "newer" if newer.digest == estimate.shorter_digest else "older"
    return Verdict(
        relation=rule.relation,
        rule=rule.name,
        bounds={name: float(getattr(thresholds, name)) for name in rule.bounds},
        inner=inner if rule is COVERED else None,
        same_lineage=related,
        low_confidence=weaknesses((newer, older), estimate, rule, thresholds),
    )


def _rule(newer: Signature, older: Signature, estimate: Estimate, thresholds: Thresholds) -> Rule:
    if newer.digest == older.digest:
        return EQUAL_DIGEST
    if same_lineage(newer, older):
        return SAME_LINEAGE
    if _is_short(newer) or _is_short(older):
        return TOO_SHORT
    return decide(estimate, thresholds)


def _is_short(text: Signature) -> bool:
    return text.n_bytes < _SPACELESS_BYTES_MIN if text.spaceless else text.words < _WORDS_MIN
