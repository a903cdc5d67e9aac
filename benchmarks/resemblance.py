"""Errors of estimated resemblance on pairs of texts whose resemblance is known."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import ours, peers
from streams.minhash import resemblance

SHINGLES = (20, 50, 200, 2_000)
BANDS, ROWS = 25, 5
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_WORD_LETTERS = 7
_SHINGLE_WORDS = 5


@dataclass(frozen=True)
class Sketcher:
    """How a text becomes slots, and two sketches a resemblance."""

    sketch: Callable[[str], Any]  # Any: of each engine's own kind
    slots: Callable[[Any], NDArray[Any]]
    resemblance: Callable[[Any, Any], float]


@dataclass(frozen=True)
class Accuracy:
    """Mean absolute error of the estimate, by shingles of a text; share of pairs that meet in a band at 20 shingles."""

    mean_error: dict[str, float]
    band_recall: float


def pairs(shingles: int, trials: int) -> Iterator[tuple[str, str, float]]:
    """Two texts of so many shingles with their true resemblance, near .8.

    The second lacks the first words of the first one and goes on for as many words after its end: positions move, as
    they do when something is written before a text.
    """
    rng = random.Random(shingles)
    moved = round(shingles / 9)
    true = (shingles - moved) / (shingles + moved)
    for _ in range(trials):
        words = ["".join(rng.choices(_LETTERS, k=_WORD_LETTERS)) for _ in range(shingles + moved + _SHINGLE_WORDS - 1)]
        yield " ".join(words[: len(words) - moved]), " ".join(words[moved:]), true


def accuracy(sketcher: Sketcher, trials: int) -> Accuracy:
    """Over so many pairs of each number of shingles, the same for all engines."""
    errors: dict[str, float] = {}
    met = 0
    for shingles in SHINGLES:
        total = 0.0
        for one, other, true in pairs(shingles, trials):
            a, b = sketcher.sketch(one), sketcher.sketch(other)
            total += abs(sketcher.resemblance(a, b) - true)
            if shingles == SHINGLES[0]:
                met += share_a_band(sketcher.slots(a), sketcher.slots(b))
        errors[str(shingles)] = round(total / trials, 5)
    return Accuracy(errors, round(met / trials, 5))


def share_a_band(a: NDArray[Any], b: NDArray[Any]) -> bool:
    """Whether all slots of a band are equal; an empty slot, a negative number, equals none."""
    equal = ((a == b) & (a >= 0))[: BANDS * ROWS].reshape(BANDS, ROWS)
    return bool(equal.all(axis=1).any())


def of_ours(implementation: str) -> Sketcher:
    """Signatures, compared as the index does."""
    sign = ours.signer(implementation, "bands-only")
    return Sketcher(
        lambda text: sign(ours.document(text)),
        lambda signature: np.frombuffer(signature.sketch, dtype="<u4").astype(np.int64),
        resemblance,
    )


def of_peer(digest: peers.Digest) -> Sketcher:
    """Share of equal slots; slots that are empty on both sides are not counted."""
    return Sketcher(
        lambda text: np.asarray(digest(peers.word_shingles(peers.usual_words(text))), dtype=np.int64),
        lambda slots: slots,
        lambda a, b: float(np.count_nonzero((a == b) & (a >= 0)) / np.count_nonzero((a >= 0) | (b >= 0))),
    )
