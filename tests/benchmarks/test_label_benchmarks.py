"""The benchmarks that label texts by exact measurement."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.quality import confidence, new_spans, retrieval, short_texts
from benchmarks.quality.corpus import read_pairs, read_texts
from benchmarks.quality.labels import Measured, in_order, label

PAIRS = Path(__file__).parents[1] / "data" / "pairs"
WORDS = tuple(f"w{number}" for number in range(400))


def measured(*parts: tuple[str, ...]) -> Measured:
    return Measured.of(" ".join(word for part in parts for word in part))


def test_labels_are_those_of_the_labelled_pairs_whichever_text_comes_first() -> None:
    texts = {name: Measured.of(text.text) for name, text in read_texts(PAIRS).items()}
    for pair in read_pairs(PAIRS):
        assert label(texts[pair.a], texts[pair.b]) == label(texts[pair.b], texts[pair.a]) == pair.relation


def test_scattered_noise_is_a_version_whatever_the_shingles_say() -> None:
    text = " ".join(WORDS)
    noisy = Measured.of(text.replace("1", "x").replace("2", "y").replace("3", "z"))
    assert np.intersect1d(Measured.of(text).shingles, noisy.shingles).size < 0.25 * 396
    assert label(Measured.of(text), noisy) == "version"


def test_a_passage_is_contained_overlaps_or_is_too_short_to_count() -> None:
    own, other = tuple(f"x{number}" for number in range(400)), tuple(f"y{number}" for number in range(400))
    assert label(measured(WORDS[:100]), measured(own, WORDS[:100])) == "containment"
    assert label(measured(own[:200], WORDS[:100]), measured(other, WORDS[:100])) == "overlap"
    assert label(measured(own[:200], WORDS[:15]), measured(other, WORDS[:15])) == "unrelated"


def test_words_in_order_count_in_runs_of_four() -> None:
    lie = in_order((*WORDS[:3], "a", *WORDS[10:20]), (*WORDS[:3], "b", "c", *WORDS[10:20]))
    assert lie.share == 10 / 14
    assert lie.segment == 10
    assert lie.spread == 10 / 15
    assert in_order(("a",), ("b",)).share == 0


def test_the_confidence_command_judges_the_events_of_runs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    runs = [tmp_path / "1.jsonl", tmp_path / "2.jsonl"]
    for seed, path in enumerate(runs, start=1):
        assert retrieval.main(["--corpus", str(PAIRS), "--seed", str(seed), "--events", str(path)]) == 0
    capsys.readouterr()
    assert confidence.main(["--corpus", str(PAIRS), "--events", *map(str, runs), "--most", "5"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {"near_duplicate", "containment", "version", "exact_duplicate"} <= told.keys()
    assert all(0 < each["drawn"] <= 10 and sum(each["labels"].values()) == each["drawn"] for each in told.values())
    assert told["exact_duplicate"]["right"] == 1
    assert told["near_duplicate"]["related"] == 1


def test_the_confidence_command_refuses_what_it_cannot_read(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    events.write_text("{}\n")
    assert confidence.main(["--corpus", str(PAIRS), "--events", str(events)]) == 2
    assert confidence.main(["--corpus", str(PAIRS), "--events", str(tmp_path / "none")]) == 2
    assert confidence.main(["--corpus", str(tmp_path), "--events", str(events)]) == 2
    assert capsys.readouterr().err.count("\n") == 3


def test_new_is_what_lies_in_no_run_of_four_words_of_the_older_text() -> None:
    older = "a b c d e f g h"
    assert not new_spans.is_new("e f g h a b c d", older).any()
    new = new_spans.is_new("a b c d xx yy e f g h", older)
    assert new.tolist() == [False] * 8 + [True] * 6 + [False] * 7
    told = new_spans.found("a b c d xx yy e f g h", older, [(8, 10), (14, 16)])
    assert (told.new, told.told, told.both) == (6, 4, 2)


def test_most_of_what_is_new_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert new_spans.main(["--corpus", str(PAIRS)]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["pairs"] >= 15
    assert figures["new_that_is_told"] > 0.9
    assert figures["told_that_is_new"] > 0.8
    assert new_spans.main(["--corpus", str(tmp_path)]) == 2


def test_short_texts_are_labelled_anew_after_the_cut(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert short_texts.main(["--corpus", str(PAIRS), "--words", "20", "60"]) == 0
    told = json.loads(capsys.readouterr().out)["by_words"]
    assert told.keys() == {"20", "60"}
    for row in told.values():
        assert sum(row["labels"].values()) == row["pairs"] > 10
        assert row["duplicates_meet"] == 1
    assert told["20"]["duplicates_recall"] >= 0.9  # of texts of 20 words, some distances are over the bound
    assert told["60"]["duplicates_recall"] == 1
    assert told["60"]["right"] >= 0.75
    assert short_texts.main(["--corpus", str(tmp_path)]) == 2


def test_two_texts_that_are_cut_to_the_same_are_one_pair() -> None:
    pairs = read_pairs(PAIRS)[:1] * 2
    texts = {name: list(WORDS) for name in (pairs[0].a, pairs[0].b)}
    assert short_texts.cut(pairs, texts, 10).keys() == {(" ".join(WORDS[:10]), " ".join(WORDS[:10]))}
    assert not short_texts.cut(pairs, texts, len(WORDS) + 1)
