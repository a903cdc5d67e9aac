"""Each benchmark runs once on few documents, and prints its figures."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rapidfuzz.distance import Levenshtein

from benchmarks import capacity, keeping, novelty
from benchmarks.crawl import site
from benchmarks.families import __main__ as families
from benchmarks.judgement import __main__ as judgement
from benchmarks.mail import __main__ as mail
from benchmarks.mail.day import clones, ham, waves
from benchmarks.mail.languages import LANGUAGES
from benchmarks.mail.reach import said
from benchmarks.quality import accuracy, confidence, few_edits, frames, retrieval, short_texts
from benchmarks.quality.corpus import read_pairs, read_texts, shingles, words
from benchmarks.quality.labels import Measured, label
from benchmarks.speed import gates
from benchmarks.speed.ours import NAME
from benchmarks.stream.figures import interval
from benchmarks.stream.loops import STAGES
from benchmarks.stream.prose import Prose, sources
from benchmarks.stream.texts import STREAMS

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


def test_made_up_mail_has_waves_and_ham_of_many_kinds_in_six_languages() -> None:
    made = [*waves(1, 2), *clones(1, 2), list(ham(1, 2))]
    assert len({wave[0].kind for wave in made[:-1]}) >= 28
    assert len({mail.kind for mail in made[-1]}) >= 20
    assert len(LANGUAGES) == 6
    assert len({mail.id for mails in made for mail in mails}) == sum(map(len, made))
    assert said({"verdict": "none", "contains": {"labels": {"spam": 1}}, "attachments": None}) == "contains"


def printed(command: Command, options: list[str], capsys: pytest.CaptureFixture[str]) -> Any:  # noqa: ANN401 - JSON
    assert command(options) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_benchmark_prints_its_figures(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    command, options, figure = COMMANDS[name]
    assert figure in printed(command, options, capsys)


def test_accuracy_on_public_texts_is_what_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    figures = printed(accuracy.main, CORPUS, capsys)["all"]
    assert figures["accuracy"] >= 0.85
    assert (figures["related_recall"], figures["near_duplicate_recall"]) == (1.0, 1.0)
    assert figures["distance_mae"] <= 0.05


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
    monkeypatch.setitem(vars(novelty.telling), "novelty_of", novelty.novelty_of)  # the command replaces it
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


@pytest.mark.parametrize("stream", STREAMS)
def test_a_seed_makes_the_documents_of_a_stream(stream: str) -> None:
    first, again, other = (STREAMS[stream](Prose(sources(None), seed), 30, seed) for seed in (1, 1, 2))
    assert first == again != other
    assert len(first) == 30


def test_every_stage_of_a_worker_exists_in_the_product() -> None:
    for owner, name, _ in STAGES:
        assert hasattr(owner, name), f"{owner} has no {name}"


def test_rounds_are_enough_when_the_interval_of_their_ratio_is_narrow() -> None:
    def runs(*rates: float) -> list[dict[str, Any]]:
        return [{"documents_per_second": rate} for rate in rates]

    assert interval(runs(900), runs(100)) == 1
    assert interval(runs(900, 900, 900), runs(100, 100, 100)) == 0


def test_a_ratio_is_over_the_fastest_peer_and_a_missed_gate_fails() -> None:
    kept = {"size": "en-5", "shingles": "words", "mean_error": {}, "band_recall": 1.0}
    rows = [
        {"engine": NAME, "us_per_doc": 100.0, "outputs": "all", "normaliser": "own", **kept},
        {"engine": "datasketch", "us_per_doc": 500.0, "outputs": "sketch", "normaliser": "usual", **kept},
        {"engine": "rensa", "us_per_doc": 300.0, "outputs": "sketch", "normaliser": "usual", **kept},
    ]
    ratios = gates.ratios(rows)
    assert ratios["best peer, usual normaliser"] == {"en-5": 3.0}
    assert gates.at_least([2.0], 3.0) == {"value": 2.0, "limit": 3.0, "ok": False}
    assert gates.failed({"race": gates.at_least([2.0], 3.0)})


def test_the_measurements_of_each_labelled_pair_are_those_of_its_texts() -> None:
    texts = {name: text.text for name, text in read_texts(PAIRS).items()}
    measured = {name: Measured.of(text) for name, text in texts.items()}
    pairs = read_pairs(PAIRS)
    assert len(pairs) == 42
    for pair in pairs:
        a, b, details = words(texts[pair.a]), words(texts[pair.b]), pair.details
        one, other = shingles(texts[pair.a]), shingles(texts[pair.b])
        common = np.intersect1d(one, other).size
        assert Levenshtein.distance(" ".join(a), " ".join(b)) == details.LD
        assert (details.Ca, details.Cb) == pytest.approx((common / one.size, common / other.size))
        assert label(measured[pair.a], measured[pair.b]) == pair.relation


def test_a_corpus_that_cannot_be_read_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (accuracy.main, retrieval.main, short_texts.main):
        assert command(["--corpus", str(tmp_path)]) == 2
    assert "pairs.jsonl.gz" in capsys.readouterr().err
