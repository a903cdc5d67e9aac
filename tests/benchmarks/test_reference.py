"""The methods of the sources give the figures that these print, errors of theirs included."""

import ast
import json
import math
import random
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from rapidfuzz.distance import Levenshtein

from benchmarks.reference.ld_compression import (
    compress_to_bits,
    compress_to_symbols,
    residual,
    scaled_distance,
    window_sums,
)

EXAMPLES = Path(__file__).parents[2] / "examples/documents.jsonl"

# Blog, section "How well does it work?", second table, at C = 100: lengths, signature lengths, distance of the
# signatures, true distance, estimate, error over the longer text, residual. Two errors are printed shorter or rounded.
ACCURACY = [
    ((27_478, 23_932), (366, 419), 366, 20_706, 24_002, 0.1200, 0.855),
    ((27_620, 27_620), (305, 305), 0, 0, 0, 0.0, 0.0),
    ((4_865, 2_404), (34, 61), 27, 2_461, 2_153, 0.0632, 0.0),
    ((4_865, 2_474), (27, 61), 34, 2_391, 2_711, 0.0659, 0.0),
    ((4_865, 4_801), (59, 61), 3, 64, 239, 0.0360, 0.017),
]


@cache
def texts() -> list[str]:
    documents = [json.loads(line) for line in EXAMPLES.read_text(encoding="utf-8").splitlines()]
    return [document["text"] for document in sorted(documents, key=lambda document: str(document["id"]))]


@cache
def speeches() -> list[str]:
    """Return the first 13,508 characters of speeches, the length of the paper's text."""
    documents = [json.loads(line) for line in EXAMPLES.read_text(encoding="utf-8").splitlines()]
    long = [entry for entry in documents if entry["labels"]["kind"] == "speech" and len(entry["text"]) >= 13_508]
    return [entry["text"][:13_508] for entry in sorted(long, key=lambda entry: str(entry["id"]))]


def estimate(one: str, other: str, rate: int, neighbourhood: int) -> float:
    signatures = [compress_to_bits(text.encode(), rate=rate, neighbourhood=neighbourhood) for text in (one, other)]
    distance = Levenshtein.distance(signatures[0].tobytes(), signatures[1].tobytes())
    return scaled_distance(distance, (len(one), len(other)), (signatures[0].size, signatures[1].size))


def test_a_fixed_text_has_a_fixed_signature() -> None:
    text = "It was the best of times, it was the worst of times, it was the age of wisdom"
    assert compress_to_symbols(text, rate=5, neighbourhood=12) == "IpK8shriO8s3"
    assert "".join(map(str, compress_to_bits(text.encode(), rate=5, neighbourhood=4))) == "1001010001001"


def test_rate_100_leaves_31_symbols_and_rate_310_one() -> None:
    text = "".join(texts())[:200_000]
    found = {rate: len(set(compress_to_symbols(text, rate=rate, neighbourhood=12))) for rate in (25, 31, 62, 100, 310)}
    assert found == {25: 62, 31: 2, 62: 1, 100: 31, 310: 1}
    assert found == {rate: 62 // math.gcd(rate, 62) for rate in found}


@pytest.mark.parametrize(("lengths", "signatures", "distance", "true", "estimated", "error", "left"), ACCURACY)
def test_the_blogs_table_follows_from_the_ratio_of_lengths(
    lengths: tuple[int, int],
    signatures: tuple[int, int],
    distance: int,
    true: int,
    estimated: int,
    error: float,
    left: float,
) -> None:
    assert int(scaled_distance(distance, lengths, signatures)) == pytest.approx(estimated, abs=1)
    assert abs(scaled_distance(distance, lengths, signatures) - true) / max(lengths) == pytest.approx(error, abs=1e-4)
    assert residual(distance, signatures) == pytest.approx(left, abs=5e-4)


def test_an_additive_hash_cannot_see_anagrams() -> None:
    assert window_sums(b"abcd", 4) == window_sums(b"dcba", 4)
    assert window_sums(b"ac", 2) == window_sums(b"bb", 2)


def test_bits_overestimate_few_substitutions_and_fall_short_at_many() -> None:
    errors = [np.mean([substitution_error(text, percent) for text in speeches()[:10]]) for percent in (5, 20, 30)]
    assert errors[0] > 0.02 > errors[1] > errors[2]
    assert errors[2] < -0.02


def substitution_error(text: str, percent: int) -> float:
    """Return the signed error of the estimate at C = 50, N = 4.

    It is divided by the paper's distance of unrelated texts.
    """
    rng = random.Random(percent)
    changed = list(text)
    for place in rng.sample(range(len(text)), len(text) * percent // 100):
        changed[place] = chr(rng.randint(32, 126))
    other = "".join(changed)
    return (estimate(text, other, 50, 4) - Levenshtein.distance(text, other)) / 12_430


@pytest.mark.parametrize("blocks", [1, 5, 10])
def test_inserted_blocks_come_out_near_the_truth(blocks: int) -> None:
    rng = random.Random(blocks)
    estimates = []
    for text, other in pairwise(speeches()[:11]):
        grown = text
        for _ in range(blocks):
            at, start = rng.randrange(len(grown)), rng.randrange(10_000)
            grown = grown[:at] + other[start : start + 500] + grown[at:]
        estimates.append(estimate(text, grown, 50, 4))
    assert np.mean(estimates) == pytest.approx(500 * blocks, rel=0.35)


def test_the_reference_rests_on_nothing_that_it_shall_judge() -> None:
    for room in (EXAMPLES.parents[1] / "benchmarks/reference").glob("*.py"):
        for node in ast.walk(ast.parse(room.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                ours = name.split(".")[0] == "nearstream"
                assert not ours or name.startswith(
                    ("benchmarks.reference", "nearstream.streams.fingerprints.normalize")
                ), f"{room}: {name}"
