"""Winnowed and sampled windows: the keys by which a passage is found inside a larger text, or among noise."""

import numpy as np
from numpy.typing import NDArray

from streams.hashing import distinct, distinct_rows
from streams.rules import AnchorRules, NoiseRules
from streams.runs import Rows, starts_run

_LITTLE_ENDIAN = np.dtype("<u8")


def anchors(windows: Rows, spaceless: bool, rules: AnchorRules) -> list[bytes]:
    """Of each row the smallest hash of each run of consecutive windows, little-endian u64, ascending, each once.

    Winnowing (Schleimer, Wilkerson, Aiken, SIGMOD 2003): two texts that share a run of windows share an anchor. While
    there are more anchors than allowed, the run doubles; the anchors of a doubled run are some of those before.

    Args:
        windows: Hashes of the anchor windows of each text, in its order.
        spaceless: The texts are written without spaces; their windows lie closer.
        rules: The run, and how many anchors there may be.
    """
    usual = rules.run * rules.spaceless_factor if spaceless else rules.run
    rows = windows.each()
    runs = [(usual + 1) // 2 if row.size < rules.dense_below else usual for row in rows]
    together = _minima_of_rows(windows, usual).each()
    minima = [
        found if run == usual <= row.size else run_minima(row, run)
        for row, run, found in zip(rows, runs, together, strict=True)
    ]
    most = rules.max_anchors
    return [
        (found if found.size <= most else _fewer(row, run, most)).astype(_LITTLE_ENDIAN, copy=False).tobytes()
        for row, run, found in zip(rows, runs, distinct_rows(minima), strict=True)
    ]


def sampled_windows(windows: NDArray[np.uint64], rules: NoiseRules) -> NDArray[np.uint64]:
    """Hashes of one in so many windows of bytes, ascending, each once.

    Unlike the minimum of a run, a sampled window that survives in another text is sampled there, however many new
    windows replaced characters have made around it.

    Args:
        windows: Mixed hashes of all windows of a text.
        rules: Rate, and how many there may be.
    """
    rate = rules.rate
    found = distinct(windows[windows < np.uint64((1 << 64) // rate)])
    while found.size > rules.max_keys:
        rate *= 2
        found = found[found < np.uint64((1 << 64) // rate)]
    return found


def run_minima(values: NDArray[np.uint64], run: int, width: int = 1) -> NDArray[np.uint64]:
    """The minimum of each run of so many consecutive values; of all values if there are fewer.

    Args:
        values: Values, or minima of their runs of `width`.
        run: Values of a run.
        width: Of how many values each of these is the minimum.
    """
    target = min(run, values.size + width - 1)
    while width < target:
        wider = min(2 * width, target)
        shift = wider - width
        values = np.minimum(values[: values.size - shift], values[shift:])
        width = wider
    return values


def _minima_of_rows(windows: Rows, run: int) -> Rows:
    """Minima of the runs within each row, of equal neighbours one: far fewer values are left to be sorted."""
    minima = run_minima(windows.values, run)
    kept = starts_run(minima, [min(start, minima.size) for start in windows.starts]).nonzero()[0]
    last = [max(start, stop - (run - 1)) for start, stop in zip(windows.starts, windows.stops, strict=True)]
    return Rows(minima.take(kept), kept.searchsorted(windows.starts).tolist(), kept.searchsorted(last).tolist())


def _fewer(windows: NDArray[np.uint64], run: int, most: int) -> NDArray[np.uint64]:
    minima = run_minima(windows, run)
    while True:
        minima = run_minima(minima, 2 * run, run)
        run *= 2
        found = distinct(minima[starts_run(minima)])
        if found.size <= most:
            return found
