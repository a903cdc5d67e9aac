"""The comparison of two files: relation, evidence, exact distance, rules, and what became of the pair."""

import gzip
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest

from nearstream.schemas.documents.document import Document
from nearstream.schemas.documents.evidence import Span
from nearstream.schemas.topics.codec import decode_event, encode_signature
from nearstream.schemas.verdicts.events import kind_of
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.signing.exact import exact_distance
from nearstream.streams.signing.scheme import preset
from nearstream.streams.signing.signer import Signer
from nearstream.workers.cli.compare import is_crossed, picture
from nearstream.workers.cli.demo import EXAMPLES
from nearstream.workers.cli.main import main

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


def words(seed: int, count: int) -> list[str]:
    random = Random(seed)
    return ["".join(random.choices("etaoinshrdlu", k=random.randint(3, 9))) for _ in range(count)]


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
    assert told["in_order"] == (relation != "rearranged" and not is_crossed(_spans(told["common_spans"])))
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
    assert "\nnewer  |" in text
    assert ("crossed" in text) != told["in_order"]


def test_the_exact_distance_stands_beside_the_estimate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = words(1, 400)
    edited = [*text[:200], "inserted", *text[200:]]
    paths = [written(tmp_path, name, text=" ".join(each)) for name, each in (("a", text), ("b", edited))]
    told = compared(capsys, *paths)
    assert told["distance_exact"] == len("inserted ")
    low, high = (told["evidence"]["distance"][end] for end in ("low", "high"))
    assert low <= told["distance_exact"] <= high
    assert exact_distance("kitten", "sitting") == 3
    assert exact_distance("kitten", "sitting", 6 * 7 - 1) is None


def test_the_page_on_relations_shows_what_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (shown,) = re.findall(r"^```\n(relation .*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    names = re.findall(r"^(?:newer|older)  +([^|\s]+)$", shown, re.MULTILINE)
    main(["compare", *of_examples(tmp_path, *names)])
    printed = [
        re.sub(rf"{re.escape(str(tmp_path))}/|, \d+ d ago$", "", line) for line in capsys.readouterr().out.split("\n")
    ]
    for line in shown.splitlines():
        start = re.sub(r", \d+ d ago$", "", line).removesuffix("...")
        assert any(each.startswith(start) for each in printed), line


def test_what_cannot_be_read_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = tmp_path / "good.txt"
    good.write_text(" ".join(words(1, 50)))
    contents = {"empty.txt": b"", "list.json": b"[]", "broken.json": b"{", "none.jsonl": b"\n", "a.msgpack": b"\xc1"}
    contents["two.jsonl"] = b'{"id": "a", "text": "x"}\n{"id": "b", "text": "y"}\n'
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        assert (name, main(["compare", str(good), str(tmp_path / name)])) == (name, 65)
        told = capsys.readouterr()
        assert told.out == ""
        assert told.err.startswith("nearstream: ")
        assert name in told.err
    assert main(["compare", str(good), str(tmp_path / "absent.txt")]) == 65


def test_compare_reads_a_file_like_scan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = " ".join(words(1, 400))
    (tmp_path / "a.txt").write_text(text.upper(), "utf-16")
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(json.dumps([{"id": "b", "text": text}]).encode()))
    paths = [str(tmp_path / name) for name in ("a.txt", "b.json.gz")]
    told = compared(capsys, *paths)
    assert (told["relation"], {told["newer"]["id"], told["older"]["id"]}) == ("exact_duplicate", {paths[0], "b"})


def sharing_little(folder: Path) -> list[str]:
    """Write two texts that share an anchor in a passage too short for any rule."""
    scheme = preset("fine", KEY)
    signer = Signer(scheme, KEY)
    for seed in range(200):
        passage = words(seed, 11)
        texts = [" ".join((*words(1000 + seed, 60), *passage, *words(2000 + seed, 60)))]
        texts.append(" ".join((*words(3000 + seed, 60), *passage, *words(4000 + seed, 60))))
        one, other = (
            scheme.keys(signer.sign(Document(id="a", text=text, observed_at=datetime(2026, 3, 2, tzinfo=UTC))), KEY)
            for text in texts
        )
        if set(one.anchors) & set(other.anchors):
            return [written(folder, name, text=text) for name, text in zip("ab", texts, strict=True)]
    raise AssertionError("no passage of 11 words was chosen as an anchor")


