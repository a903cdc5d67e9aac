"""The benchmark of mail makes personalised copies, and counts what it says."""

import json
import random
from pathlib import Path

import pytest

from benchmarks.mail.__main__ import main, true_resemblance
from benchmarks.mail.personal import personalised

PAIRS = Path(__file__).parents[1] / "data" / "pairs"
TEXT = "See https://a.example/x for more. " + " ".join(f"word{number}" for number in range(130))


def test_two_personalised_copies_differ_in_little() -> None:
    draw = random.Random(1)
    first, second = (personalised(TEXT, draw) for _ in range(2))
    assert first != second
    assert 0.7 < true_resemblance(first, second) < 1
    assert first.count("?id=") == 1
    assert first.startswith("Dear ")


def test_true_resemblance_is_that_of_three_word_shingles() -> None:
    assert true_resemblance("a b c d", "A, b, c; d") == 1
    assert true_resemblance("a b c d", "a b c e") == pytest.approx(1 / 3)
    assert true_resemblance("a b", "a b") == 0


def test_the_benchmark_prints_figures_of_each_scheme(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--corpus", str(PAIRS), "--spam", "", "--ham", "", "--spams", "10", "--stream", "60"]
    assert main([*options, "--scheme", "mail"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["personalised"] == {"pairs": 10, "resemblance >= 0.8": 1.0, "found as copies": 1.0}
    ham = found["ham"]
    assert ham["pairs"] == ham["mails"] * (ham["mails"] - 1) // 2
    assert found["stream"]["mails"] == 60
    assert found["time"]["masking over finding words"] > 0


def test_a_missing_corpus_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["--corpus", str(tmp_path)]) == 2
    assert str(tmp_path) in capsys.readouterr().err
