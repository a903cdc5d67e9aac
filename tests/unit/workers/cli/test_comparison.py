"""The comparison of two files, as text and as JSON."""

import gzip
import json
import re
from pathlib import Path
from random import Random

import pytest

from nearstream.schemas.documents.evidence import Span
from nearstream.schemas.topics.codec import decode_event
from nearstream.schemas.verdicts.events import Containment, kind_of
from nearstream.workers.cli.compare import is_crossed, picture
from nearstream.workers.cli.demo import EXAMPLES
from nearstream.workers.cli.main import main

PAGE = (Path(__file__).parents[4] / "docs/relations.md").read_text()
KNOWN = {
    "exact_duplicate": ("pep-0286-mirror", "pep-0286@2021-02"),
    "near_duplicate": ("pep-0379@2025-02", "pep-0379@2009-03"),
    "containment": ("congress-1981-reagan-excerpt-a", "congress-1981-reagan"),
    "version": ("pep-0360@2017-03", "pep-0360@2006-05"),
    "rearranged": ("congress-1989-bush-reordered", "congress-1989-bush"),
    "overlap": ("congress-1981-reagan-excerpt-b", "congress-1981-reagan-excerpt-a"),
    "unrelated": ("congress-1991-bush", "sotu-1974-nixon"),
}


def words(seed: int, count: int) -> str:
    random = Random(seed)
    return " ".join("".join(random.choices("etaoinshrdlu", k=random.randint(2, 9))) for _ in range(count))


def passages(*places: tuple[int, int, int]) -> tuple[Span, ...]:
    """Return spans from (start in newer, start in older, length)."""
    return tuple(Span((one, one + length), (other, other + length)) for one, other, length in places)


@pytest.fixture(scope="module")
def documents() -> dict[str, dict[str, str]]:
    rows = map(json.loads, (EXAMPLES / "documents.jsonl").read_bytes().splitlines())
    return {row["id"]: {name: row[name] for name in ("id", "text", "observed_at")} for row in rows}


