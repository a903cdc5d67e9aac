"""Race signing against other libraries: `python -m benchmarks.speed.signing [--engines ...] [--sizes ...]`."""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata
from typing import Any

from benchmarks.speed import gates
from benchmarks.speed.measure import Effort, cpu, effort_options, positive
from benchmarks.speed.race import ENGINES, HOSTILE, race
from benchmarks.texts import ROOT, SIZES, digest

_PACKAGES = ("numpy", "mmh3", "datasketch", "rensa", "FastSketchLSH")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one JSON object and return the exit code.

    1 means that a gate failed.
    """
    options = _options(arguments)
    if options.alone:
        _print(race(options.engines[0], options.sizes, Effort.of(options), options.trials))
        return 0
    results = {engine: _in_own_process(engine, options) for engine in options.engines}
    rows = [row for result in results.values() for row in result.get("rows", ())]
    hostile = [row for result in results.values() for row in result.get("hostile", ())]
    ratios = gates.ratios(rows)
    found = gates.gates(rows, hostile, ratios)
    _print(
        {
            "cpu": cpu(),
            "versions": versions(_PACKAGES),
            "corpus_digest": digest([size for size in options.sizes if size != HOSTILE]),
            "absent": {engine: result["absent"] for engine, result in results.items() if "absent" in result},
            "rows": rows,
            "latency": [row for result in results.values() for row in result.get("latency", ())],
            "hostile": hostile,
            "ratios": ratios,
            "gates": found,
        }
    )
    return int(gates.failed(found))


def versions(packages: Sequence[str]) -> dict[str, str | None]:
    """Return the versions of packages by name, None if not installed."""
    found: dict[str, str | None] = {"python": sys.version.split()[0]}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = None
    return found


def _in_own_process(engine: str, options: argparse.Namespace) -> dict[str, Any]:
    command = [
        sys.executable,
        "-m",
        "benchmarks.speed.signing",
        "--alone",
        "--engines",
        engine,
        "--sizes",
        *options.sizes,
    ]
    command += ["--repeats", str(options.repeats), "--shortest-ms", str(options.shortest_ms)]
    command += ["--trials", str(options.trials)]
    environment = os.environ | {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        return {"absent": f"failed: {done.stderr.strip().splitlines()[-1]}"}
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed.signing", description=__doc__)
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--sizes", nargs="+", choices=(*SIZES, HOSTILE), default=[*SIZES, HOSTILE])
    effort_options(parser)
    parser.add_argument("--trials", type=positive, default=3_000, help="pairs for each number of shingles")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def _print(result: dict[str, Any]) -> None:
    print(json.dumps(result, ensure_ascii=False, indent=1))


if __name__ == "__main__":
    sys.exit(main())
