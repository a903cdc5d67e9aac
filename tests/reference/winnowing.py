"""Winnowing: the selection of windows that become index keys.

Winnowed windows (anchors) find a passage inside a larger text. Sampled windows find a text among scattered changes.
"""

import numpy as np
from numpy.typing import NDArray

from nearstream.streams.fingerprints.parameters import AnchorRules, NoiseRules
from tests.reference.polynomials import distinct, distinct_rows
from tests.reference.ragged import RaggedRows, starts_run

_LITTLE_ENDIAN = np.dtype("<u8")


def anchors(windows: RaggedRows, spaceless: bool, rules: AnchorRules) -> list[bytes]:
    """Return the anchors of each text: distinct little-endian u64 in ascending order.

    An anchor is the smallest hash in a run of consecutive windows (winnowing, Schleimer, Wilkerson, Aiken, SIGMOD
    2003). Two texts that share a run of windows share an anchor. The length of the run is doubled as long as there are
    more anchors than allowed. The anchors of a doubled run are some of those before.

    Args:
        windows: Hashes of the anchor windows of each text, in the order of the text.
        spaceless: Whether the texts are written without spaces. Their windows are closer to each other.
        rules: The length of a run, and the maximum number of anchors.
    """
    usual = rules.run * rules.spaceless_factor if spaceless else rules.run
    rows = windows.each()
    runs = [(usual + 1) // 2 if row.size < rules.dense_below else usual for row in rows]
    together = _minima_of_rows(windows, usual).each()
    minima = [
        found if run == usual <= row.size else run_minima(row, run)
        for row, run, found in zip(rows, runs, together, strict=True)
    ]
    limit = rules.max_anchors
    return [
        (found if found.size <= limit else _fewer(row, run, limit)).astype(_LITTLE_ENDIAN, copy=False).tobytes()
        for row, run, found in zip(rows, runs, distinct_rows(minima), strict=True)
    ]


def sampled_windows(windows: NDArray[np.uint64], rules: NoiseRules) -> NDArray[np.uint64]:
    """Return the hashes of sampled windows of bytes.

    They are distinct and in ascending order. One in `rules.rate` windows is sampled. A sampled window is also sampled
    in another text that contains it, however many windows around it are new there because characters were replaced.
    This does not hold for the minimum of a run.

    Args:
        windows: Mixed hashes of all windows of a text.
        rules: The rate, and the maximum number of sampled windows.
    """
    rate = rules.rate
    found = distinct(windows[windows < np.uint64((1 << 64) // rate)])
    while found.size > rules.max_keys:
        rate *= 2
        found = found[found < np.uint64((1 << 64) // rate)]
    return found


def sampled_symbols(windows: NDArray[np.uint64], rate: int, most: int) -> NDArray[np.uint64]:
    """Return the hashes of the LD windows that become keys.

    They are distinct and in ascending order. Repeated windows count as often as they occur.

    Args:
        windows: Mixed hashes of all LD windows of a text.
        rate: One in `rate` windows is sampled. It is doubled as long as there are more than allowed.
        most: The maximum number of sampled windows.
    """
    found = windows[windows < np.uint64(min((1 << 64) // rate, (1 << 64) - 1))]
    while found.size > most:
        rate *= 2
        found = found[found < np.uint64((1 << 64) // rate)]
    return distinct(found)


def run_minima(values: NDArray[np.uint64], run: int, width: int = 1) -> NDArray[np.uint64]:
    """Return the minimum of each run of consecutive values.

    If there are fewer values than a run has, the result is the minimum of all.

    Args:
        values: Values, or the minima of their runs of `width` values.
        run: Number of values in a run.
        width: Number of values of which each element of `values` is the minimum.
    """
    target = min(run, values.size + width - 1)
    while width < target:
        wider = min(2 * width, target)
        shift = wider - width
        values = np.minimum(values[: values.size - shift], values[shift:])
        width = wider
    return values


def _minima_of_rows(windows: RaggedRows, run: int) -> RaggedRows:
    """Return the minima of the runs within each row.

    Equal neighbours give one minimum, so that far fewer values remain to be sorted.
    """
    minima = run_minima(windows.values, run)
    kept = starts_run(minima, [min(start, minima.size) for start in windows.starts]).nonzero()[0]
    last = [max(start, stop - (run - 1)) for start, stop in zip(windows.starts, windows.stops, strict=True)]
    return RaggedRows(minima.take(kept), kept.searchsorted(windows.starts).tolist(), kept.searchsorted(last).tolist())


def _fewer(windows: NDArray[np.uint64], run: int, limit: int) -> NDArray[np.uint64]:
    minima = run_minima(windows, run)
    while True:
        minima = run_minima(minima, 2 * run, run)
        run *= 2
        found = distinct(minima[starts_run(minima)])
        if found.size <= limit:
            return found
