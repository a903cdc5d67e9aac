"""Winnowed fingerprints: the keys by which a passage is found inside a larger text."""

import numpy as np
from numpy.typing import NDArray

from streams.hashing import distinct
from streams.rules import AnchorRules
from streams.runs import starts_run

_LITTLE_ENDIAN = np.dtype("<u8")


def anchors(windows: NDArray[np.uint64], spaceless: bool, rules: AnchorRules) -> bytes:
    """The smallest hash of each run of consecutive windows, little-endian u64, ascending, each once.

    Winnowing (Schleimer, Wilkerson, Aiken, SIGMOD 2003): two texts that share a run of windows share an anchor. While
    there are more anchors than allowed, the run doubles; the anchors of a doubled run are some of those before.

    Args:
        windows: Hashes of the anchor windows in order of the text.
        spaceless: The text is written without spaces; its windows lie closer.
        rules: The run, and how many anchors there may be.
    """
    run = rules.run * rules.spaceless_factor if spaceless else rules.run
    minima = run_minima(windows, run)
    found = _distinct(minima)
    while found.size > rules.max_anchors:
        minima = _minima_of_two(minima, run, min(2 * run, windows.size))
        run *= 2
        found = _distinct(minima)
    return found.astype(_LITTLE_ENDIAN, copy=False).tobytes()


def run_minima(values: NDArray[np.uint64], run: int) -> NDArray[np.uint64]:
    """The minimum of each run of so many consecutive values; of all values if there are fewer."""
    width, target = 1, min(run, values.size)
    while width < target:
        wider = min(2 * width, target)
        values = _minima_of_two(values, width, wider)
        width = wider
    return values


def _minima_of_two(minima: NDArray[np.uint64], width: int, wider: int) -> NDArray[np.uint64]:
    """Minima of wider runs, each the union of two overlapping runs of `width`."""
    shift = wider - width
    return np.minimum(minima[: minima.size - shift], minima[shift:])


def _distinct(minima: NDArray[np.uint64]) -> NDArray[np.uint64]:
    # Neighbouring runs mostly share their minimum: far fewer values are left to be sorted.
    return distinct(minima[starts_run(minima)])