def files(folder: Path, tier: str) -> list[str]:
    """Write two files whose pair is lost in a tier."""
    text = " ".join(words(1, 80))
    if tier == "too_short":
        return [written(folder, "a", text="too few words"), written(folder, "b", text=text)]
    if tier == "other_collection":
        return [written(folder, "a", text=text), written(folder, "b", text=text, collection="mail")]
    if tier == "other_scheme":
        signature = Signer(preset("compact", KEY), KEY).sign(
            Document(id="foreign", text=text, observed_at=datetime(2026, 3, 2, tzinfo=UTC))
        )
        (folder / "foreign.msgpack").write_bytes(encode_signature(signature))
        return [str(folder / "foreign.msgpack"), written(folder, "b", text=text)]
    if tier == "no_rule":
        return sharing_little(folder)
    names = {"no_shared_key": "unrelated", "relation_not_sent": "overlap", "related": "version"}
    return of_examples(folder, *KNOWN[names[tier]])


REASONS = {
    "other_scheme": "foreign has compact-1-",
    "other_collection": "one is in default, the other in mail",
    "too_short": "the shorter has 3 words, 8 expected",
    "no_shared_key": "0 of 4 bands and 0 of 167 anchors shared; at resemblance 0.0",
    "no_rule": "shared_passage (overlap) is nearest, which needs ",
    "relation_not_sent": "overlap is not in NEARSTREAM_RELATIONS",
    "related": "version, by spread_edits",
}


@pytest.mark.parametrize("tier", REASONS)
def test_the_outcome_names_the_tier_that_lost_the_pair(
    tier: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = files(tmp_path, tier)
    if tier == "relation_not_sent":
        monkeypatch.setenv("NEARSTREAM_RELATIONS", "version")
    has_event = tier in ("relation_not_sent", "related")
    told = compared(capsys, *pair, code=0 if has_event else 1)["outcome"]
    assert told["tier"] == tier
    assert REASONS[tier] in told["reason"]
    assert bool(told["event_id"]) == has_event
    main(["compare", *pair])
    assert f"outcome          {tier}: {told['reason']}\n" in capsys.readouterr().out


def test_a_short_text_without_spaces_is_measured_in_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    long = "学而时习之不亦说乎有朋自远方来不亦乐乎人不知而不愠不亦君子乎"
    pair = [written(tmp_path, "a", text=long[:9]), written(tmp_path, "b", text=long)]
    told = compared(capsys, *pair, code=1)
    assert "the shorter has no spaces and 27 bytes, 40 expected" in told["outcome"]["reason"]


def passages(*places: tuple[int, int, int]) -> tuple[Span, ...]:
    """Return spans from (start in newer, start in older, length)."""
    return tuple(Span((one, one + length), (other, other + length)) for one, other, length in places)


def test_bars_have_one_scale_while_text_of_one_alone_is_dotted() -> None:
    lines = list(picture(passages((0, 160, 160)), 160, 640))
    assert lines[0] == f"newer  |{'a' * 16}|"
    assert lines[1] == f"older  |{'.' * 16}{'a' * 16}{'.' * 32}|"
    assert "in the same order" in lines[2]
    assert list(picture((), 10, 5))[2] == "no common passage"


def test_more_passages_than_letters_are_still_drawn() -> None:
    spans = passages(*((at * 100, at * 100, 60) for at in range(30)))
    newer, older, told = picture(spans, 3000, 3000)
    assert "z" in newer
    assert "=" in newer
    assert newer[6:] == older[6:]
    assert told.startswith("30 common passages")


def _spans(rows: list[dict[str, list[int]]]) -> tuple[Span, ...]:
    return tuple(Span((row["newer"][0], row["newer"][1]), (row["older"][0], row["older"][1])) for row in rows)
