"""Errors of estimated resemblance on pairs of known resemblance."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.speed import ours, peers
from nearstream.streams.estimates.comparing import estimate

SHINGLES = (20, 50, 200, 2_000)
BANDS, ROWS = 25, 5
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_WORD_LETTERS = 7
_SHINGLE_WORDS = 5


@dataclass(frozen=True)
class Sketcher:
    """The functions that sketch a text and compare two sketches."""

    sketch: Callable[[str], Any]  # Any: each engine has its own type of sketch
    slots: Callable[[Any], NDArray[Any]]
    resemblance: Callable[[Any, Any], float]


@dataclass(frozen=True)
class Accuracy:
    """How good the sketches of an engine are."""

    mean_error: dict[str, float]  # mean absolute error of the estimate, by the number of shingles of a text
    band_recall: float  # share of pairs of 20 shingles that meet in a band


def pairs(shingles: int, trials: int) -> Iterator[tuple[str, str, float]]:
    """Yield pairs of texts with their true resemblance, near 0.8.

    Both texts have `shingles` shingles. The second text lacks the first words of the first text and continues for as
    many words after its end. So positions move, as they do when something is inserted before a text.
    """
    rng = random.Random(shingles)
    moved = round(shingles / 9)
    true = (shingles - moved) / (shingles + moved)
    for _ in range(trials):
        words = ["".join(rng.choices(_LETTERS, k=_WORD_LETTERS)) for _ in range(shingles + moved + _SHINGLE_WORDS - 1)]
        yield " ".join(words[: len(words) - moved]), " ".join(words[moved:]), true


def accuracy(sketcher: Sketcher, trials: int) -> Accuracy:
    """Measure a sketcher on `trials` pairs of each number of shingles.

    All engines get identical pairs.
    """
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
    """Return whether all slots of any band are equal.

    A negative number marks an empty slot, which equals no other.
    """
    equal = ((a == b) & (a >= 0))[: BANDS * ROWS].reshape(BANDS, ROWS)
    return bool(equal.all(axis=1).any())


def of_ours() -> Sketcher:
    """Return a sketcher that compares our signatures as the index does."""
    sign = ours.signer()
    return Sketcher(
        lambda text: sign(ours.document(text)),
        lambda signature: np.frombuffer(signature.sketch, dtype="<u4").astype(np.int64),
        lambda one, other: estimate(one, other).sketch_resemblance,
    )


def of_peer(digest: peers.Digest) -> Sketcher:
    """Return a sketcher that compares the digests of a peer.

    The resemblance is the share of equal slots. Slots that are empty on both sides are not counted.
    """
    return Sketcher(
        lambda text: np.asarray(digest(peers.word_shingles(peers.usual_words(text))), dtype=np.int64),
        lambda slots: slots,
        lambda a, b: float(np.count_nonzero((a == b) & (a >= 0)) / np.count_nonzero((a >= 0) | (b >= 0))),
    )
