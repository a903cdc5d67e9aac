"""Files, folders and standard input as records of `documents`."""

import io
import json
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from schemas.record import header
from streams.completion import Bounds
from streams.receive import Received, receive
from workers.sources import STDIN, Item, count_lines, read


def received(item: Item) -> Received:
    result = receive(item.record, Bounds())
    assert isinstance(result, Received)
    return result


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two texts, JSON Lines, a hidden file, a folder in the folder."""
    (tmp_path / "b.txt").write_text("second text")
    (tmp_path / "a.txt").write_text("first text")
    (tmp_path / ".hidden").write_text("no")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "c.jsonl").write_text('{"id":"1","text":"third"}\n\n  \n{"id":"2","text":"fourth"}')
    return tmp_path


def test_json_lines_hold_a_document_a_line(tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl"
    path.write_bytes(b'{"id":"a","text":"one"}\n\n \t\n  {"id":"b","text":"two"}  \r\n{broken\n')
    items = list(read([str(path)]))
    assert [item.place for item in items] == [f"{path}:1", f"{path}:4", f"{path}:5"]
    assert [item.record.value for item in items] == [b'{"id":"a","text":"one"}', b'{"id":"b","text":"two"}', b"{broken"]
    assert [received(item).document.id for item in items[:2]] == ["a", "b"]


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson"])
def test_both_endings_of_json_lines_are_known(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text('{"text":"one"}\n{"text":"two"}\n')
    assert len(list(read([str(tmp_path / name)]))) == 2


def test_any_other_file_is_one_text_with_its_path_as_id_and_its_change_as_time(tmp_path: Path) -> None:
    path = tmp_path / "größe.txt"
    path.write_text("some\ntext\n")
    os.utime(path, (1_700_000_000, 1_700_000_000))
    (item,) = read([str(path)])
    document = received(item).document
    assert item.place == document.id == str(path)
    assert document.text == "some\ntext\n"
    assert document.observed_at == datetime.fromtimestamp(1_700_000_000, UTC)
    assert document.lineage is None


def test_a_file_that_is_no_utf8_is_read_with_replacement(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"Br\xfccke")
    (item,) = read([str(tmp_path / "a.txt")])
    assert received(item).document.text == "Br\ufffdcke"
    assert received(item).degraded == ("charset_replaced",)


def test_an_empty_file_is_refused_later_but_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    (item,) = read([str(tmp_path / "a.txt")])
    assert item.record.value == b""


def test_a_folder_is_read_in_order_of_name_without_hidden_files(folder: Path) -> None:
    names = [item.place.removeprefix(f"{folder}/") for item in read([str(folder)])]
    assert names == ["a.txt", "b.txt", "inner/c.jsonl:1", "inner/c.jsonl:4"]


def test_each_document_has_an_offset_of_its_own_across_all_paths(folder: Path) -> None:
    records = [item.record for item in read([str(folder / "b.txt"), str(folder)])]
    assert [(record.topic, record.partition, record.offset) for record in records] == [
        ("input", 0, offset) for offset in range(5)
    ]
    assert all(record.key is None for record in records)


def test_a_record_carries_the_time_of_reading(folder: Path) -> None:
    before = time.time_ns() // 1_000_000
    (item,) = read([str(folder / "a.txt")])
    assert before <= item.record.timestamp_ms <= time.time_ns() // 1_000_000


def test_a_document_of_json_lines_gets_no_header(folder: Path) -> None:
    items = list(read([str(folder / "inner")]))
    assert [item.record.headers for item in items] == [[], []]
    (text,) = read([str(folder / "a.txt")])
    assert header(text.record.headers, "content-type") == b"text/plain; charset=utf-8"


def test_standard_input_is_json_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b'{"text":"one"}\n\n{"text":"two"}')))
    assert [item.place for item in read([STDIN])] == ["standard input:1", "standard input:3"]


def test_counting_agrees_with_reading(folder: Path) -> None:
    assert count_lines([str(folder)]) == len(list(read([str(folder)]))) == 4
    assert count_lines([str(folder / "a.txt"), str(folder / "inner" / "c.jsonl")]) == 3


def test_standard_input_cannot_be_counted(folder: Path) -> None:
    assert count_lines([str(folder), STDIN]) == 0


def test_documents_are_read_one_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl"
    path.write_text("\n".join(json.dumps({"text": str(number)}) for number in range(10)))
    items = read([str(path), str(tmp_path / "missing.txt")])
    assert next(items).place == f"{path}:1"


@pytest.mark.parametrize("name", ["missing.txt", "missing.jsonl", "missing"])
def test_a_path_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileNotFoundError, match=name):
        list(read([str(tmp_path / name)]))


def test_of_a_line_without_end_a_bounded_piece_is_one_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.sources.LINE_MAX_BYTES", 10)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"x" * 25 + b"\nshort\n" + b"y" * 11)
    items = [(item.place, item.record.value) for item in read([str(path)])]
    assert items == [(f"{path}:1", b"x" * 10), (f"{path}:2", b"short"), (f"{path}:3", b"y" * 10)]


def test_hidden_folders_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("not a document")
    (tmp_path / "a.txt").write_text("a document")
    assert [item.place for item in read([str(tmp_path)])] == [str(tmp_path / "a.txt")]
