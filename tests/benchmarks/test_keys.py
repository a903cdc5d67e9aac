"""The benchmark of hash keys says how often another key would decide otherwise."""

import json

import pytest

from benchmarks.quality import keys


def test_every_window_of_short_texts_leaves_less_to_the_key(capsys: pytest.CaptureFixture[str]) -> None:
    assert keys.main(["--keys", "3", "--scheme", "letters", "fine"]) == 0
    true, letters, fine = map(json.loads, capsys.readouterr().out.splitlines())
    assert 0.03 < true["true distance over the longer text"]["template"] < 0.1
    assert fine["not as most keys"]["template"] < 0.05 < letters["not as most keys"]["template"]
    assert fine["bytes"] > letters["bytes"]
