"""The benchmarks run, name what is missing, and apply their limits."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import texts
from benchmarks.speed import gates, hostile, letters, signing
from benchmarks.speed.ours import TOGETHER
from benchmarks.speed.peers import word_shingles
from benchmarks.speed.resemblance import share_a_band

ROOT = Path(__file__).parents[2]
GATE = {"value", "limit", "ok"}


def run(*arguments: str) -> tuple[int, dict[str, Any]]:
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def row(engine: str, us: float, **others: object) -> dict[str, Any]:
    outputs = {"native": "all", "numpy": TOGETHER}.get(engine, "sketch")
    normaliser = "usual" if outputs == "sketch" else "own"
    error = {str(shingles): 0.02 for shingles in (20, 50, 200, 2_000)}
    fixed = {"size": "en-5", "outputs": outputs, "normaliser": normaliser, "shingles": "words"}
    return {"engine": engine, "us_per_doc": us, "mean_error": error, "band_recall": 1.0, **fixed, **others}


def test_signing_gives_rows_ratios_gates_and_an_exit_code() -> None:
    code, result = run(
        *("benchmarks.speed.signing", "--engines", "numpy", "rensa"),
        *("--sizes", "en-1", "cjk-5", "--repeats", "1", "--shortest-ms", "1", "--trials", "20"),
    )
    assert result.keys() >= {"cpu", "versions", "corpus_digest", "absent", "rows", "ratios", "gates"}
    assert {"size", "engine", "outputs", "us_per_doc", "mb_per_s", "n", "spread", "mean_error", "band_recall"} <= set(
        result["rows"][0]
    )
    assert {entry["engine"] for entry in result["rows"]} | result["absent"].keys() == {*("numpy", "rensa")}
    assert all(gate.keys() == GATE for gate in result["gates"].values())
    assert code == int(any(gate["ok"] is False for gate in result["gates"].values()))


def test_letters_gives_the_time_of_each_script(capsys: pytest.CaptureFixture[str]) -> None:
    assert letters.main(["--repeats", "1", "--shortest-ms", "1"]) == 0
    head, *rows = (line.split("\t") for line in capsys.readouterr().out.splitlines())
    assert head == ["script", "standard", "dense", "letters"]
    assert all(int(time) > 0 for _, *times in rows for time in times)


def test_comparing_gives_the_times_of_each_way() -> None:
    pairs = str(ROOT / "tests" / "data" / "pairs")
    code, result = run(
        "benchmarks.speed.comparing", "--corpus", pairs, "--documents", "9", "--least", "1", "--repeats", "9"
    )
    assert code == 0
    assert result["documents"] == 9
    assert sum(result["relations"].values()) == pytest.approx(9 * result["candidates_a_document"], abs=0.5)
    assert 0 < result["unpack_us"] < result["c_us"] < result["python_us"]


def test_ld_gives_rows_estimates_ratios_gates_and_an_exit_code() -> None:
    code, result = run("benchmarks.speed.ld", "--repeats", "1", "--shortest-ms", "1")
    assert result.keys() >= {"cpu", "versions", "corpus_digest", "absent", "rows", "estimates", "ratios", "gates"}
    assert {entry["engine"] for entry in result["rows"]} | result["absent"].keys() == {
        *("native", "numpy", "source, sum and modulus", "source, sum and table")
    }
    assert [entry["symbols"] for entry in result["estimates"]] == 2 * [181, 98, 59, 28, 940, 514, 305, 195]
    assert all(gate.keys() == GATE for gate in result["gates"].values())
    assert code == int(any(gate["ok"] is False for gate in result["gates"].values()))


def test_the_c_functions_of_the_benchmark_give_the_bytes_of_the_signer() -> None:
    ld = pytest.importorskip("benchmarks.speed.ld")
    compiled = pytest.importorskip("benchmarks.speed.compiled")
    try:
        native = ld.native_ld()
    except (ImportError, compiled.CompilerAbsentError) as error:
        pytest.skip(str(error))
    form = b" ".join(b"%d" % number for number in range(1000))
    assert native([form, form[:900]]) == ld.numpy_ld()([form, form[:900]]) != [b"", b""]


def test_a_missing_peer_is_told_as_absent(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("benchmarks.speed.race.find_spec", lambda _: None)
    assert signing.main(["--alone", "--engines", "rensa", "--sizes", "en-1"]) == 0
    assert json.loads(capsys.readouterr().out) == {"absent": "no module rensa: pip install 'nearstream[bench]'"}


def test_a_ratio_is_over_the_fastest_peer() -> None:
    rows = [row("numpy", 100.0), row("datasketch", 400.0), row("rensa", 300.0)]
    ratios = gates.ratios(rows)
    assert ratios["numpy all together / best peer, usual normaliser"] == {"en-5": 3.0}
    found = gates.gates(rows, [], ratios)
    assert found["numpy all together / best peer, usual normaliser"] == {"value": 3.0, "limit": 1.7, "ok": True}
    assert found["native all / best peer, usual normaliser"] == {"value": None, "limit": 5.0, "ok": None}
    assert not gates.failed(found)


def test_a_missed_gate_fails() -> None:
    rows = [row("numpy", 400.0), row("rensa", 300.0)]
    assert gates.failed(gates.gates(rows, [], gates.ratios(rows)))
    assert gates.failed(gates.gates([row("numpy", 1.0, band_recall=0.98)], [], {name: {} for name in gates.ratios([])}))


def test_texts_are_always_the_same_and_half_of_the_english_ones_are_typographic() -> None:
    assert texts.digest(["en-1"]) == texts.digest(["en-1"])
    typographic = [text for text in texts.texts("en-13.5") if not text.isascii()]
    assert 0.4 <= len(typographic) / len(texts.texts("en-13.5")) <= 0.7
    assert texts.typographic('"it\'s -- so..."') == "\u201cit\u2019s \u2014 so\u2026\u201d"


@pytest.mark.parametrize("size", texts.SIZES)
def test_texts_have_their_size(size: str) -> None:
    limit = (texts.ENGLISH | texts.SPACELESS)[size]
    lengths = [len(text if size in texts.ENGLISH else text.encode()) for text in texts.texts(size)]
    assert all(limit * 0.9 < length <= limit for length in lengths)


def test_hostile_texts_stay_within_their_size() -> None:
    assert all(len(text.encode("utf-8", "surrogatepass")) <= 30_000 for text in hostile.hostile_texts(30_000).values())


def test_empty_slots_meet_in_no_band() -> None:
    numpy = pytest.importorskip("numpy")
    full, empty = numpy.arange(128), numpy.full(128, -1)
    assert share_a_band(full, full)
    assert not share_a_band(empty, empty)


def test_shingles_of_a_short_text_are_one() -> None:
    assert word_shingles(["a", "b"]) == ["a b"]
    assert word_shingles(list("abcdef")) == ["a b c d e", "b c d e f"]
