"""Winnowed and sampled windows: the keys by which a passage is found inside a larger text, or among noise."""

import numpy as np
from numpy.typing import NDArray

from streams.hashing import Rolling, distinct, mix
from streams.rules import AnchorRules, NoiseRules
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
    if windows.size < rules.dense_below:
        run = (run + 1) // 2
    minima = run_minima(windows, run)
    found = _distinct(minima)
    while found.size > rules.max_anchors:
        minima = _minima_of_two(minima, run, min(2 * run, windows.size))
        run *= 2
        found = _distinct(minima)
    return found.astype(_LITTLE_ENDIAN, copy=False).tobytes()


def sampled_windows(prefix: NDArray[np.uint64], salt: int, rolling: Rolling, rules: NoiseRules) -> NDArray[np.uint64]:
    """Hashes of one in so many windows of bytes, ascending, each once.

    Unlike the minimum of a run, a sampled window that survives in another text is sampled there, however many new
    windows replaced characters have made around it.

    Args:
        prefix: Prefix sums over the bytes of the normal form.
        salt: Added to the polynomial of a window.
        rolling: Polynomials over bytes.
        rules: Window, rate, and how many there may be.
    """
    hashes = rolling.windows(prefix, rules.window_bytes)
    hashes += np.uint64(salt)
    mix(hashes)
    rate = rules.rate
    found = distinct(hashes[hashes < np.uint64((1 << 64) // rate)])
    while found.size > rules.max_keys:
        rate *= 2
        found = found[found < np.uint64((1 << 64) // rate)]
    return found


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
