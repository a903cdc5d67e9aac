"""The comparison of two files: relation, evidence, exact distance, rules, and what became of the pair."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from nearstream.schemas.topics.codec import decode_event
from nearstream.schemas.verdicts.events import kind_of
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.signing.exact import exact_distance
from nearstream.workers.cli.main import main
from nearstream.workers.cli.scan import EXAMPLES
from tests.support.made_up import words

PAGE = (Path(__file__).parents[4] / "docs/relations.md").read_text()
KEY = HashKey.public()
ROWS = {row["id"]: row for row in map(json.loads, (EXAMPLES / "documents.jsonl").read_bytes().splitlines())}
KNOWN = {
    "exact_duplicate": ("pep-0286-mirror", "pep-0286@2021-02"),
    "near_duplicate": ("pep-0379@2025-02", "pep-0379@2009-03"),
    "containment": ("congress-1981-reagan-excerpt-a", "congress-1981-reagan"),
    "version": ("pep-0360@2017-03", "pep-0360@2006-05"),
    "rearranged": ("congress-1989-bush-reordered", "congress-1989-bush"),
    "overlap": ("congress-1981-reagan-excerpt-b", "congress-1981-reagan-excerpt-a"),
    "unrelated": ("congress-1991-bush", "sotu-1974-nixon"),
}


def written(folder: Path, name: str, **fields: str) -> str:
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"id": name, **fields}))
    return str(path)


def of_examples(folder: Path, *names: str) -> list[str]:
    wanted = ("text", "observed_at", "collection")
    return [written(folder, name, **{key: ROWS[name][key] for key in wanted if key in ROWS[name]}) for name in names]


def compared(capsys: pytest.CaptureFixture[str], *paths: str, code: int = 0) -> dict[str, Any]:
    assert main(["compare", *paths, "--json"]) == code
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    return told


@pytest.mark.parametrize("relation", KNOWN)
def test_every_relation_is_told_with_its_evidence_and_exit_code(
    relation: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = of_examples(tmp_path, *KNOWN[relation])
    code = 1 if relation == "unrelated" else 0
    told = compared(capsys, *paths, code=code)
    assert (told["relation"], told["newer"]["id"], told["older"]["id"]) == (relation, *KNOWN[relation])
    assert (told["later"]["name"], told["earlier"]["name"]) == tuple(paths)
    assert compared(capsys, *paths[::-1], code=code) == told
    assert {"keys", "resemblance", "overlap", "containment", "distance", "spans"} <= told["evidence"].keys()
    value, low, high = told["meeting"]["chance"]
    assert 0 <= low <= value <= high <= 1
    assert (told["event"] is None) == (relation == "unrelated")
    if told["event"]:
        event = decode_event(json.dumps(told["event"]).encode())
        assert (kind_of(event), told["outcome"]["event_id"]) == (relation, event.event_id)
        assert told["event"]["evidence"] == told["evidence"]
    first = next(rule for rule in told["rules"] if rule["holds"])
    assert (first["rule"], first["relation"]) == (told["rule"], relation)
    assert main(["compare", *paths]) == code
    text = capsys.readouterr().out
    assert text.startswith(f"relation         {relation}\nrule             {told['rule']}")
    assert f"\n  exact          {told['distance_exact']}\n" in text
    assert f"\nrule             {told['rule']} ({relation}): decides\n" in text


def test_the_exact_distance_stands_beside_the_estimate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = words(1, 400)
    edited = [*text[:200], "inserted", *text[200:]]
    paths = [written(tmp_path, name, text=" ".join(each)) for name, each in (("a", text), ("b", edited))]
    told = compared(capsys, *paths)
    assert told["distance_exact"] == len("inserted ")
    low, high = (told["evidence"]["distance"][end] for end in ("low", "high"))
    assert low <= told["distance_exact"] <= high
    assert exact_distance("kitten", "sitting") == 3
    page = "a page of some length. " * 1_000
    assert exact_distance(page, page + "x") == 1  # 23,000 characters are measured in less than 50 ms
    assert exact_distance("kitten", "sitting", 6 * 7 - 1) is None


def test_what_is_gone_is_told_where_it_stood_in_the_text_of_the_earlier_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = [f"«{word}»," for word in words(1, 500)]  # signs count in the text, and not in the normal form
    cut, left = " ".join(text[300:360]), " ".join([*text[:300], *text[360:]])
    days = (("a", left, "2026-01-02T00:00:00Z"), ("b", " ".join(text), "2026-01-01T00:00:00Z"))
    paths = [written(tmp_path, name, text=each, observed_at=day) for name, each, day in days]
    ((start, end),) = compared(capsys, *paths)["removed_spans"]
    at = " ".join(text).index(cut)
    assert (at - 60 <= start <= at, at + len(cut) <= end <= at + len(cut) + 60) == (True, True)
    main(["compare", *paths])
    assert f"\ngone of earlier  within {start}-{end}\n" in capsys.readouterr().out


def test_the_page_on_relations_shows_what_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (shown,) = re.findall(r"^```\n(relation .*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    names = re.findall(r"^(?:newer|older)  +([^|\s]+)$", shown, re.MULTILINE)
    main(["compare", *of_examples(tmp_path, *names)])
    printed = capsys.readouterr().out.replace(f"{tmp_path}/", "").splitlines()
    for line in shown.splitlines():
        assert any(each.startswith(line.removesuffix("...")) for each in printed), line


def test_what_cannot_be_read_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = written(tmp_path, "good", text=" ".join(words(1, 50)))
    contents = {"empty.txt": b"", "list.json": b"[]", "broken.json": b"{", "none.jsonl": b"\n"}
    contents["two.jsonl"] = b'{"id": "a", "text": "x"}\n{"id": "b", "text": "y"}\n'
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    for name in (*contents, "absent.txt"):
        assert (name, main(["compare", good, str(tmp_path / name)])) == (name, 65)
        told = capsys.readouterr()
        assert told.out == ""
        assert told.err.startswith("nearstream: ")
        assert name in told.err


def test_the_outcome_names_the_tier_that_lost_the_pair(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = " ".join(words(1, 80))
    a, short = written(tmp_path, "a", text=text), written(tmp_path, "short", text="too few words")
    mail = written(tmp_path, "b", text=text, collection="mail")
    of_file = {name: of_examples(tmp_path, *KNOWN[name]) for name in ("unrelated", "version", "overlap")}
    for tier, pair, reason in (
        ("other_collection", [a, mail], "one is in default, the other in mail"),
        ("too_short", [short, a], "the shorter has 3 words, 8 expected"),
        ("too_short", [written(tmp_path, "empty", text=""), short], "empty has no words"),
        ("too_short", _without_spaces(tmp_path), "the shorter has no spaces and 27 bytes, 40 expected"),
        ("no_shared_key", of_file["unrelated"], "0 of 4 bands and 0 of 167 anchors shared; at resemblance 0.0"),
        ("related", of_file["version"], "version, by spread_edits"),
        ("relation_not_sent", of_file["overlap"], "overlap is not in NEARSTREAM_RELATIONS"),
    ):
        has_event = tier in ("relation_not_sent", "related")
        if tier == "relation_not_sent":
            monkeypatch.setenv("NEARSTREAM_RELATIONS", "version")
        told = compared(capsys, *pair, code=0 if has_event else 1)["outcome"]
        assert told["tier"] == tier
        assert reason in told["reason"]
        assert bool(told["event_id"]) == has_event
        main(["compare", *pair])
        assert f"outcome          {tier}: {told['reason']}\n" in capsys.readouterr().out


def _without_spaces(folder: Path) -> list[str]:
    long = "学而时习之不亦说乎有朋自远方来不亦乐乎人不知而不愠不亦君子乎"
    return [written(folder, "c", text=long[:9]), written(folder, "d", text=long)]


def test_of_a_pair_that_shares_a_key_but_fits_no_rule_the_nearest_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for seed in range(200):  # until an anchor lies in the passage that both share
        passage = words(seed, 11)
        texts = [" ".join((*words(one + seed, 60), *passage, *words(one + 500 + seed, 60))) for one in (1000, 3000)]
        pair = [written(tmp_path, name, text=text) for name, text in zip("ab", texts, strict=True)]
        outcome = compared(capsys, *pair, code=1)["outcome"]
        if outcome["tier"] != "no_shared_key":
            break
    assert outcome["tier"] == "no_rule"
    assert "shared_passage (overlap) is nearest, which needs " in outcome["reason"]
