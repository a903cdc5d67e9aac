"""Edits all over two texts of nearly one length, by the formulas that native/estimates/scattered.h gives."""

from dataclasses import dataclass
from math import exp, log, sqrt

import numpy as np
from numpy.typing import NDArray

from nearstream.streams.fingerprints.parameters import LD_WINDOW_BYTES
from tests.reference.alignment import Alignment

# What a pair of texts must show before its edits are read as edits all over the text.
_MATCHES = 8
_RATIO = 0.9
_DRIFT = 0.10
_LARGEST = 0.40
_VARIANCE = 2.0

# If fewer windows survive, edits overlap so much that their number is unknown. Single characters are then told from
# other edits by the windows that are lost in a row.
_COUNTABLE = 0.60
WIDE = 2.5  # bytes of a character, from which on scripts have no spaces, and words hardly more than a character
_RUN = 4.5

# A replaced word costs most of its characters, and 6 on average, with this variance. Beyond the last number of bytes an
# edit is no word.
_WORD_SHARE = 0.9
_WORD_COST = 6.0
_WORD_VARIANCE = 9.0
_WORD_BYTES = 25.0

# Windows lost to edits at random vary more from step to step than a Poisson count, because edits overlap. If their
# variance is less than this many times their mean, edits keep apart, as in a form. It cannot be seen if more windows
# than this survive, since hardly any edits would overlap.
_APART = 1.3
_DENSE = 0.78

_CROWDED = 0.8  # at most this share of edits is taken to have no window between it and the next one
_Z_90 = 1.645
_DOUBT = 0.05  # the least probability of a reading that the band of the distance includes
_MAX_EXPONENT = 50.0

_Steps = NDArray[np.int64]


@dataclass(frozen=True)
class ScatteredEdits:
    """The distance of texts with edits all over them, in bytes."""

    value: float  # the distance of the likelier reading
    low: float  # the least distance that a likely reading gives
    high: float  # the largest distance that a likely reading gives
    single: bool  # whether single characters were edited, rather than words


@dataclass(frozen=True)
class _Words:
    """The reading that words were replaced."""

    value: float  # the distance in bytes
    half: float  # half the width of its 90 % band
    chance: float  # the probability of this reading, where the other one is that single characters were edited


def scattered_edits(alignment: Alignment) -> ScatteredEdits | None:
    """Return the distance of two texts with edits all over them, or None unless edits are scattered.

    Edits are spread over the steps that lost symbols. If these are few and large, or if the texts move against each
    other, passages have changed.
    """
    shorter, longer, lost = alignment.shorter, alignment.longer, alignment.lost
    if alignment.matches < _MATCHES or shorter.n_bytes < _RATIO * longer.n_bytes:
        return None
    all_lost = lost.sum()
    if lost.max() >= _LARGEST * all_lost:
        return None
    gaps = alignment.gaps[:, lost > 0]
    grown, gaps = gaps[1] - gaps[0], gaps.max(axis=0)
    drift = np.abs(grown).sum()
    if drift > _DRIFT * gaps.sum():
        return None
    least = longer.n_bytes - shorter.n_bytes
    characters = _single_characters(alignment, grown, gaps)
    survived = _survived(alignment)
    if survived < _COUNTABLE or shorter.n_bytes >= WIDE * shorter.characters:
        most = _RUN * len(gaps) / (alignment.matches / shorter.symbols)
        return None if characters is None or all_lost > most else _certain(least + characters)
    words = _replaced_words(alignment, survived, len(gaps), float(drift), characters is not None)
    return None if words is None else _likelier(words, None if characters is None else least + characters)


