"""Measure the speed and accuracy of one engine in its own process."""

from dataclasses import asdict
from importlib.util import find_spec
from typing import Any

from benchmarks.speed import ours, peers
from benchmarks.speed.hostile import LARGEST, hostile_rows
from benchmarks.speed.measure import Effort, percentiles, pin, timed
from benchmarks.speed.resemblance import accuracy, of_ours, of_peer
from benchmarks.texts import SPACELESS, english, texts

HOSTILE = "hostile"
_LATENCY_CHARACTERS = 10_000
PEER_MODULES = {"datasketch": "datasketch", "rensa": "rensa", "fastsketchlsh": "FastSketchLSH", "rensa-rho": "rensa"}
ENGINES = (ours.NAME, *peers.RACED, *peers.UNRACED)


def race(engine: str, sizes: list[str], effort: Effort, trials: int) -> dict[str, Any]:
    """Measure one engine and pin this process to one core.

    Returns:
        `rows`, `latency` and `hostile` of the engine, or `absent` with the reason.
    """
    reason = _absence(engine)
    if reason:
        return {"absent": reason}
    pin()
    quality = _quality(engine, trials)
    if engine in peers.UNRACED:
        return {"rows": [_unraced(engine, quality)]}
    rows = [row | quality for size in sizes if size != HOSTILE for row in _rows(engine, size, effort)]
    result: dict[str, Any] = {"rows": rows}
    if engine == ours.NAME:
        p50, p99 = percentiles(ours.signer(), ours.document(english(_LATENCY_CHARACTERS)), 100 * effort.repeats)
        result["latency"] = [{"engine": engine, "p50_us": round(p50, 1), "p99_us": round(p99, 1)}]
    if engine == ours.NAME and HOSTILE in sizes:
        result["hostile"] = hostile_rows(LARGEST, effort)
    return result


def _absence(engine: str) -> str | None:
    module = PEER_MODULES.get(engine)
    if module and find_spec(module) is None:
        return f"no module {module}: pip install 'nearstream[bench]'"
    return None


def _quality(engine: str, trials: int) -> dict[str, Any]:
    if engine == ours.NAME:
        return asdict(accuracy(of_ours(), trials))
    return asdict(accuracy(of_peer((peers.RACED | peers.UNRACED)[engine]()), trials))


def _rows(engine: str, size: str, effort: Effort) -> list[dict[str, Any]]:
    raced = [ours.entrant()] if engine == ours.NAME else peers.entrants(peers.RACED[engine]())
    corpus = texts(size)
    mean_bytes = sum(len(text.encode()) for text in corpus) / len(corpus)
    rows = []
    for entrant in raced:
        if entrant.shingles == "characters" and size not in SPACELESS:
            continue
        items = entrant.prepare(corpus)
        timing = timed(entrant.run, items, effort)
        us = timing.us * len(items) / len(corpus)
        rows.append(
            {
                "size": size,
                "engine": engine,
                "outputs": entrant.outputs,
                "normaliser": entrant.normaliser,
                "shingles": entrant.shingles,
                "us_per_doc": round(us, 2),
                "mb_per_s": round(mean_bytes / us, 2),
                "n": timing.n,
                "spread": round(timing.spread, 4),
            }
        )
    return rows


def _unraced(engine: str, quality: dict[str, Any]) -> dict[str, Any]:
    return {"size": None, "engine": engine, "outputs": "sketch", "us_per_doc": None, "mb_per_s": None, **quality}
