"""Print Markdown tables from the JSON of runs: `python -m benchmarks.tables FILE...`."""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.texts import ENGLISH, SPACELESS

Run = dict[str, Any]  # Any: JSON
_VERDICTS = {True: "ok", False: "missed", None: "not measured"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one table for each kind of result.

    Where runs differ, a cell has the smallest and the largest value.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tables", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, help="JSON output of benchmarks.speed.signing or .ld")
    files = parser.parse_args(arguments).files
    runs: list[Run] = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    signing = [run for run in runs if "hostile" in run]
    ld = [run for run in runs if "estimates" in run]
    tables = [*(_signing(signing) if signing else ()), *(_ld(ld) if ld else ()), _gates(runs)]
    print("\n\n".join(tables))
    return 0


def _signing(runs: list[Run]) -> list[str]:
    sizes = (*ENGLISH, *SPACELESS)
    names = {name: None for run in runs for name in run["ratios"]}
    ratios = [
        [name, *(_range(run["ratios"].get(name, {}).get(size) for run in runs) for size in sizes)] for name in names
    ]
    kinds = {_kind(row): None for run in runs for row in run["rows"] if row["us_per_doc"]}
    times = [[kind, *(_range(_us(runs, kind, size), 0) for size in sizes)] for kind in kinds]
    engines = {row["engine"]: row for row in runs[0]["rows"]}
    accuracy = [
        [name, *(f"{error:.4f}" for error in row["mean_error"].values()), f"{row['band_recall']:.4f}"]
        for name, row in engines.items()
    ]
    hostile = _by(runs, "hostile", lambda row: (row["text"], row["engine"]))
    harmful = [
        [text, engine, _range(row["ratio"] for row in rows), _range(row["ratio_as_sent"] for row in rows)]
        for (text, engine), rows in hostile.items()
    ]
    calls = _by(runs, "latency", lambda row: row["engine"])
    waits = [
        [name, *(_range((row[key] for row in rows), 0) for key in ("p50_us", "p99_us"))] for name, rows in calls.items()
    ]
    return [
        _table(["ratio", *sizes], ratios),
        _table(["microseconds a text", *sizes], times),
        _table(["engine", "20", "50", "200", "2,000 shingles", "band recall"], accuracy),
        _table(["one text of 10 KB, microseconds", "p50", "p99"], waits),
        _table(["text", "engine", "x English of equal bytes", "x English of the bytes sent"], harmful),
    ]


def _ld(runs: list[Run]) -> list[str]:
    speeds = _by(runs, "rows", lambda row: row["engine"])
    rows = [[engine, _range((row["mb_per_s"] for row in found), 0)] for engine, found in speeds.items()]
    others = {other: None for run in runs for engine in ("native", "numpy") for other in run["ratios"][engine]}
    ratios = [
        [other, *(_range(run["ratios"][engine].get(other) for run in runs) for engine in ("native", "numpy"))]
        for other in others
    ]
    estimates = _by(runs, "estimates", lambda row: (row["kind"], row["characters"], row["symbols"], row["blog"]))
    keys = ("pairs", "one to many", "pairs / blog", "one to many / blog")
    counts = [
        [
            *(kind, *map(_thousands, numbers)),
            *(_range((row[key] for row in found), 1 if "/" in key else 0) for key in keys),
        ]
        for (kind, *numbers), found in estimates.items()
    ]
    return [
        _table(["LD alone", "MB/s"], rows),
        _table(["ratio over", "native", "numpy"], ratios),
        _table(["symbols", "characters", "their number", "blog, a second", *keys], counts),
    ]


def _gates(runs: list[Run]) -> str:
    names = {name: gate["limit"] for run in runs for name, gate in run["gates"].items()}
    rows = []
    for name, limit in names.items():
        found = [run["gates"][name] for run in runs if name in run["gates"]]
        verdicts = sorted({_VERDICTS[gate["ok"]] for gate in found})
        rows.append([name, _range(gate["value"] for gate in found), str(limit), " or ".join(verdicts)])
    return _table(["gate", "value", "limit", ""], rows)


def _kind(row: dict[str, Any]) -> str:
    if row["normaliser"] == "own":
        return f"{row['engine']}, {row['outputs']}"
    return f"{row['engine']}, {row['shingles']}, normaliser {row['normaliser']}"


def _us(runs: list[Run], kind: str, size: str) -> list[float]:
    return [row["us_per_doc"] for run in runs for row in run["rows"] if row["size"] == size and _kind(row) == kind]


def _by(runs: list[Run], part: str, key: Callable[[dict[str, Any]], Any]) -> dict[Any, list[dict[str, Any]]]:
    found: dict[Any, list[dict[str, Any]]] = {}
    for run in runs:
        for row in run[part]:
            found.setdefault(key(row), []).append(row)
    return found


def _range(values: Iterable[float | None], digits: int = 2) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return ""
    low, high = f"{min(known):,.{digits}f}", f"{max(known):,.{digits}f}"
    return low if low == high else f"{low}-{high}"


def _thousands(value: int) -> str:
    return f"{value:,}"


def _table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows])


if __name__ == "__main__":
    sys.exit(main())
