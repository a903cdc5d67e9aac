"""Groups of related pairs, by how easy they are to find."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.quality.corpus import RELATED, RELATIONS, Pair

FAMILIES = {"spdx", "debian-copyright", "debian-common-licenses"}
LONG_CHARACTERS = 100_000
_SHORT_SHINGLES = 40
_CONTAINED = 0.8

_Test = Callable[[Pair], bool]


def strata(pairs: Sequence[Pair], shingles: Mapping[str, NDArray[np.int64]]) -> dict[str, list[Pair]]:
    """Group the related pairs.

    A pair with a short text is only in the group `short`.

    Args:
        pairs: Labelled pairs.
        shingles: Distinct 5-word shingles of each document.
    """
    related = [pair for pair in pairs if pair.relation in RELATED]
    short = [pair for pair in related if min(shingles[pair.a].size, shingles[pair.b].size) < _SHORT_SHINGLES]
    long = [pair for pair in related if pair not in short]
    groups = {name: [pair for pair in long if holds(pair)] for name, holds in _tests().items()}
    return {**groups, "short": short}


def is_family(pair: Pair) -> bool:
    """Return whether both are licence texts, which all resemble each other."""
    return set(pair.src) <= FAMILIES


def _tests() -> dict[str, _Test]:
    tests: dict[str, _Test] = {
        "all": lambda _: True,
        "families": is_family,
        "others": lambda pair: not is_family(pair),
    }
    tests |= {name: _of(name) for name in RELATIONS if name in RELATED}
    tests |= {f"resemblance {low}-{high}": _alike(low, high) for low, high in ((0.8, 1.0), (0.5, 0.8), (0.2, 0.5))}
    for low, high in ((0.0, 0.05), (0.05, 0.2), (0.2, 0.5), (0.5, 0.8)):
        tests[f"contained, ratio {low}-{high}"] = _contained(low, high)
        tests[f"contained, ratio {low}-{high}, others"] = _outside_families(_contained(low, high))
    return tests | {
        "replies": lambda pair: pair.origin == "reply" and pair.relation in ("containment", "version"),
        "history": lambda pair: pair.origin.startswith("git-revision") and pair.relation == "version",
        "excerpts": lambda pair: pair.origin.startswith("syn embed"),
        "long": lambda pair: pair.details.longer > LONG_CHARACTERS,
    }


def _of(relation: str) -> _Test:
    return lambda pair: pair.relation == relation


def _alike(low: float, high: float) -> _Test:
    return lambda pair: low <= pair.details.J < high or pair.details.J == high == 1


def _contained(low: float, high: float) -> _Test:
    return lambda pair: pair.details.containment_of_shorter >= _CONTAINED and low <= pair.details.word_ratio < high


def _outside_families(holds: _Test) -> _Test:
    return lambda pair: holds(pair) and not is_family(pair)
