"""Gates: limits that the figures of a run must meet."""

from collections.abc import Iterable
from typing import Any

from benchmarks.speed.ours import NAME
from benchmarks.speed.peers import RACED
from benchmarks.speed.resemblance import SHINGLES
from benchmarks.texts import ENGLISH, SPACELESS

Rows = list[dict[str, Any]]  # Any: JSON
Gate = dict[str, Any]
Ratios = dict[str, dict[str, float]]

FREE, USUAL = "ours, free", "usual"

# By name: normaliser of the peers, their shingles, sizes, smallest ratio that passes.
_RACES = {
    "best peer, our normaliser free": (FREE, "words", tuple(ENGLISH), 3.5),
    "best peer, usual normaliser": (USUAL, "words", tuple(ENGLISH), 5.0),
    "best peer, CJK, words": (USUAL, "words", tuple(SPACELESS), 2.5),
    "best peer, CJK, characters": (USUAL, "characters", tuple(SPACELESS), 3.2),
}
_HOSTILE = 6.0
_ERROR = 1.05
_RECALL = 0.99


def ratios(rows: Rows) -> Ratios:
    """Return how much faster the engine is than the fastest peer.

    The ratios are by race and size. At 2.0 the engine signs two texts while the peer signs one.
    """
    found: Ratios = {}
    for name, (normaliser, shingles, sizes, _) in _RACES.items():
        found[name] = {}
        for size in sizes:
            own = [row for row in rows if row["size"] == size and row["engine"] == NAME]
            others = [row for row in rows if _is_peer(row, size, normaliser, shingles)]
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
    for shingles in SHINGLES:
        errors = [_error(rows, name, shingles) for name in (NAME, "datasketch")]
        known = [error for error in errors if error is not None]
        share = [known[0] / known[1]] if len(known) == len(errors) else []
        result[f"error / datasketch, {shingles} shingles"] = at_most(share, _ERROR)
    recalls = {float(row["band_recall"]) for row in rows if row["engine"] == NAME}
    result["band recall, 20 shingles"] = at_least(recalls, _RECALL)
    result["hostile / English of equal bytes"] = at_most((float(row["ratio"]) for row in hostile), _HOSTILE)
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


def _is_peer(row: dict[str, Any], size: str, normaliser: str, shingles: str) -> bool:
    if row["engine"] not in RACED:
        return False
    return bool((row["size"], row["normaliser"], row["shingles"]) == (size, normaliser, shingles))
