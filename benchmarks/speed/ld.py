"""Compare the LD signature with figures of its sources: `python -m benchmarks.speed.ld`."""

import argparse
import ctypes
import json
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from benchmarks.speed import gates, ours
from benchmarks.speed.compiled import CompilerAbsentError, library
from benchmarks.speed.estimates import estimate_rows
from benchmarks.speed.measure import Effort, cpu, effort_options, pin, timed
from benchmarks.speed.signing import versions
from benchmarks.texts import digest, texts
from nearstream.streams.fingerprints.ld import ld_signatures
from nearstream.streams.fingerprints.normalize import normalize
from nearstream.streams.fingerprints.parameters import LdRules
from nearstream.streams.fingerprints.shingles import FeatureHasher
from nearstream.streams.signing.scheme import preset

_SIZE = "en-13.5"
_PAPER_MB_PER_S = (104.0, 135.0)
_RATE, _WIDTH = 100, 4  # as in the tests of the paper
_TOGETHER = 4  # texts in one call of numpy, about as many as a signer batches
_ROUNDS = 20  # rounds in C for each call from Python
_OUTPUT_BYTES = 1 << 20

Compress = Callable[[list[bytes]], object]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one JSON object and return the exit code.

    1 means that a gate failed.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed.ld", description=__doc__)
    effort_options(parser)
    effort = Effort.of(parser.parse_args(arguments))
    pin()
    rows, absent = _rows(effort)
    estimates = estimate_rows(effort)
    ratios = _ratios({row["engine"]: float(row["mb_per_s"]) for row in rows}, estimates)
    found = _gates(ratios)
    result = {
        "cpu": cpu(),
        "versions": versions(("numpy", "rapidfuzz")),
        "corpus_digest": digest([_SIZE]),
        "absent": absent,
        "rows": rows,
        "estimates": estimates,
        "ratios": ratios,
        "gates": found,
    }
    print(json.dumps(result, indent=1))
    return int(gates.failed(found))


def native_ld() -> Compress:
    """Return a function that computes LD signatures with the C twin alone.

    Raises:
        ImportError: The C twin was not built.
        CompilerAbsentError: There is no compiler for the C file of the benchmark.
    """
    compiled = library("ld_alone.c")
    compiled.prepare(
        import_module("nearstream.streams.signing.native_backend").packed_context(
            preset("standard", ours.KEY), ours.KEY
        )
    )
    alone = compiled.ld_alone
    alone.restype = ctypes.c_size_t
    out = ctypes.create_string_buffer(_OUTPUT_BYTES)

    def run(forms: list[bytes]) -> list[bytes]:
        return [
            ctypes.string_at(out, alone(form, ctypes.c_size_t(len(form)), out, ctypes.c_size_t(_ROUNDS)))
            for form in forms
        ]

    return run


def numpy_ld() -> Compress:
    """Return a function that computes LD signatures with numpy.

    It takes several normal forms. Its time includes the prefix sums that the signatures need.
    """
    scheme = preset("standard", ours.KEY)
    hasher = FeatureHasher(ours.KEY, scheme.text.word_bytes)
    rules = scheme.ld or LdRules()

    def run(forms: list[bytes]) -> list[bytes]:
        windows = hasher.byte_windows(hasher.joined(forms), rules.window_bytes, ours.KEY.ld_salt)
        return [found.ld for found in ld_signatures(windows, rules.first_rate(len(forms[0])), rules)]

    return run


def seed_compression(name: str) -> Compress:
    """Return one of the two C forms of the paper's additive compression.

    Raises:
        CompilerAbsentError: There is no compiler for the C file of the benchmark.
    """
    function = getattr(library("seed_compression.c"), name)
    function.restype = ctypes.c_size_t
    bits = [hash(total) >> 3 & 1 for total in range(255 * _WIDTH + 1)]
    table = bytes(bit if name == "sum_and_modulus" or total % _RATE == 0 else 2 for total, bit in enumerate(bits))
    out = ctypes.create_string_buffer(_OUTPUT_BYTES)

    numbers = (ctypes.c_uint32(_RATE), ctypes.c_size_t(_WIDTH), table, out, ctypes.c_size_t(_ROUNDS))

    def run(forms: list[bytes]) -> object:
        return [function(form, ctypes.c_size_t(len(form)), *numbers) for form in forms]

    return run


def _rows(effort: Effort) -> tuple[list[dict[str, Any]], dict[str, str]]:
    forms = [normalize(text).data.tobytes() for text in texts(_SIZE)]
    batches = [forms[start : start + _TOGETHER] for start in range(0, len(forms), _TOGETHER)]
    mean_bytes = sum(map(len, forms)) / len(forms)
    makers: dict[str, Callable[[], Compress]] = {
        "native": native_ld,
        "numpy": numpy_ld,
        "source, sum and modulus": lambda: seed_compression("sum_and_modulus"),
        "source, sum and table": lambda: seed_compression("sum_and_table"),
    }
    rows: list[dict[str, Any]] = []
    absent: dict[str, str] = {}
    for engine, maker in makers.items():
        try:
            run = maker()
        except (ImportError, CompilerAbsentError) as error:
            absent[engine] = str(error)
            continue
        timing = timed(run, batches, effort)
        us = timing.us * len(batches) / len(forms) / (1 if engine == "numpy" else _ROUNDS)
        speed = {"us_per_doc": round(us, 2), "mb_per_s": round(mean_bytes / us, 1)}
        rows.append({"size": _SIZE, "engine": engine, **speed, "n": timing.n, "spread": round(timing.spread, 4)})
    return rows, absent


def _ratios(speeds: dict[str, float], estimates: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for engine in ours.IMPLEMENTATIONS:
        others = {name: speed for name, speed in speeds.items() if name not in ours.IMPLEMENTATIONS}
        others |= {f"paper's {speed:.0f} MB/s of 2011": speed for speed in _PAPER_MB_PER_S}
        found[engine] = {name: round(speeds[engine] / other, 3) for name, other in others.items() if engine in speeds}
    for way in ("pairs", "one to many"):
        for kind in ("ours", "source"):
            rows = [row for row in estimates if row["kind"] == kind]
            found[f"estimates, {way}, {kind} / blog"] = {str(row["symbols"]): row[f"{way} / blog"] for row in rows}
    return found


def _gates(ratios: dict[str, dict[str, float]]) -> dict[str, gates.Gate]:
    slowest = f"paper's {_PAPER_MB_PER_S[1]:.0f} MB/s of 2011"
    known = {engine: [ratios[engine][slowest]] if ratios[engine] else [] for engine in ours.IMPLEMENTATIONS}
    same_core = [value for name, value in ratios["native"].items() if name == "source, sum and modulus"]
    return {
        "native LD / source's sum and modulus in C, same core": gates.at_least(same_core, 1.25),
        "native LD / paper's 135 MB/s": gates.at_least(known["native"], 7.0),
        "numpy LD / paper's 135 MB/s": gates.at_least(known["numpy"], 1.5),
        "estimates, pairs / blog": gates.at_least(ratios["estimates, pairs, source / blog"].values(), 15.0),
        "estimates, one to many / blog": gates.at_least(ratios["estimates, one to many, source / blog"].values(), 30.0),
    }


if __name__ == "__main__":
    sys.exit(main())
