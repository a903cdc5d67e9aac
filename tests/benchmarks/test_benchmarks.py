"""Each benchmark runs once on few documents, and prints its figures."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks import capacity, keeping, novelty
from benchmarks.crawl import site
from benchmarks.families import __main__ as families
from benchmarks.judgement import __main__ as judgement
from benchmarks.mail import __main__ as mail
from benchmarks.quality import accuracy, confidence, few_edits, frames, retrieval, short_texts
from benchmarks.speed.ours import NAME

ROOT = Path(__file__).parents[2]
PAIRS = ROOT / "tests" / "data" / "pairs"
CORPUS = ["--corpus", str(PAIRS)]
Command = Callable[[list[str]], int]
# By name: the command, its options, and a figure that it prints.
COMMANDS: dict[str, tuple[Command, list[str], str]] = {
    "accuracy": (accuracy.main, CORPUS, "coverage"),
    "short texts": (short_texts.main, [*CORPUS, "--words", "20"], "by_words"),
    "few edits": (few_edits.main, ["--pairs", "1"], "one character"),
    "mail": (
        mail.main,
        [*CORPUS, "--spam", "", "--ham", "", "--spams", "3", "--stream", "10", "--scheme", "mail"],
        "ham",
    ),
    "families": (families.main, [*CORPUS, "--seeds", "1", "2", "--most", "10", "--json"], "agreement"),
    "capacity": (capacity.main, ["--documents", "20", "--kind", "mail", "--json"], "found"),
    "keeping": (keeping.main, [str(ROOT / "examples" / "documents.jsonl")], "nearstream"),
    "crawl": (site.main, ["--pages", "9", "--every", "48", "--json"], "worst_kinds"),
}


def printed(command: Command, options: list[str], capsys: pytest.CaptureFixture[str]) -> Any:  # noqa: ANN401 - JSON
    assert command(options) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_benchmark_prints_its_figures(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    command, options, figure = COMMANDS[name]
    assert figure in printed(command, options, capsys)


def test_every_related_pair_is_connected_and_confidence_is_judged(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    events = str(tmp_path / "events.jsonl")
    found = printed(retrieval.main, [*CORPUS, "--events", events, "--why"], capsys)
    assert found["strata"]["all"]["connected"] == 1.0
    judged = printed(confidence.main, [*CORPUS, "--events", events, "--most", "5"], capsys)
    assert judged["near_duplicate"]["related"] == 1


def test_figures_are_equal_in_memory_and_through_redis(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--json", "--pairs", "3", "--case", "9", "14", "--through"]
    rows = [printed(judgement.main, [*options, place], capsys) for place in ("memory", "redis")]
    for row in (row for each in rows for row in each):
        del row["ms_per_document"]
    assert rows[0] == rows[1]


def test_what_is_new_is_measured(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(novelty, "_SIZES", (1_000,))
    monkeypatch.setattr(novelty, "STREAMED", 10)
    found = printed(novelty.main, [*CORPUS, "--documents", "10", "--pairs", "3"], capsys)
    assert (found["sentences"]["redundant"], found["stream"]["redundant_with_new_text"]) == (0, 0)


def test_frames_are_measured(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "STREAMS", {"newsletters": frames.newsletters})
    assert printed(frames.main, [], capsys)["streams"]["newsletters"]["documents"] == 60


@pytest.mark.parametrize(
    "command",
    [
        ("benchmarks.index", "--documents", "64", "--stream", "mail"),
        ("benchmarks.speed.comparing", *CORPUS, "--documents", "9", "--least", "1", "--repeats", "1"),
        ("benchmarks.speed.signing", "--engines", NAME, "--sizes", "en-1", "--repeats", "1", "--trials", "9"),
        pytest.param(("benchmarks.scale", "--documents", "96", "--slots", "2"), marks=pytest.mark.foreign),
        pytest.param(
            ("benchmarks.check", "--documents", "20", "--rate", "5", "--seconds", "2"), marks=pytest.mark.foreign
        ),
    ],
    ids=lambda command: command[0],
)
def test_a_benchmark_with_processes_of_its_own_runs(command: tuple[str, ...]) -> None:
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr  # 1: a gate is missed, on a busy machine
    assert json.loads(done.stdout)