@pytest.mark.parametrize("relation", KNOWN)
def test_every_relation_is_told_with_its_evidence_and_exit_code(
    relation: str, documents: dict[str, dict[str, str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [tmp_path / "one.json", tmp_path / "other.json"]
    for path, name in zip(paths, KNOWN[relation], strict=True):
        path.write_text(json.dumps(documents[name]))
    code = main(["compare", *map(str, paths), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert code == (1 if relation == "unrelated" else 0)
    assert (told["relation"], told["newer"], told["older"]) == (relation, *KNOWN[relation])
    assert {"keys", "resemblance", "overlap", "containment", "distance", "spans"} <= told["evidence"].keys()
    assert told["in_order"] == (relation != "rearranged" and not is_crossed(_spans(told["common_spans"])))
    chance = told["meets"]["chance_by_bands"]
    assert 0 <= chance["low"] <= chance["value"] <= chance["high"] <= 1
    assert told["meets"]["shares_a_key"] == (relation != "unrelated")
    assert (told["event"] is None) == (relation == "unrelated")
    if told["event"]:
        event = decode_event(json.dumps(told["event"]).encode())
        assert kind_of(event) == relation
        assert told["event"]["evidence"] == told["evidence"]
    assert main(["compare", *map(str, paths)]) == code
    text = capsys.readouterr().out
    assert text.startswith(f"relation         {relation}\nrule             {told['rule']}")
    assert "newer  |" in text
    assert ("crossed" in text) != told["in_order"]


def test_the_page_on_relations_shows_what_is_printed(
    documents: dict[str, dict[str, str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (shown,) = re.findall(r"^```\n(relation .*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    paths = []
    for name in re.findall(r"^(?:newer|older)  +(\S+),", shown, re.MULTILINE):
        paths.append(tmp_path / f"{name}.json")
        paths[-1].write_text(json.dumps(documents[name]))
    main(["compare", *map(str, paths)])
    for printed, line in zip(capsys.readouterr().out.splitlines(), shown.splitlines(), strict=True):
        assert printed.startswith(line.removesuffix("..."))


def test_the_order_of_the_files_does_not_matter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, day, text in (("a", 1, words(1, 300)), ("b", 2, words(1, 300) + " " + words(2, 200))):
        row = {"id": name, "text": text, "observed_at": f"2026-01-0{day}T00:00:00Z"}
        (tmp_path / f"{name}.json").write_text(json.dumps(row))
    paths = [str(tmp_path / "a.json"), str(tmp_path / "b.json")]
    told = []
    for order in (paths, paths[::-1]):
        assert main(["compare", *order, "--json"]) == 0
        told.append(capsys.readouterr().out)
    assert told[0] == told[1]
    event = decode_event(json.dumps(json.loads(told[0])["event"]).encode())
    assert isinstance(event, Containment)
    assert event.inner == "older"


def test_plain_texts_are_compared_by_their_paths(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_text(words(1, 400))
    (tmp_path / "b.md").write_text(words(1, 400).upper())
    assert main(["compare", str(tmp_path / "a.txt"), str(tmp_path / "b.md")]) == 0
    told = capsys.readouterr().out
    assert "exact_duplicate" in told
    assert "a.txt, " in told
    assert "they meet" in told


def test_what_cannot_be_compared_is_unreadable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = tmp_path / "good.txt"
    good.write_text(words(1, 50))
    contents = {"empty.txt": "", "signs.txt": "... !!!", "list.json": "[]", "broken.json": "{", "none.jsonl": "\n"}
    contents["two.jsonl"] = '{"id": "a", "text": "x"}\n{"id": "b", "text": "y"}\n'
    contents["elsewhere.json"] = json.dumps({"text": words(1, 50), "collection": "elsewhere"})
    for name, content in contents.items():
        (tmp_path / name).write_text(content)
        assert (name, main(["compare", str(good), str(tmp_path / name)])) == (name, 65)
        told = capsys.readouterr()
        assert told.out == ""
        assert told.err.startswith("nearstream: ")
        assert name in told.err or name == "elsewhere.json"
    assert main(["compare", str(good), str(tmp_path / "absent.txt")]) == 65


@pytest.mark.parametrize("name", ["endless.txt", "endless.json"])
def test_no_more_of_a_file_is_read_than_could_be_a_document(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).symlink_to("/dev/zero")
    (tmp_path / "good.txt").write_text(words(1, 50))
    assert main(["compare", str(tmp_path / "good.txt"), str(tmp_path / name)]) == 65
    assert f"{name}: binary" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["large.txt", "large.json", "large.jsonl"])
def test_a_document_above_the_limit_is_refused(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / name).write_text('{"text": "' + "a " * 5_000_000 + '"}')
    (tmp_path / "good.txt").write_text(words(1, 50))
    assert main(["compare", str(tmp_path / "good.txt"), str(tmp_path / name)]) == 65
    assert f"{name}: expected a value of at most" in capsys.readouterr().err


def test_compare_reads_a_file_like_scan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = words(1, 400)
    (tmp_path / "a.txt").write_text(text, "utf-16")
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(json.dumps([{"id": "b", "text": text}]).encode()))
    (tmp_path / "c.json").write_text(json.dumps({"text": text}, indent=1))
    paths = [str(tmp_path / name) for name in ("a.txt", "b.json.gz", "c.json")]
    names = [paths[0], "b", paths[2]]
    for one, other in ((0, 1), (1, 2)):
        assert main(["compare", paths[one], paths[other], "--json"]) == 0
        compared = json.loads(capsys.readouterr().out)
        assert {compared["newer"], compared["older"]} == {names[one], names[other]}
    assert main(["scan", *paths, "--json", "--quiet"]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event["verdict"] for event in events] == ["exact_duplicate", "exact_duplicate"]
    assert [(event["id"], event["of"]["id"]) for event in events] == [(names[1], names[0]), (names[2], names[0])]


@pytest.mark.parametrize(
    ("name", "content"), [("page.jsonl", b"<html>"), ("a.gz", b"text"), ("a.bin", b"a\0b"), ("mail.mbox", b"text")]
)
def test_compare_and_scan_refuse_a_file_for_one_reason(
    name: str, content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "good.txt").write_text(words(1, 50))
    (tmp_path / name).write_bytes(content)
    paths = [str(tmp_path / name), str(tmp_path / "good.txt")]
    assert main(["compare", *paths]) == 65
    refused = capsys.readouterr().err.removeprefix("nearstream: ")
    assert refused.startswith(f"{paths[0]}: ")
    assert main(["scan", *paths, "--quiet"]) == 65
    assert capsys.readouterr().err == f"refused {refused}"


def test_a_picture_shows_each_passage_where_it_stands_in_both() -> None:
    lines = list(picture(passages((0, 320, 320), (320, 0, 320)), 640, 640))
    assert lines[0] == f"newer  |{'a' * 32}{'b' * 32}|"
    assert lines[1] == f"older  |{'b' * 32}{'a' * 32}|"
    assert "crossed" in lines[2]


def test_bars_have_one_scale_while_text_of_one_alone_is_dotted() -> None:
    lines = list(picture(passages((0, 160, 160)), 160, 640))
    assert lines[0] == f"newer  |{'a' * 16}|"
    assert lines[1] == f"older  |{'.' * 16}{'a' * 16}{'.' * 32}|"
    assert "in the same order" in lines[2]


def test_more_passages_than_letters_are_still_drawn() -> None:
    spans = passages(*((at * 100, at * 100, 60) for at in range(30)))
    newer, older, told = picture(spans, 3000, 3000)
    assert "z" in newer
    assert "=" in newer
    assert newer[6:] == older[6:]
    assert told.startswith("30 common passages")


def test_nothing_in_common_is_said() -> None:
    assert list(picture((), 10, 5))[2] == "no common passage"


def _spans(rows: list[dict[str, list[int]]]) -> tuple[Span, ...]:
    return tuple(Span((row["newer"][0], row["newer"][1]), (row["older"][0], row["older"][1])) for row in rows)
