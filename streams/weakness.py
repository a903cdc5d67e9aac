"""Why the numbers behind a verdict may be weak."""

from functools import cache

from schemas.signature import Signature
from streams.estimate import Estimate
from streams.relation import COMPARED, EQUAL_DIGEST, SCATTERED_NOISE, Rule, consulted, decide
from streams.thresholds import Thresholds, neighbours

_SHINGLES_MIN = 40  # below, one word more or less moves every share by several percent
_SYMBOLS_MIN = 30
_CHARACTERS_MAX = 100_000  # the longest texts on which the bounds were measured
MANY_SIBLINGS = "many_siblings"


def weaknesses(
    texts: tuple[Signature, Signature], numbers: Estimate, rule: Rule, bounds: Thresholds
) -> tuple[str, ...]:
    """The reasons that hold; none for equal digests, where no number decides while all are exact."""
    if rule is EQUAL_DIGEST:
        return ()
    reasons = {
        "below_min_length": min(text.shingles for text in texts) < _SHINGLES_MIN,
        "few_symbols": numbers.rate > 0 and numbers.symbols_shorter < _SYMBOLS_MIN,
        "near_threshold": _is_near_threshold(numbers, rule, bounds),
        "char_noise": numbers.scattered or rule is SCATTERED_NOISE,
        "long_text": numbers.longer_characters > _CHARACTERS_MAX,
        "no_word_breaks": any(text.spaceless for text in texts),
    }
    return tuple(reason for reason, holds in reasons.items() if holds)


def _is_near_threshold(numbers: Estimate, rule: Rule, bounds: Thresholds) -> bool:
    """Whether another relation would come out if one bound were moved a little, past a number."""
    return any(
        low <= getattr(numbers, name) <= high and decide(numbers, moved).relation != rule.relation
        for name, low, high, moved in _moves(rule, bounds)
    )


@cache
def _moves(rule: Rule, bounds: Thresholds) -> tuple[tuple[str, float, float, Thresholds], ...]:
    """Each number that a bound is compared with, the ends between which this moves, the bounds with it moved."""
    return tuple(
        (number, *sorted((getattr(bounds, name), getattr(moved, name))), moved)
        for moved in neighbours(bounds, consulted(rule))
        for name in consulted(rule)
        if getattr(moved, name) != getattr(bounds, name)
        for number in COMPARED[name]
    )
