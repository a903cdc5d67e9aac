"""Each quality benchmark gives equal figures in memory and through Redis."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks import novelty
from benchmarks.cjk import __main__ as spaceless
from benchmarks.families import __main__ as of_families
from benchmarks.families import labelled
from benchmarks.judgement import __main__ as of_judgement
from benchmarks.quality import accuracy, retrieval
from benchmarks.storing import PLACES

PAIRS = ["--corpus", str(Path(__file__).parents[1] / "data" / "pairs")]
TIMES = ("second", "ms", "cpu", "speed", "time")
COMMANDS: dict[str, tuple[Callable[[list[str]], int], list[str]]] = {
    "accuracy": (accuracy.main, PAIRS),
    "judgement": (of_judgement.main, ["--json", "--pairs", "3", "--case", "9", "10", "14"]),
    "spaceless": (spaceless.main, ["--json", "--pairs", "1", "--lengths", "500"]),
    "novelty": (novelty.main, [*PAIRS, "--documents", "20", "--pairs", "3"]),
    "retrieval": (retrieval.main, PAIRS),
    "families": (of_families.main, [*PAIRS, "--seeds", "1", "--most", "30", "--json"]),
}


def without_times(told: Any) -> Any:  # noqa: ANN401 - a tree of JSON
    if isinstance(told, list):
        return [without_times(each) for each in told]
    if isinstance(told, dict):
        kept = {name: each for name, each in told.items() if not any(part in name for part in TIMES)}
        return {name: without_times(each) for name, each in kept.items()}
    return told


@pytest.mark.parametrize("name", COMMANDS)
def test_figures_are_equal_in_memory_and_through_redis(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(novelty, "_SIZES", (1_000,))
    monkeypatch.setattr(novelty, "STREAMED", 60)
    monkeypatch.setattr(labelled, "CHOICES", (1,))
    command, options = COMMANDS[name]
    found = []
    for place in PLACES:
        assert command([*options, "--through", place]) == 0
        found.append(without_times(json.loads(capsys.readouterr().out)))
    assert found[0] == found[1]
