"""`scan --keep` writes the documents of which enough is new, in the form in which they came."""

import codecs
import csv
import errno
import io
import json
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from nearstream.workers.cli.main import main
from nearstream.workers.files.content import DOCUMENT_MAX_BYTES
from nearstream.workers.operations.keeping import writing
from nearstream.workers.operations.keeping.choosing import Limit
from tests.support.made_up import words

CHANGE = " and here are some ninety more characters that nobody has said so far about any of these rivers"


A, B = (" ".join(words(seed, 800)) for seed in (1, 2))
GROWN = [A, A + CHANGE, A + CHANGE + CHANGE.replace("rivers", "lakes").replace("ninety", "eighty"), B]
NOTHING = ["none was not written", "nearstream: nothing was kept, because nothing could be read"]
ROWS = [json.dumps({"id": f"d{n}", "text": each}).encode() for n, each in enumerate((A, B, A.upper(), A, A + B))]


@pytest.fixture
def scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run `scan` in a folder, expect an exit code, and return what it says."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, code: int = 0) -> str:
        assert main(["scan", "--quiet", *arguments]) == code
        out, said = capfd.readouterr()
        assert out == ""
        return said

    return run


def test_lines_are_kept_byte_for_byte_with_those_that_cannot_be_read(scan: Callable[..., str]) -> None:
    lines = [ROWS[0] + b"  \r\n", ROWS[1] + b"\n", b"\n", ROWS[2] + b"\n", b'{"text": 1}\n', ROWS[3] + b"\n", ROWS[4]]
    Path("in.jsonl").write_bytes(b"".join(lines))
    said = scan("in.jsonl", "--keep", "out.jsonl", code=65)
    assert Path("out.jsonl").read_bytes() == lines[0] + lines[1] + lines[4]
    assert "kept, not decided in.jsonl:5: " in said
    assert "kept 3 of 6 documents, of which 1 could not be read or have no words\ndropped 3, " in said
    assert "it exists" in scan("in.jsonl", "--keep", "out.jsonl", code=74)
    Path("long.jsonl").write_bytes(b'{"text": "' + b"x" * DOCUMENT_MAX_BYTES + b'"}\n' + ROWS[1])
    assert "refused long.jsonl:1: " in scan("long.jsonl", "--keep", "short.jsonl", code=65)
    assert Path("short.jsonl").read_bytes() == ROWS[1] + b"\n"


def test_what_covers_a_dropped_document_is_kept(scan: Callable[..., str]) -> None:
    """Each of these adds less than the limit to the one before it, and the last but one adds more to the first."""
    Path("in.json").write_text(json.dumps([{"id": "same", "text": each} for each in GROWN]))
    scan("in.json", "--keep", "out.jsonl", "--columns", "of,novel,verdict,family", "--report", "r.json")
    kept = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert [row["text"] for row in kept] == [GROWN[0], GROWN[2], GROWN[3]]
    assert [row["of"] for row in kept] == [None, "same", None]
    assert [row["verdict"] for row in kept] == ["unique", "near_duplicate", "unique"]
    assert kept[0]["family"] == kept[1]["family"] != kept[2]["family"]
    told = json.loads(Path("r.json").read_text())
    (dropped,) = told["dropped"]
    assert (dropped["source"], dropped["of"], dropped["verdict"]) == (
        "in.json:1 (document 2)",
        "in.json:1 (document 1)",
        "near_duplicate",
    )
    assert dropped["novel"] == told["lost"] == pytest.approx(len(CHANGE), abs=15)
    assert [step["dropped"] for step in told["limits"] if step["max_new"] in ("0", "100", "500")] == [0, 1, 2]


def test_rows_of_a_csv_file_are_kept_as_they_came(scan: Callable[..., str]) -> None:
    head, cafe = codecs.BOM_UTF8 + b'"no";Body;x\r\n', f'2;"{B};\r\n""caf\u00e9"" ";'.encode("cp1252")
    rows = [
        f'1;"{A}";\r\n'.encode(),
        cafe + b"y\r\n",
        b"3;short\r\n",
        f'4;{A};"z"\r\n'.encode(),
        cafe.replace(b"2", b"5", 1),
    ]
    Path("in.csv").write_bytes(head + b"".join(rows))
    assert "expected a column 'text'" in scan("in.csv", "--keep", "out.csv", code=65)
    assert "(columns: no, Body, x)" in scan("in.csv", "--text-column", "Text", code=65)
    said = scan("in.csv", "--text-column", "Body", "--id-column", "no", "--keep", "out.csv", "--overwrite", code=65)
    assert Path("out.csv").read_bytes() == head + b"".join(rows[:3])
    assert "kept, not decided in.csv:5: expected 3 cells, as the first row has, not 2" in said
    scan("in.csv", "--text-column", "Body", "--keep", "more.csv", "--columns", "novel,of", code=65)
    told = list(csv.reader(io.StringIO(Path("more.csv").read_text("cp1252"), newline=""), delimiter=";"))
    assert [row[3:] for row in told] == [["novel", "of"], [str(len(A)), ""], [told[2][3], ""], []]


