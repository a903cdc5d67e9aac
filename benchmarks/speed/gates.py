"""Gates: limits that the figures of a run must meet."""

from collections.abc import Iterable
from typing import Any

from benchmarks.speed.ours import IMPLEMENTATIONS, TOGETHER
from benchmarks.speed.peers import RACED
from benchmarks.speed.resemblance import SHINGLES
from benchmarks.texts import ENGLISH, SPACELESS

Rows = list[dict[str, Any]]  # Any: JSON
Gate = dict[str, Any]
Ratios = dict[str, dict[str, float]]

_FROM_5_KB = tuple(size for size in ENGLISH if size != "en-1")
FREE, USUAL = "ours, free", "usual"

# By name: engine, its outputs, normaliser of the peers, their shingles, sizes, smallest ratio that passes.
_RACES = {
    "native all / best peer, our normaliser free": ("native", "all", FREE, "words", tuple(ENGLISH), 3.5),
    "native all / best peer, usual normaliser": ("native", "all", USUAL, "words", tuple(ENGLISH), 5.0),
    "native sketch / best peer, our normaliser free": ("native", "sketch", FREE, "words", tuple(ENGLISH), 5.0),
    "native all / best peer, CJK, words": ("native", "all", USUAL, "words", tuple(SPACELESS), 2.5),
    "native all / best peer, CJK, characters": ("native", "all", USUAL, "characters", tuple(SPACELESS), 3.2),
    "numpy all together / best peer, our normaliser free": ("numpy", TOGETHER, FREE, "words", _FROM_5_KB, 1.0),
    "numpy all together / best peer, normaliser free, 1 KB": ("numpy", TOGETHER, FREE, "words", ("en-1",), 0.8),
    "numpy all together / best peer, usual normaliser": ("numpy", TOGETHER, USUAL, "words", _FROM_5_KB, 1.7),
}
# Ratios that are printed but have no limit.
_SHOWN = {
    "numpy all one by one / best peer, our normaliser free": ("numpy", "all", FREE, "words", tuple(ENGLISH)),
    "numpy all one by one / best peer, usual normaliser": ("numpy", "all", USUAL, "words", tuple(ENGLISH)),
    "native all together / best peer, our normaliser free": ("native", TOGETHER, FREE, "words", tuple(ENGLISH)),
    "numpy sketch / best peer, our normaliser free": ("numpy", "sketch", FREE, "words", tuple(ENGLISH)),
    "numpy all together / best peer, CJK, words": ("numpy", TOGETHER, USUAL, "words", tuple(SPACELESS)),
    "numpy all together / best peer, CJK, characters": ("numpy", TOGETHER, USUAL, "characters", tuple(SPACELESS)),
    "native all / best peer, CJK, words, normaliser free": ("native", "all", FREE, "words", tuple(SPACELESS)),
    "native all / best peer, CJK, characters, normaliser free": ("native", "all", FREE, "characters", tuple(SPACELESS)),
}
_HOSTILE = {"native": 6.0, "numpy": 8.0}
_ERROR = 1.05
_RECALL = 0.99


def ratios(rows: Rows) -> Ratios:
    """Return how much faster the engine is than the fastest peer.

    The ratios are by race and size. At 2.0 the engine signs two texts while the peer signs one.
    """
    races = {name: race[:5] for name, race in _RACES.items()} | _SHOWN
    found: Ratios = {}
    for name, (engine, outputs, normaliser, shingles, sizes) in races.items():
        found[name] = {}
        for size in ENGLISH if sizes[-1] in ENGLISH else SPACELESS:
            own = [row for row in rows if _is(row, size, {engine}, outputs, "own")]
            others = [row for row in rows if _is(row, size, set(RACED), "sketch", normaliser, shingles)]
            if own and others:
                best = min(float(row["us_per_doc"]) for row in others)
                found[name][size] = round(best / float(own[0]["us_per_doc"]), 3)
    return found


def gates(rows: Rows, hostile: Rows, found: Ratios) -> dict[str, Gate]:
    """Return `value`, `limit` and `ok` of each gate by name.

    `value` and `ok` are None if an engine or a size is missing.
    """
    result = {
        name: at_least((found[name][size] for size in sizes if size in found[name]), limit)
        for name, (*_, sizes, limit) in _RACES.items()
    }
    for engine in IMPLEMENTATIONS:
        for shingles in SHINGLES:
            errors = [_error(rows, name, shingles) for name in (engine, "datasketch")]
            known = [error for error in errors if error is not None]
            share = [known[0] / known[1]] if len(known) == len(errors) else []
            result[f"{engine} error / datasketch, {shingles} shingles"] = at_most(share, _ERROR)
        recalls = {float(row["band_recall"]) for row in rows if row["engine"] == engine}
        result[f"{engine} band recall, 20 shingles"] = at_least(recalls, _RECALL)
        worst = (float(row["ratio"]) for row in hostile if row["engine"] == engine)
        result[f"{engine} hostile / English of equal bytes"] = at_most(worst, _HOSTILE[engine])
    return result


def at_least(values: Iterable[float], limit: float) -> Gate:
    """Compare the smallest value with a lower limit."""
    value = min(values, default=None)
    return {"value": _rounded(value), "limit": limit, "ok": None if value is None else value >= limit}


def at_most(values: Iterable[float], limit: float) -> Gate:
    """Compare the largest value with an upper limit."""
    value = max(values, default=None)
    return {"value": _rounded(value), "limit": limit, "ok": None if value is None else value <= limit}


def failed(found: dict[str, Gate]) -> bool:
    """Return whether any measured gate failed."""
    return any(gate["ok"] is False for gate in found.values())


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _error(rows: Rows, engine: str, shingles: int) -> float | None:
    errors = [float(row["mean_error"][str(shingles)]) for row in rows if row["engine"] == engine]
    return errors[0] if errors else None


def _is(
    row: dict[str, Any], size: str, engines: set[str], outputs: str, normaliser: str, shingles: str = "words"
) -> bool:
    if row["size"] != size or row["engine"] not in engines or row["outputs"] != outputs:
        return False
    return bool(row["normaliser"] == normaliser and row["shingles"] == shingles)
