"""The benchmarks of relations and candidates, on 42 pairs of public-domain texts.

The pairs are made from the example documents. `details` are exact measurements of the texts. `relation` follows from
them by the rules in `examples/README.md`, after one more rule: scattered noise is a version.
"""

import gzip
import json
from collections import Counter
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from rapidfuzz.distance import Indel, Levenshtein

from benchmarks.quality import accuracy, new_spans, noise, retrieval, short_texts
from benchmarks.quality.corpus import RELATIONS, CorpusError, Pair, check, read_pairs, read_texts, shingles, words
from benchmarks.quality.recording import longest_common_run
from benchmarks.quality.scoring import Judged, metrics, scores
from benchmarks.quality.strata import strata
from nearstream.schemas.topics.codec import decode_event
from nearstream.schemas.verdicts.events import Retraction, kind_of

PAIRS = Path(__file__).parents[1] / "data" / "pairs"
RUN_WORDS = 4


@cache
def pairs() -> tuple[Pair, ...]:
    return tuple(read_pairs(PAIRS))


@cache
def texts() -> dict[str, str]:
    return {name: text.text for name, text in read_texts(PAIRS).items()}


def told(command: ModuleType, capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert command.main(["--corpus", str(PAIRS), *arguments]) == 0
    return json.loads(capsys.readouterr().out)


def said(pair: Pair, relation: str, distance: int = 0, inside: str | None = None) -> Judged:
    return Judged(pair, relation, "by hand", distance, inside=inside)


def right(pair: Pair) -> Judged:
    return said(pair, pair.relation, pair.details.LD, pair.inside)


def of(relation: str) -> list[Pair]:
    return [pair for pair in pairs() if pair.relation == relation]


def in_order(a: list[str], b: list[str]) -> list[tuple[int, int, int]]:
    """Return the runs of at least four equal words in an alignment.

    Each is its start in both texts and its length.
    """
    number = {word: place for place, word in enumerate(dict.fromkeys(a + b))}
    codes = Indel.opcodes([number[word] for word in a], [number[word] for word in b])
    return [(run.a, run.b, run.size) for run in codes.as_matching_blocks() if run.size >= RUN_WORDS]


def test_each_relation_occurs_at_least_twice_in_a_small_file() -> None:
    assert len(pairs()) == 42
    assert Counter(pair.relation for pair in pairs()) == {
        "exact_duplicate": 3,
        "near_duplicate": 7,
        "containment": 9,
        "version": 8,
        "rearranged": 4,
        "overlap": 3,
        "unrelated": 8,
    }
    assert sum(path.stat().st_size for path in PAIRS.iterdir()) < 300_000
    check(pairs(), read_texts(PAIRS))


def test_the_measurements_of_each_pair_are_those_of_its_texts() -> None:
    for pair in pairs():
        a, b, details = words(texts()[pair.a]), words(texts()[pair.b]), pair.details
        one, other = shingles(texts()[pair.a]), shingles(texts()[pair.b])
        common = np.intersect1d(one, other).size
        assert (details.wa, details.wb) == (len(a), len(b))
        assert (details.la, details.lb) == (len(" ".join(a)), len(" ".join(b)))
        assert Levenshtein.distance(" ".join(a), " ".join(b)) == details.LD
        assert (details.Ca, details.Cb) == pytest.approx((common / one.size, common / other.size))
        assert pytest.approx(common / (one.size + other.size - common)) == details.J
        matched = [
            run for run in in_order(a, b) if run[0] >= details.place_a[0] and sum(run[::2]) <= details.place_a[1]
        ]
        assert sum(size for *_, size in matched) == details.matched


def test_each_relation_follows_from_the_measurements() -> None:
    for pair in pairs():
        details = pair.details
        share = max(details.Ca, details.Cb)
        assert (details.LD == 0) == (pair.relation == "exact_duplicate")
        assert (share < 0.10) == (pair.relation == "unrelated")
        if pair.relation == "near_duplicate":
            assert details.J >= 0.70
        if pair.relation in ("containment", "rearranged"):
            assert details.containment_of_shorter >= 0.70
        if pair.inside:
            assert pair.inside == (pair.a if details.wa < details.wb else pair.b)
            assert details.word_ratio <= 0.85
        assert (pair.inside is not None) == (pair.relation == "containment")


def test_the_accuracy_benchmark_agrees_with_score_py() -> None:
    """The expected values are computed by hand from the definitions of the figures."""
    nothing = metrics([said(pair, "unrelated") for pair in pairs()])
    assert (nothing["n"], nothing["missing"], nothing["accuracy"]) == (42, 0, 0.1905)  # 8 / 42
    assert nothing["macro_f1"] == 0.0457  # 2 * 8 / (8 + 42) / 7
    assert (nothing["related_precision"], nothing["related_recall"]) == (None, 0.0)
    assert nothing["containment_direction_accuracy"] is None
    whole = metrics([right(pair) for pair in pairs()])
    assert (whole["accuracy"], whole["macro_f1"], whole["distance_n"]) == (1.0, 1.0, 31)
    assert (whole["containment_direction_n"], whole["containment_direction_accuracy"]) == (9, 1.0)
    assert (whole["distance_mae"], whole["share_within_05"]) == (0.0, 1.0)


def test_each_figure_counts_what_it_should() -> None:
    inner, outer = of("containment")[0], of("containment")[1]
    rows = [right(pair) for pair in pairs() if pair not in (inner, outer, of("version")[0], of("unrelated")[0])]
    wrong_side = inner.a if inner.inside == inner.b else inner.b
    rows += [
        said(inner, "containment", inner.details.LD + inner.details.longer // 10, wrong_side),
        said(outer, "near_duplicate", outer.details.LD, None),
        Judged(of("version")[0]),  # could not be signed
        said(of("unrelated")[0], "overlap"),
    ]
    figures = metrics(rows)
    assert (figures["n"], figures["missing"], figures["accuracy"]) == (42, 1, 0.9286)  # 39 / 42
    assert figures["related_precision"] == 0.9706  # 33 / 34
    assert figures["related_recall"] == 0.9706  # 33 / 34
    assert figures["near_duplicate_precision"] == 0.9091  # 10 / 11
    assert figures["near_duplicate_recall"] == 1.0
    assert figures["containment_direction_n"] == 8
    assert figures["containment_direction_accuracy"] == 0.875
    assert (figures["distance_n"], figures["share_within_05"]) == (30, 0.9667)
    assert figures["distance_mae"] == pytest.approx(0.1 / 30, abs=1e-4)
    assert figures["classes"]["version"] == {"n": 8, "predicted": 7, "precision": 1.0, "recall": 0.875, "f1": 0.9333}
    # Mean of seven rounded values: near, version, unrelated 14/15, containment 16/17, overlap 6/7, the others 1.
    assert figures["macro_f1"] == 0.9426
    clear = scores(rows)["clear"]
    assert clear["n"] == sum(pair.clear for pair in pairs())


def test_the_accuracy_command_prints_every_figure(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "predictions.jsonl"
    figures = told(accuracy, capsys, "--predictions", str(out), "--keys", "2")
    assert {"all", "clear", "unknown_pairs", "scheme", "thresholds", "confusion", "by_origin", "by_source"} <= set(
        figures
    )
    assert {"distance_by_relation", "place", "coverage", "signature_bytes", "cpu_microseconds_per_pair"} <= set(figures)
    assert figures["all"]["accuracy"] >= 0.85
    assert figures["all"]["related_recall"] == 1.0
    assert figures["all"]["near_duplicate_recall"] == 1.0
    assert figures["all"]["containment_direction_accuracy"] == 1.0
    assert figures["all"]["distance_mae"] <= 0.05
    assert figures["place"]["median"] <= 64
    shares = figures["share_errors"]
    assert shares["containment_of_shorter"] < shares["containment_of_shorter_by_symbols"]
    assert max(shares.values()) < 0.1
    speed = figures["speed"]
    assert speed["characters"] == 20_000
    assert abs(speed["estimated"] - speed["distance"]) < 0.05 * speed["characters"]
    ratio = speed["levenshtein_microseconds"] / speed["estimate_microseconds"]
    assert speed["levenshtein / estimate"] == pytest.approx(ratio, rel=0.01)
    assert ratio > 10
    assert figures["keys"]["n"] == 2
    assert figures["keys"]["all.accuracy"]["mean"] >= 0.85
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(lines) == 42
    assert all({"a", "b", "relation", "rule", "distance", "low", "high"} <= line.keys() for line in lines)
    assert all(("inside" in line) == (line["relation"] == "containment") for line in lines)
    labels = {frozenset((pair.a, pair.b)): pair.relation for pair in pairs()}
    agreed = sum(labels[frozenset((line["a"], line["b"]))] == line["relation"] for line in lines)
    assert round(agreed / 42, 4) == figures["all"]["accuracy"]


def test_the_retrieval_command_finds_every_related_pair(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "events.jsonl"
    figures = told(retrieval, capsys, "--events", str(out), "--seed", "2", "--events-per-family", "0")
    assert (figures["documents"], figures["skipped"]) == (len(texts()), 0)
    everything = figures["strata"]["all"]
    assert (everything["n"], everything["candidate"], everything["connected"]) == (34, 1.0, 1.0)
    assert everything["event"] >= everything["right_relation"] >= 0.85
    assert figures["strata"]["families"]["n"] == 0
    assert (
        figures["per_document"]["looked_up"] >= figures["per_document"]["verified"] >= figures["per_document"]["false"]
    )
    events = [decode_event(line) for line in out.read_bytes().splitlines()]
    assert Counter(map(kind_of, events)) == figures["events"]
    assert not any(isinstance(event, Retraction) for event in events)


def test_with_families_every_related_pair_is_connected_though_some_do_not_meet(
    capsys: pytest.CaptureFixture[str],
) -> None:
    figures = told(retrieval, capsys, "--seed", "2", "--why")
    everything = figures["strata"]["all"]
    assert everything["candidate"] < everything["connected"] == 1.0
    others = figures["why"]["fates"]["all"].keys() - {"right", "other_relation", "no_event"}
    assert others == {"twin", "left_out"}  # their families stand for them


def test_one_candidate_a_document_is_one_pair_a_document_at_most(capsys: pytest.CaptureFixture[str]) -> None:
    few = told(retrieval, capsys, "--candidates", "1")
    assert few["per_document"]["verified"] <= 1 + few["events"]["exact_duplicate"]  # equal texts are counted separately
    assert few["strata"]["all"]["candidate"] < 1


def test_each_related_pair_has_one_end(capsys: pytest.CaptureFixture[str]) -> None:
    few = told(retrieval, capsys, "--candidates", "1", "--bucket-cap", "12", "--why")
    for group, ends in few["why"]["fates"].items():
        assert sum(end["n"] for end in ends.values()) == few["strata"][group]["n"]
        assert all(end["unclear"] <= end["n"] for end in ends.values())
    everything, met = few["why"]["fates"]["all"], few["strata"]["all"]["candidate"]
    told_of = sum(everything[end]["n"] for end in ("right", "other_relation", "no_event") if end in everything)
    assert round(told_of / few["strata"]["all"]["n"], 4) == met
    assert "over_limit" in everything


def test_noisy_copies_meet_their_originals_under_the_scheme_made_for_them(capsys: pytest.CaptureFixture[str]) -> None:
    plain, made = (told(noise, capsys, "--copies", "2", "--scheme", label) for label in ("standard", "noise"))
    assert plain["keys"] < made["keys"]
    assert noise.main(["--corpus", str(PAIRS.parent)]) == 2
    assert "docs.jsonl.gz" in capsys.readouterr().err
    for figures in (plain, made):
        assert {size: found["n"] for size, found in figures["replaced"]["0.10"].items()}["2000-5000"] == 2
    assert made["replaced"]["0.10"]["2000-5000"]["met"] == 1.0


def test_the_longest_common_run_is_counted_in_words() -> None:
    assert longest_common_run("one, two three four", "zero TWO three four five") == 3
    assert longest_common_run("one two", "three") == 0
    assert longest_common_run("", "") == 0


def test_a_pair_with_a_short_text_is_in_one_stratum_alone() -> None:
    sets = {name: shingles(text) for name, text in texts().items()}
    whole = strata(pairs(), sets)
    assert sum(len(whole[name]) for name in RELATIONS if name in whole) == len(whole["all"]) == 34
    assert len(whole["others"]) == 34
    some = of("near_duplicate")[0]
    cut = strata(pairs(), {**sets, some.a: sets[some.a][:39]})
    assert some in cut["short"]
    assert not any(some in found for name, found in cut.items() if name != "short")


@pytest.mark.parametrize("command", [accuracy, retrieval])
def test_an_unreadable_corpus_is_refused(
    command: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["--corpus", str(tmp_path)]) == 2
    assert "pairs.jsonl.gz" in capsys.readouterr().err
    (tmp_path / "pairs.jsonl.gz").write_bytes(gzip.compress(b'{"a": "x"}\n'))
    assert command.main(["--corpus", str(tmp_path)]) == 2
    assert "pairs.jsonl.gz:1: " in capsys.readouterr().err


def test_a_pair_of_absent_documents_is_refused() -> None:
    with pytest.raises(CorpusError, match="no document"):
        check(pairs(), {})


@pytest.mark.parametrize(
    ("benchmark", "option"),
    [(short_texts, "--words"), (new_spans, "--pairs"), (retrieval, "--bucket-cap"), (noise, "--copies")],
    ids=["short", "new_spans", "retrieval", "noise"],
)
def test_a_number_of_nothing_is_refused(benchmark: ModuleType, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        benchmark.main(["--corpus", str(PAIRS), option, "0"])
    assert ended.value.code == 2
    assert f"{option}: invalid positive value" in capsys.readouterr().err