def test_rows_of_a_parquet_file_are_kept_with_their_types(scan: Callable[..., str]) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    texts = [" ".join(words(n, 60)) for n in range(200)]
    rows = {"text": [*texts, texts[7], None], "n": [*range(201), 7], "tags": [["a", "b"]] * 202}
    pq.write_table(pa.table(rows), "in.parquet", row_group_size=50)
    said = scan("in.parquet", "--keep", "out.parquet", "--columns", "novel", code=65)
    assert "kept, not decided in.parquet:202: expected a text, not null" in said
    found = pq.read_table("out.parquet")
    assert found.schema.names == ["text", "n", "tags", "novel"]
    assert found.column("n").to_pylist() == [*range(200), 7]
    assert found.column("text").to_pylist() == [*texts, None]
    assert [found.column("novel").to_pylist()[at] for at in (7, -1)] == [len(texts[7]), None]
    Path("broken.parquet").write_bytes(Path("in.parquet").read_bytes()[:-9])
    assert "damaged" in scan("broken.parquet", code=65)
    pq.write_table(pa.table({"text": [A.encode()]}), "bytes.parquet")
    assert scan("bytes.parquet", "--keep", "none", code=65).splitlines()[1:] == NOTHING
    pq.write_table(pq.read_table("in.parquet")[:0], "none.parquet")
    scan("none.parquet", "--keep", "none", "--columns", "novel")
    assert (found[:0]).equals(pq.read_table("none"))


def test_of_a_table_without_rows_the_head_is_kept(scan: Callable[..., str]) -> None:
    Path("in.csv").write_text("id,text\n")
    scan("in.csv", "--keep", "out.csv", "--columns", "of")
    assert Path("out.csv").read_text() == "id,text,of\n"


def test_a_later_run_with_an_index_keeps_what_is_in_none_of_the_earlier_runs(scan: Callable[..., str]) -> None:
    """Each day brings a file of one name, whose lines have other texts and perhaps no ids."""
    days, kept = ([A, B], [A + B, A, CHANGE * 9], [B, CHANGE * 9 + A]), []
    for day in days:
        Path("day.jsonl").write_text("\n".join(json.dumps({"text": each}) for each in day))
        scan("day.jsonl", "--keep", "out", "--overwrite", "--index", "seen.db", "--report", "r.json")
        kept += [json.loads(line)["text"] for line in Path("out").read_text().splitlines()]
    assert kept == [A, B, CHANGE * 9]
    dropped = json.loads(Path("r.json").read_text())["dropped"]
    assert [re.sub(r" \(2.*\)", "", each["of"]) for each in dropped] == ["day.jsonl:2", "day.jsonl:1"]
    assert sorted(os.listdir()) == ["day.jsonl", "out", "r.json", "seen.db"]


def test_files_of_one_document_are_listed(scan: Callable[..., str]) -> None:
    Path("in").mkdir()
    for name, content in {"a.txt": A, "b.html": f"<!doctype html><p>{B}", "c.txt": A, "d.bin": "\0\1"}.items():
        Path("in", name).write_text(content)
    scan("in", "--keep", "list", "--report", "page.html", "--columns", "verdict,of", code=65)
    assert Path("list").read_text() == "in/a.txt\tunique\t\nin/b.html\tunique\t\n"
    page = Path("page.html").read_text()
    assert "in/a.txt: 1 dropped" in page
    assert "<li>in/c.txt: exact_duplicate, 0 new of " in page
    Path("rows.jsonl").write_bytes(ROWS[1])
    said = scan("in/a.txt", "rows.jsonl", "--keep", "l", code=65)
    assert "rows.jsonl:1: expected files of one document as before, not JSON" in said
    assert not Path("l").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["--keep", "in/out.jsonl"], 2, "it is among what is read"),
        (["--keep", "in/a.jsonl", "--overwrite"], 2, "it is among what is read"),
        (["--index", "in/seen.db"], 2, "write it elsewhere, or begin its name with a dot"),
        (["--keep", "out.jsonl.gz"], 2, "name a file without .gz"),
        (["--keep", "no/out.jsonl"], 74, "expected the name of a file, in a folder that is there"),
        (["--keep", "out.jsonl", "--columns", "of"], 2, "have a column 'of' already"),
        (["--keep", "out.jsonl", "--all"], 2, "expected --keep without --all"),
        (["--max-new", "5%"], 2, "expected --keep OUT with --max-new"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    arguments: list[str], code: int, expected: str, scan: Callable[..., str]
) -> None:
    Path("in").mkdir()
    Path("in/a.jsonl").write_bytes(b'{"of": 1, ' + ROWS[0][1:])
    assert expected in scan("in", *arguments, code=code)
    assert os.listdir() == ["in"]