def _single_characters(alignment: Alignment, grown: _Steps, gaps: _Steps) -> float | None:
    """Return the bytes of edited single characters, without those by which the lengths differ.

    Edits are spread over the steps in proportion to their gaps. Where a step moves the texts against each other,
    characters were inserted or deleted in it, and the lengths account for these already.

    Returns:
        None if the lengths of the steps vary more than edits of single characters, which change them by one at most,
        can explain.
    """
    shorter = alignment.shorter
    survived, length = alignment.matches / shorter.symbols, gaps.sum()
    width = shorter.n_bytes / shorter.characters
    edits = (1 - survived ** (width / (LD_WINDOW_BYTES - 1 + width))) * shorter.characters
    own = edits / length * gaps
    beyond = (grown - grown.sum() / length * gaps) / width
    if np.count_nonzero(beyond * beyond > _VARIANCE * np.maximum(own, 1.0)) > len(own) / 2:
        return None
    in_lengths = abs(np.cumsum(np.clip(grown, -own, own))[-1])  # from the first to the last, as C adds
    return float((edits - in_lengths) * width)


def _survived(alignment: Alignment) -> float:
    """Return the share of windows that survived in both texts."""
    return 2 * alignment.matches / (alignment.shorter.symbols + alignment.longer.symbols)


def _replaced_words(
    alignment: Alignment, survived: float, steps: int, drift: float, could_be_characters: bool
) -> _Words | None:
    """Count edits and their bytes, and return the distance if they were replaced words.

    Returns:
        None if the edits are larger than words.
    """
    shorter, longer = alignment.shorter, alignment.longer
    rate, n_bytes = shorter.rate, max(1.0, (shorter.n_bytes + longer.n_bytes) / 2 - (LD_WINDOW_BYTES - 1))
    width = shorter.n_bytes / shorter.characters
    apart = survived < _DENSE and _dispersion(alignment, steps) < _APART
    between, unseen = 0 if apart else max(1, rate - 1), 0.0
    lone, lost = (1.0, 1 - survived) if apart else (survived, -log(survived))
    for _ in range(2):
        seen = steps / (n_bytes * lone * (1 - unseen))
        density = seen / max(1 - _CROWDED, 1 - seen * between)
        reach = lost / density
        touched = max(float(LD_WINDOW_BYTES), reach)
        unseen = (1 - 1 / rate) ** (2 * touched)
    edited = reach - (LD_WINDOW_BYTES - 1)
    if edited > _WORD_BYTES:
        return None
    cost = _WORD_SHARE * (edited + drift / steps / 2)
    variance = _WORD_SHARE * _WORD_SHARE * rate * touched / 2 / (steps * survived)
    usual, spread = _WORD_COST * width, _WORD_VARIANCE * width * width
    to_character, to_word = cost - width, cost - usual
    odds = to_word * to_word / (variance + spread) - to_character * to_character / variance
    exponent = (odds - log(variance / (variance + spread))) / 2
    chance = 1 / (1 + exp(min(exponent, _MAX_EXPONENT))) if could_be_characters else 1.0
    certainty = 1 / variance + 1 / spread
    words = (cost / variance + usual / spread) / certainty * density * n_bytes
    return _Words(words, _Z_90 / sqrt(certainty) * density * n_bytes, chance)


def _dispersion(alignment: Alignment, steps: int) -> float:
    """Return the variance of the symbols that a step lost, over their mean."""
    lost = np.diff(alignment.matched).sum(axis=0) - 2
    total, squares = int(lost.sum()), int((lost * lost).sum())
    return (squares - total * total / steps) / max(1, steps - 1) / (total / steps)


def _certain(value: float) -> ScatteredEdits:
    return ScatteredEdits(value, value, value, single=True)


def _likelier(words: _Words, characters: float | None) -> ScatteredEdits:
    """Return the likelier of two readings, with a band that includes the other one if it is likely enough."""
    low, high = words.value - words.half, words.value + words.half
    if characters is None or words.chance > 1 - _DOUBT:
        return ScatteredEdits(words.value, low, high, single=False)
    if words.chance < _DOUBT:
        return _certain(characters)
    single = words.chance < 0.5
    return ScatteredEdits(
        characters if single else words.value, min(low, characters), max(high, characters), single=single
    )
