"""`tune`: bands and rows for a promise, and the promise on texts."""

import json
from pathlib import Path
from random import Random

import pytest

from nearstream.workers.cli.demo import EXAMPLES
from nearstream.workers.cli.main import main

WORDS = sorted({word for row in map(json.loads, (EXAMPLES / "documents.jsonl").open()) for word in row["text"].split()})
WORDS = [word for word in WORDS if word.isalpha() and word.isascii()]
PAIRS = 400


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert main(["tune", "--json", "--quiet", *arguments]) == 0
    answer: dict[str, object] = json.loads(capsys.readouterr().out)
    return answer


@pytest.mark.parametrize(
    ("resemblance", "recall", "bands", "rows", "at_30", "at_50", "at_asked"),
    [
        ("0.5", "0.95", 23, 3, 0.467, 0.954, 0.954),
        ("0.6", "0.95", 22, 4, 0.164, 0.758, 0.953),
        ("0.7", "0.99", 17, 4, 0.129, 0.666, 0.991),
        ("0.8", "0.95", 13, 7, 0.003, 0.097, 0.953),
        ("0.8", "0.99", 16, 6, 0.012, 0.223, 0.992),
        ("0.9", "0.999", 13, 8, 0.001, 0.050, 0.9993),
    ],
)
def test_the_most_selective_bands_that_keep_the_promise_are_chosen(
    resemblance: str,
    recall: str,
    bands: int,
    rows: int,
    at_30: float,
    at_50: float,
    at_asked: float,
    capsys: pytest.CaptureFixture[str],
) -> None:
    answer = told(capsys, "--resemblance", resemblance, "--recall", recall)
    assert (answer["bands"], answer["rows"]) == (bands, rows)
    curve = answer["curve"]
    assert isinstance(curve, dict)
    assert (curve["0.3"], curve["0.5"]) == (pytest.approx(at_30, abs=0.0006), pytest.approx(at_50, abs=0.0006))
    assert answer["chance"] == pytest.approx(at_asked, abs=0.0005)
    assert answer["settings"] == {"NEARSTREAM_BANDS": bands, "NEARSTREAM_ROWS": rows}


def test_the_promise_holds_on_texts_of_barely_this_resemblance(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of 300 words each shingle of 5 is lost where one of its words is replaced, at places that are far apart."""
    random, path = Random(7), tmp_path / "documents.jsonl"
    with path.open("w") as file:
        for number in range(PAIRS):
            text = random.choices(WORDS, k=300)
            copy = list(text)
            for place in range(10, 290, 47):
                copy[place] = f"{random.choice(WORDS)}{number}"
            for name, words in (("text", text), ("copy", copy)):
                file.write(json.dumps({"id": f"{name}-{number}", "text": " ".join(words)}) + "\n")
    found = told(capsys, "--resemblance", "0.8", "--recall", "0.9", "--sample", str(path))["sample"]
    assert isinstance(found, dict)
    assert found["documents"] == 2 * PAIRS
    assert found["barely"] == found["similar"] == PAIRS
    assert found["barely_expected"] / PAIRS > 0.9
    assert abs(found["barely_met"] - found["barely_expected"]) / PAIRS < 0.03
    assert found["interval"][0] < found["barely_met"] / PAIRS < found["interval"][1]


def test_the_lines_say_what_is_promised_and_what_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", "--documents", "1000"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [
        "bands x rows  16 x 6, 96 of 128 slots",
        "promise       0.9923 at resemblance 0.8, 0.99 asked",
    ]
    assert "  0.5         0.2227  #########" in lines
    assert "candidates    false ones: unknown without --sample" in lines
    assert "settings      NEARSTREAM_BANDS=16 NEARSTREAM_ROWS=6" in lines
    assert any("a common passage of 39 words always shares one" in line for line in lines)
    assert any(line.startswith("not promised  containment") for line in lines)
    assert any(line.startswith("memory") and line.endswith("for 1000 documents") for line in lines)


@pytest.mark.parametrize("arguments", [["--resemblance", "0.01"], ["--recall", "1"], ["--resemblance", "2"]])
def test_a_promise_that_no_bands_can_keep_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code: object = main(["tune", *arguments])
    except SystemExit as ended:
        code = ended.code
    assert code == 2
    assert capsys.readouterr().out == ""


def test_a_sample_without_documents_is_unreadable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", "--quiet", "--sample", str(tmp_path / "none.jsonl")]) == 65
    assert "holds no document with words" in capsys.readouterr().err