FULL = OSError(errno.ENOSPC, "No space")


@pytest.mark.parametrize(("failure", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 130), (FULL, 74)])
def test_an_end_before_the_end_leaves_no_file(
    failure: signal.Signals | OSError,
    code: int,
    scan: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Path("in.jsonl").write_bytes(b"\n".join(ROWS))
    Path("out.jsonl").write_text("from before")

    def fail(*_: object) -> None:
        if isinstance(failure, OSError):
            raise failure
        signal.raise_signal(failure)

    written = "--keep", "out.jsonl", "--report", "r.html", "--overwrite", "--index", "seen.db"
    with monkeypatch.context() as failing:
        failing.setattr(writing.KeptFile, "close", fail)
        assert "out.jsonl was not written" in scan("in.jsonl", *written, code=code)
    assert sorted(os.listdir()) == ["in.jsonl", "out.jsonl", "seen.db"]
    assert Path("out.jsonl").read_text() == "from before"
    assert scan("in.jsonl", *written).startswith("kept 2 of 5 documents")  # the index has nothing of the first run


@pytest.mark.parametrize(
    ("limit", "new", "characters", "drops"),
    [
        (Limit(), 100, 2000, True),
        (Limit(), 101, 9000, False),
        (Limit(), 60, 200, False),
        (Limit(3, is_percent=True), 300, 10_000, True),
        (Limit(3, is_percent=True), 301, 10_000, False),
    ],
)
def test_a_limit_counts_characters_and_their_share(limit: Limit, new: int, characters: int, drops: bool) -> None:
    assert limit.drops(new, characters) is drops


def test_json_lines_of_a_dataset_may_have_any_fields(scan: Callable[..., str]) -> None:
    deep = f'{{"body": "{A}", "x": {"[" * 100_000}{"]" * 100_000}}}'
    rows = [{"n": n, "body": text, "source": "A wiki", "labels": 3, "lineage": n} for n, text in enumerate((A, B, A))]
    Path("in.jsonl").write_text("\n".join([*map(json.dumps, rows), deep]))
    said = scan("in.jsonl", "--keep", "out.jsonl", "--text-column", "body", "--id-column", "n", code=65)
    assert "kept, not decided in.jsonl:4: expected a JSON object with a text as 'body'" in said
    assert "nothing could be read" in scan("in.jsonl", "--keep", "none", "--text-column", "Body", code=65)
    *kept, last = Path("out.jsonl").read_text().splitlines()
    assert (list(map(json.loads, kept)), last) == (rows[:2], deep)


def test_nothing_is_replaced_by_what_could_not_be_read(scan: Callable[..., str]) -> None:
    Path("in.csv").write_text("no;body\n1;x\n")
    Path("twice.csv").write_text("text;text\na;b\n")
    Path("open.csv").write_text("text\n" + 40 * f'"{"x" * 1_000_000}\n",')
    Path("out").write_text("before")
    assert "nothing could be read" in scan("in.csv", "--keep", "out", "--overwrite", code=65)
    assert "expected one column 'text', not 2" in scan("twice.csv", "--keep", "out", "--overwrite", code=65)
    assert "open.csv: a row has more than 32 MiB" in scan("open.csv", "--keep", "out", "--overwrite", code=65)
    assert Path("out").read_text() == "before"
    Path("link").symlink_to("out")
    for target in ("link", os.devnull, ".", "nowhere/out"):
        assert "expected the name of a file" in scan("in.csv", "--keep", target, "--overwrite", code=74)
    assert "expected another file for each of --keep, --report and --index" in scan(
        "in.csv", "--keep", "new", "--report", "new", code=2
    )
