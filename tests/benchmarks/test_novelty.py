"""The benchmark of novelty, on a few public-domain texts."""

import json
from pathlib import Path

import pytest

from benchmarks import novelty

PAIRS = Path(__file__).parents[1] / "data" / "pairs"


def test_runs_that_were_seen_are_not_new() -> None:
    runs = novelty.Runs()
    text = [f"word{at}" for at in range(20)]
    assert runs.new(text) == sum(len(word) + 1 for word in text)
    assert runs.new(text) == 0
    assert runs.new([*text[:10], "another", *text[10:]]) == len("another") + 1
    assert runs.new([*text[:7], "other"]) == sum(len(word) + 1 for word in [*text[:7], "other"])


def test_the_command_prints_what_is_new(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(vars(novelty.telling), "novelty_of", novelty.novelty_of)  # the command replaces it
    monkeypatch.setattr(novelty, "_SIZES", (1_000, 4_000))
    monkeypatch.setattr(novelty, "STREAMED", 60)
    assert novelty.main(["--corpus", str(PAIRS), "--documents", "40", "--pairs", "10"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["stream"]["error"] <= 0.03
    assert (told["sentences"]["redundant"], told["stream"]["redundant_with_new_text"]) == (0, 0)
    assert told["sentences"]["place_off"] <= 40
    assert all(told[name]["redundant_with_new_text"] == 0 for name in novelty.STREAMS)
    assert told["pairs"]["error"] <= 0.03
    assert told["copies"]["redundant"] >= 0.9
    assert novelty.main(["--corpus", "/nowhere"]) == 2
