"""Files, folders and standard input as records of `documents`."""

import gzip
import json
import os
import sys
import time
import tracemalloc
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from itertools import accumulate
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest

from nearstream.schemas.documents.record import ConsumerRecord, header
from nearstream.streams.ingest.defaults import DocumentLimits
from nearstream.streams.ingest.parse import INFLATED_MAX_BYTES, ParsedDocument, parse_record
from nearstream.workers.crawl import warc
from nearstream.workers.files.content import zstd
from nearstream.workers.files.source import STDIN, Item, Refused, count_lines, read
from tests.support.warc import Crawl

ROWS = [b'{"id":"a","text":"one"}', b'{"id":"b","text":"two"}', b'{"id":"c","text":"three"}']
LINES = b"\n".join(ROWS) + b"\n"
gz = partial(gzip.compress, mtime=0)  # test processes must make equal names of parameters
PACKED: dict[str, Callable[[bytes], bytes]] = {"gz": gz, "zst": zstd.compress}


def received(item: Item | Refused) -> ParsedDocument:
    assert isinstance(item, Item), item
    result = parse_record(item.record, DocumentLimits())
    assert isinstance(result, ParsedDocument)
    return result


def records(paths: Iterable[str | Path]) -> list[ConsumerRecord]:
    """Return the records of these paths, none of which may be refused."""
    items = list(read(map(str, paths)))
    assert [item for item in items if isinstance(item, Refused)] == []
    return [item.record for item in items if isinstance(item, Item)]


def values(path: Path) -> list[bytes | None]:
    return [record.value for record in records([path])]


def refusal(path: Path) -> str:
    """Return why the file is refused. Nothing of it may be read."""
    (item,) = read([str(path)])
    assert isinstance(item, Refused)
    assert item.source == str(path)
    return item.reason


def file(folder: Path, name: str, content: bytes) -> Path:
    (folder / name).write_bytes(content)
    return folder / name


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with two texts, JSON Lines, a hidden file, and a hidden folder."""
    (tmp_path / "b.txt").write_text("second text")
    (tmp_path / "a.txt").write_text("first text")
    (tmp_path / ".hidden").write_text("no")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("not a document")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "c.jsonl").write_text('{"id":"1","text":"third"}\n\n  \n{"id":"2","text":"fourth"}')
    return tmp_path


def test_json_lines_hold_a_document_a_line(tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl"
    path.write_bytes(b'{"id":"a","text":"one"}\n\n \t\n  {"id":"b","text":"two"}  \r\n{broken\n')
    items = list(read([str(path)]))
    assert [item.source for item in items] == [f"{path}:1", f"{path}:4", f"{path}:5"]
    assert values(path) == [b'{"id":"a","text":"one"}', b'{"id":"b","text":"two"}', b"{broken"]
    assert [received(item).document.id for item in items[:2]] == ["a", "b"]


def test_any_other_file_is_one_text_with_its_path_as_id_and_its_change_as_time(tmp_path: Path) -> None:
    path = tmp_path / "größe.txt"
    path.write_text("some\ntext\n")
    os.utime(path, (1_700_000_000, 1_700_000_000))
    (item,) = read([str(path)])
    document = received(item).document
    assert item.source == document.id == str(path)
    assert document.text == "some\ntext\n"
    assert document.observed_at == datetime.fromtimestamp(1_700_000_000, UTC)
    assert document.lineage is None


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no file system for such times")  # noqa: S108
def test_a_time_of_change_that_no_calendar_holds_is_refused() -> None:
    with TemporaryDirectory(dir="/dev/shm") as folder:
        path = file(Path(folder), "a.txt", b"text")
        os.utime(path, (1 << 40, 1 << 40))
        assert "outside the years 1 to 9999" in refusal(path)


def test_a_text_with_a_byte_that_is_no_utf8_is_read_with_replacement(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("Die größte Brücke führt über den Fluß".encode() + b" \xfc.")
    (item,) = read([str(tmp_path / "a.txt")])
    assert received(item).document.text == "Die größte Brücke führt über den Fluß \ufffd."
    assert received(item).degraded == ("charset_replaced",)


GERMAN = "Die alte Brücke über den Fluss ist gesperrt, weil das größte Lager für Möbel gestern früh gebrannt hat."
POLISH = "Stary most nad rzeką jest zamknięty, ponieważ wczoraj rano spłonął największy skład mebli."
RUSSIAN = "Северные ворота порта будут закрыты во вторник, поэтому грузовики едут по восточному пандусу."
FRENCH = "Le vieux pont est fermé, parce que le plus grand dépôt a brûlé hier. « Passez par là », dit l\u2019employé."
ENCODED = [
    *((GERMAN, charset) for charset in ("latin-1", "utf-16-be", "utf-16")),
    *((POLISH, charset) for charset in ("iso8859-2", "cp1250", "utf-16-le")),
    *((RUSSIAN, charset) for charset in ("cp1251", "koi8-r", "iso8859-5")),
    (FRENCH, "cp1252"),
]


def test_a_text_is_read_in_its_charset(tmp_path: Path) -> None:
    for text, charset in ENCODED:
        name = file(tmp_path, "a.txt", text.encode(charset))
        (item,) = read([str(name)])
        assert (received(item).document.text, received(item).degraded) == (text, ())


def test_an_empty_text_is_refused_but_empty_json_lines_hold_no_document(tmp_path: Path) -> None:
    assert refusal(file(tmp_path, "a.txt", b"")) == "the file is empty"
    assert refusal(file(tmp_path, "b.txt.gz", gz(b""))) == "the file is empty"
    assert "expected a JSON object or array" in refusal(file(tmp_path, "c.json", b" \n"))
    for name, content in (
        ("d.jsonl", b""),
        ("e.jsonl", b"\n \n"),
        ("f.jsonl.gz", gz(b"")),
        ("g.json", b"[]"),
    ):
        assert values(file(tmp_path, name, content)) == []


def test_a_folder_is_read_in_order_of_name_without_hidden_files(folder: Path) -> None:
    names = [item.source.removeprefix(f"{folder}/") for item in read([str(folder)])]
    assert names == ["a.txt", "b.txt", "inner/c.jsonl:1", "inner/c.jsonl:4"]


def test_each_document_has_an_offset_of_its_own_across_all_paths(folder: Path) -> None:
    before = time.time_ns() // 1_000_000
    found = records([folder / "b.txt", folder])
    assert all(before <= record.timestamp_ms <= time.time_ns() // 1_000_000 for record in found)
    assert [header(record.headers, "content-type") for record in found] == [*[b"text/plain"] * 3, None, None]
    assert [(record.topic, record.partition, record.offset) for record in found] == [
        ("input", 0, offset) for offset in range(5)
    ]
    assert all(record.key is None for record in found)


@pytest.mark.parametrize(
    "content",
    [
        b"\n\n".join(ROWS),
        b"\n[\n" + b",".join(ROWS) + b"]",
        gz(LINES),
        b"[" + b",\n".join(ROWS) + b"]",
        LINES.decode().encode("utf-16"),
    ],
)
def test_standard_input_is_recognised_like_a_file(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with file(tmp_path, "given", content).open() as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        items = list(read([STDIN]))
    assert [received(item).document.id for item in items] == ["a", "b", "c"]
    assert all(item.source.startswith("standard input:") for item in items)


def test_an_idle_pipe_is_not_taken_for_an_ended_one(monkeypatch: pytest.MonkeyPatch) -> None:
    out, given = os.pipe()
    os.set_blocking(out, False)
    with os.fdopen(out) as stream, os.fdopen(given, "wb", buffering=0) as pipe:
        monkeypatch.setattr(sys, "stdin", stream)
        pipe.write(ROWS[0] + b"\n")
        items = read([STDIN])
        assert next(items).source == "standard input:1"  # before the pipe ends
        assert os.get_blocking(out)


def test_a_closed_standard_input_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert list(read([STDIN])) == [Refused("standard input", "it is closed, redirect it from a file or a pipe")]


def test_counting_agrees_with_reading(folder: Path) -> None:
    assert count_lines([str(folder)]) == len(list(read([str(folder)]))) == 4
    assert count_lines([str(folder / "a.txt"), str(folder / "inner" / "c.jsonl")]) == 3
    assert count_lines([str(folder), STDIN]) == 0


def test_a_path_that_cannot_be_read_is_named_and_the_others_are_read(folder: Path) -> None:
    for name in ("missing.txt", "missing.jsonl", "missing", ""):
        path = str(folder / name) if name else ""
        items = list(read([str(folder / "a.txt"), path, str(folder / "b.txt")]))
        assert [item.source for item in items] == [str(folder / "a.txt"), path, str(folder / "b.txt")]
        assert items[1] == Refused(path, "No such file or directory")


def test_what_cannot_be_read_in_a_folder_is_named(folder: Path) -> None:
    (folder / "loop").symlink_to("loop")
    (folder / "gone").symlink_to("nowhere")
    os.mkfifo(folder / "pipe")
    refused = {item.source: item.reason for item in read([str(folder)]) if isinstance(item, Refused)}
    assert refused == {
        str(folder / "loop"): "Too many levels of symbolic links",
        str(folder / "gone"): "No such file or directory",
    }
    assert count_lines([str(folder)]) == 6


def test_a_folder_that_cannot_be_listed_is_named(folder: Path) -> None:
    items = read([str(folder)])
    assert next(items).source == str(folder / "a.txt")
    (folder / "inner" / "c.jsonl").unlink()
    (folder / "inner").rmdir()
    assert list(items)[1:] == [Refused(str(folder / "inner"), "No such file or directory")]


def test_of_a_document_without_end_a_bounded_piece_is_one_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("content", "source"):
        monkeypatch.setattr(f"nearstream.workers.files.{module}.DOCUMENT_MAX_BYTES", 10)
    path = file(tmp_path, "a.jsonl", b"x" * 25 + b"\nshort\n" + b"y" * 11)
    items = [(item.source, item.record.value) for item in read([str(path)]) if isinstance(item, Item)]
    assert items == [(f"{path}:1", b"x" * 10), (f"{path}:2", b"short"), (f"{path}:3", b"y" * 10)]
    assert values(file(tmp_path, "a.json", b'[{"text": "longer"}, {}, {"a": []}]')) == [
        b'{"text": "',
        b"{}",
        b'{"a": []}',
    ]
    assert values(file(tmp_path, "a.txt", b"z" * 11)) == [b"z" * 10]


# ---- compressed files


def test_compressed_documents_are_read_under_any_name(tmp_path: Path) -> None:
    for name in ("a.jsonl", "a.ndjson", "a.json", "a.txt", "a"):
        for suffix in PACKED:
            for path in (tmp_path / f"{name}.{suffix}", tmp_path / name, tmp_path / f"{name}.{suffix.upper()}"):
                path.write_bytes(PACKED[suffix](LINES))
                assert values(path) == ROWS


def test_a_compressed_text_is_one_document(tmp_path: Path) -> None:
    for suffix in PACKED:
        path = file(tmp_path, f"a.txt.{suffix}", PACKED[suffix](b"some text"))
        (item,) = read([str(path)])
        assert (received(item).document.id, received(item).document.text) == (str(path), "some text")


def test_all_members_of_a_compressed_file_are_read(tmp_path: Path) -> None:
    for suffix in PACKED:
        pack = PACKED[suffix]
        members = pack(LINES[:30]) + pack(b"") + pack(LINES[30:])
        assert values(file(tmp_path, f"a.jsonl.{suffix}", members)) == ROWS
    skipped = b"\x5e\x2a\x4d\x18\x04\0\0\0abcd"  # a frame that zstd passes over
    assert values(file(tmp_path, "a.jsonl.zst", skipped + zstd.compress(LINES))) == ROWS


def many(count: int) -> bytes:
    """Return JSON Lines that do not compress well."""
    random = Random(1)
    return b"".join(b'{"text":"%s"}\n' % random.randbytes(50).hex().encode() for _ in range(count))


def test_what_precedes_the_damage_of_a_compressed_file_is_read(tmp_path: Path) -> None:
    for suffix in PACKED:
        lines = many(20_000)
        packed = PACKED[suffix](lines)
        middle = len(packed) // 2
        for content, reason in (
            (packed[:middle], "is cut off"),
            (packed[:-1], "is cut off"),
            (packed + b"something else", "is damaged"),
        ):
            *items, last = read([str(file(tmp_path, f"a.jsonl.{suffix}", content))])
            assert items
            assert [item.record.value for item in items if isinstance(item, Item)] == lines.splitlines()[: len(items)]
            assert isinstance(last, Refused)
            assert reason in last.reason
            assert f"(found before that: {len(items)} document" in last.reason


def test_damage_that_only_a_checksum_shows_is_refused_too(tmp_path: Path) -> None:
    checked = zstd.compress(LINES, options={zstd.CompressionParameter.checksum_flag: 1})
    for suffix, content in (("gz", gz(LINES)[:-8] + bytes(8)), ("zst", checked[:-4] + bytes(4))):
        *_, last = read([str(file(tmp_path, f"a.jsonl.{suffix}", content))])
        assert isinstance(last, Refused)
        assert "is damaged" in last.reason
    assert "secret" not in refusal(file(tmp_path, "a.gz", gz(b"x" * 10) + b"secret"))


def test_a_compressed_text_that_is_cut_off_is_no_shorter_text(tmp_path: Path) -> None:
    for suffix in PACKED:
        packed = PACKED[suffix](many(5000)[1:])
        assert "is cut off" in refusal(file(tmp_path, f"a.txt.{suffix}", packed[:-1]))
        assert "is cut off" in refusal(file(tmp_path, f"b.txt.{suffix}", packed[:5]))


def test_a_file_named_compressed_has_to_be(tmp_path: Path) -> None:
    for name in ("a.gz", "a.jsonl.gz", "a.txt.zst", "a.json.GZ"):
        for content in (b"", b"text", b"\x1f", b"{}"):
            assert refusal(file(tmp_path, name, content)) == "expected gzip or zstd, as the name says"


@pytest.mark.parametrize(("name", "suffix"), [("a.jsonl", "gz"), ("a.json", "zst")])
def test_a_small_file_never_expands_to_a_large_one(tmp_path: Path, name: str, suffix: str) -> None:
    count = 5 * INFLATED_MAX_BYTES
    packer = zlib.compressobj(wbits=31) if suffix == "gz" else zstd.ZstdCompressor()
    pieces = [packer.compress(b'{"text":"')]
    pieces += [packer.compress(b"a" * (1 << 20)) for _ in range(count >> 20)]
    path = file(tmp_path, f"{name}.{suffix}", b"".join([*pieces, packer.flush()]))
    tracemalloc.start()
    try:
        assert "expands to more than 100 times its size" in refusal(path)
        assert tracemalloc.get_traced_memory()[1] < 2 * INFLATED_MAX_BYTES
    finally:
        tracemalloc.stop()


def test_equal_documents_may_compress_well(tmp_path: Path) -> None:
    for suffix in PACKED:
        lines = many(10) * 1000
        packed = PACKED[suffix](lines)
        assert len(lines) > 100 * len(packed)
        assert len(values(file(tmp_path, f"a.jsonl.{suffix}", packed))) == 10_000


# ---- JSON


ARRAY = b"[\n" + b",\n".join(ROWS) + b"\n]\n"


def test_a_json_array_holds_documents(tmp_path: Path) -> None:
    path = file(tmp_path, "a.json", b"[\n{},{\n},\n{}]")
    places = [item.source.removeprefix(str(path)) for item in read([str(path)])]
    assert places == [":2 (document 1)", ":2 (document 2)", ":4 (document 3)"]
    for content in (ARRAY, b" \r\n[ " + b",".join(ROWS) + b"]", b"\xef\xbb\xbf" + ARRAY):
        for name in ("a.json", "a.jsonl", "a.ndjson", "a", "a.txt", "a.JSON"):
            assert values(file(tmp_path, name, content)) == ROWS


def test_brackets_and_escapes_within_texts_do_not_split_an_array(tmp_path: Path) -> None:
    texts = ["]}", '"', '\\"', "\\", "{[,", '\\\\"},{"text":"', "ü\u2028\n", ""]
    rows = [json.dumps({"id": str(number), "text": text}).encode() for number, text in enumerate(texts)]
    for size in (1, 2, 3, 7, 64 * 1024):
        monkey = pytest.MonkeyPatch()
        monkey.setattr("nearstream.workers.files.content.PIECE_BYTES", size)
        assert values(file(tmp_path, "a.json", b"[" + b",".join(rows) + b"]")) == rows
        monkey.undo()


def test_a_broken_document_of_an_array_does_not_affect_the_others(tmp_path: Path) -> None:
    broken = [b"{nope}", b"5", b'"text"', b"[{}]", b"null", b'{"text":}']
    content = b"[" + b",".join([ROWS[0], *broken, ROWS[1]]) + b",]"
    assert values(file(tmp_path, "a.json", content)) == [ROWS[0], *broken, ROWS[1]]


def test_an_array_that_is_not_closed_is_refused_after_its_documents(tmp_path: Path) -> None:
    for end in (b"", b",", b"\n"):
        path = file(tmp_path, "a.json", b"\n[" + b",".join(ROWS) + end)
        *items, last = read([str(path)])
        assert len(items) == 3
        assert last == Refused(
            str(path), "the array that begins in line 2 is not closed (found before that: 3 documents)"
        )


def test_a_json_file_holds_one_document_with_its_path_as_id(tmp_path: Path) -> None:
    path = file(tmp_path, "a.json", b'{\n  "text": "some text"\n}\n')
    (item,) = read([str(path)])
    assert item.source == f"{path}:1"
    assert received(item).document.id == str(path)


def test_a_json_file_may_hold_lines_or_several_objects(tmp_path: Path) -> None:
    path = file(tmp_path, "lines.json", ROWS[0] + b"\n{broken\n" + ROWS[1])
    assert values(path) == [ROWS[0], b"{broken", ROWS[1]]
    objects = [json.dumps(json.loads(row), indent=2).encode() for row in ROWS]
    assert values(file(tmp_path, "objects.json", b"\n".join(objects))) == objects


def test_a_file_that_says_nothing_by_its_name_is_json_only_if_it_holds_documents(tmp_path: Path) -> None:
    assert values(file(tmp_path, "a", LINES)) == ROWS
    for text in (b'{"name": "x", "version": 1}', b"[1] A note", b"{{template}} text", b'[{"a": 1}]'):
        (item,) = read([str(file(tmp_path, "b", text))])
        assert received(item).document.text == text.decode()


def test_line_ends_and_marks_of_windows_are_no_part_of_a_document(tmp_path: Path) -> None:
    for content in (LINES.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + LINES):
        assert values(file(tmp_path, "a.jsonl", content)) == ROWS


# ---- encodings


def test_a_byte_order_mark_names_the_encoding(tmp_path: Path) -> None:
    for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"):
        mark = "" if encoding in {"utf-16", "utf-32"} else "\ufeff"
        lines = "".join(f'{{"id":"{number}","text":"größe 😀"}}\n' for number in range(3000))
        for name, content in (("a.jsonl", lines), ("a.json", f"[{lines.strip().replace(chr(10), ',')}]")):
            path = file(tmp_path, name, (mark + content).encode(encoding))
            assert values(path) == lines.encode().splitlines()
            assert values(file(tmp_path, f"{name}.gz", gz(path.read_bytes()))) == lines.encode().splitlines()
        (item,) = read([str(file(tmp_path, "a.txt", (mark + "größe 😀").encode(encoding)))])
        assert received(item).document.text == "größe 😀"
        assert received(item).degraded == ()


def test_a_mark_that_the_text_does_not_fit_is_named(tmp_path: Path) -> None:
    for content in (b"\xff\xfea\0\0\xd8a\0", b"\xff\xfea\0b"):
        assert refusal(file(tmp_path, "a.txt", content)) == "expected utf-16-le as its byte order mark says"


# ---- what is no text


NUL = "binary, or UTF-16 without a byte order mark: it has a NUL byte"


def test_a_binary_file_is_refused_with_a_reason(tmp_path: Path) -> None:
    for name in ("a", "a.txt", "a.jsonl"):
        for content, reason in (
            (b"some text\nand\0more", f"{NUL} (line 2, byte 13)"),
            (bytes(range(1, 256)), "binary, or a text that is not UTF-8 (line 2, byte 127): convert a text with iconv"),
            (b"\x01\x02\x03text", "binary, or a text that is not UTF-8: convert a text with iconv"),
            (b"%PDF-1.7\n", "binary (PDF): send its text"),
            (b"PK\x03\x04\n", "binary (zip archive or office document): send its text"),
            (b"\x89PNG\r\n\x1a\n", "binary (PNG image)"),
            (b"\xff\xd8\xff\xe0", "binary (JPEG image)"),
            (b"GIF89a", "binary (GIF image)"),
            (b"BZh91AY&SY", "binary (bzip2): unpack it first"),
            (b"\xfd7zXZ\0", "binary (xz): unpack it first"),
            (b"\x04\x22\x4d\x18d@", "binary (lz4): unpack it first"),
            (gz(gz(b"text")), "binary (compressed twice): unpack it first"),
            (b"\x1f\x8b\x08\x08text", "the gzip stream is cut off"),
        ):
            assert refusal(file(tmp_path, name, content)) == reason


def test_lines_of_json_in_another_charset_are_refused(tmp_path: Path) -> None:
    for charset in ("utf-16-be", "utf-16-le", "cp1251"):
        assert refusal(file(tmp_path, "a.jsonl", "вода в реке".encode(charset))).startswith("binary, or ")
        wide = "{text}\n".encode("utf-16-le")
        assert refusal(file(tmp_path, "b.jsonl", wide)) == f"{NUL} (line 1, byte 1)"
        assert values(file(tmp_path, "b.txt", wide)) == [wide]


def test_a_line_with_a_nul_byte_does_not_affect_the_others(tmp_path: Path) -> None:
    content = ROWS[0] + b"\n" + bytes(4096) + b"\n" + ROWS[1]
    assert values(file(tmp_path, "a.jsonl", content)) == [ROWS[0], bytes(4096), ROWS[1]]


def test_a_page_is_sent_as_it_is_with_its_path_as_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, content in (
        ("a.html", b"text"),
        ("a.HTM", b"text in \xfcmlauts"),
        ("a.xhtml", b"text"),
        ("a.html.gz", b"text"),
        ("a.txt", b"\n <!DOCTYPE html>\n"),
        ("a", b'<?xml version="1.0"?>\n<!-- a -->\n<html lang="en">'),
    ):
        path = file(tmp_path, name, gz(content) if name.endswith(".gz") else content)
        (item,) = read([str(path)])
        document = received(item).document
        assert (document.id, document.raw, document.content_type) == (str(path), content, "text/html")
        assert count_lines([str(path)]) == 1
    with file(tmp_path, "given", b"<!doctype html><p>text").open() as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        (item,) = read([STDIN])
    document = received(item).document
    assert document.raw == b"<!doctype html><p>text"
    assert document.id  # made of the text, as standard input has no path
    assert "-" not in document.id


def test_a_page_in_place_of_json_is_refused(tmp_path: Path) -> None:
    assert refusal(file(tmp_path, "a.jsonl", b"<html><body>Not found")).startswith("HTML, but JSON is expected")


@pytest.mark.parametrize("name", ["a.warc", "a.warc.gz", "a"])
def test_the_pages_of_a_warc_file_are_read_and_the_rest_is_counted(tmp_path: Path, name: str) -> None:
    crawl = Crawl(packed=name.endswith(".gz"))
    crawl.response("http://a.example/x?b=1&a=2#part", "<p>größe".encode())
    crawl.revisit("http://a.example/x")
    passed_over = Counter[str]()
    (item,) = read([str(file(tmp_path, name, crawl.content()))], passed_over=passed_over)
    parsed = received(item)
    document = parsed.document
    assert (document.raw, document.content_type) == ("<p>größe".encode(), "text/html; charset=utf-8")
    assert (document.url, document.source) == ("http://a.example/x?b=1&a=2#part", "crawler")
    assert parsed.record_key == document.id == document.lineage == "http://a.example/x?a=2&b=1"
    assert document.observed_at == datetime(2026, 3, 2, 8, 15, tzinfo=UTC)
    assert "(record at byte " in item.source
    assert passed_over == {"no_response": 1, "revisit": 1}
    assert count_lines([str(tmp_path / name)]) == 0


def test_the_document_of_a_page_that_a_crawler_has_cut_off_says_so(tmp_path: Path) -> None:
    crawl = Crawl()
    crawl.response("http://a.example/x", b"<p>some")
    content = crawl.content().replace(b"WARC-Type: response", b"WARC-Truncated: length\r\nWARC-Type: response")
    (item,) = read([str(file(tmp_path, "a.warc", content))])
    assert received(item).degraded == ("truncated",)


def crawled(count: int) -> list[bytes]:
    """Return WARC records of pages of 6.5 KB, which do not compress well."""
    records, random = [], Random(1)
    for number in range(count):
        crawl = Crawl()
        start = len(crawl.content())
        body = f"<html><p>page {number} " + "".join(random.choices("abcdefghijklmnopqrstuvwxyz ", k=6_500))
        crawl.response(f"http://a.example/{number}", body.encode())
        records.append(crawl.content()[start:])
    return records


def unpacked_start(packed: bytes, suffix: str) -> bytes:
    """Return what can be unpacked of members or frames, of which the last one is cut off."""
    content = b""
    while packed:
        stream = zlib.decompressobj(31) if suffix == "gz" else zstd.ZstdDecompressor()
        content += stream.decompress(packed)
        packed = stream.unused_data
    return content


def test_of_a_compressed_warc_file_that_is_cut_off_all_whole_records_are_read(tmp_path: Path) -> None:
    for is_one_stream in (True, False):
        for count in (1, 3, 30):
            for suffix in PACKED:
                records, packed = crawled(count), PACKED[suffix]
                whole = packed(b"".join(records)) if is_one_stream else b"".join(map(packed, records))
                for cut in (1, 9, 200, len(packed(records[-1])) // 2, 4_000):
                    *items, refused = read([str(file(tmp_path, f"a.warc.{suffix}", whole[:-cut]))])
                    assert isinstance(refused, Refused)
                    assert refused.reason.startswith(f"the {'gzip' if suffix == 'gz' else 'zstd'} stream is cut off")
                    readable = len(unpacked_start(whole[:-cut], suffix)) + len(b"\r\n\r\n")
                    ends = accumulate(map(len, records))
                    assert (
                        sum(isinstance(item, Item) for item in items)
                        == sum(end <= readable for end in ends)
                        >= count - 20
                    )


def test_what_precedes_the_damaged_member_of_a_warc_file_is_read(tmp_path: Path) -> None:
    members = [bytearray(gz(record)) for record in crawled(30)]
    members[20][100:110] = b"0" * 10
    *items, refused = read([str(file(tmp_path, "a.warc.gz", b"".join(members)))])
    assert isinstance(refused, Refused)
    assert "damaged" in refused.reason
    assert sum(isinstance(item, Item) for item in items) == 20


def dictionary() -> zstd.ZstdDict:
    return zstd.train_dict(crawled(40), 16 * 1024)


@pytest.mark.parametrize("is_packed", [True, False])
def test_a_warc_file_is_read_with_the_zstd_dictionary_that_it_begins_with(tmp_path: Path, is_packed: bool) -> None:
    trained, records = dictionary(), crawled(5)
    stored = zstd.compress(trained.dict_content) if is_packed else trained.dict_content
    start = b"\x5d\x2a\x4d\x18" + len(stored).to_bytes(4, "little") + stored
    frames = b"".join(zstd.compress(record, zstd_dict=trained) for record in records)
    items = list(read([str(file(tmp_path, "a.warc.zst", start + frames))]))
    assert [isinstance(item, Item) for item in items] == [True] * 5
    other = zstd.train_dict([record[::-1] for record in crawled(40)], 16 * 1024)
    frames = b"".join(zstd.compress(record, zstd_dict=other) for record in records)
    assert f"needs the dictionary {other.dict_id}" in refusal(file(tmp_path, "a.warc.zst", start + frames))


def test_a_file_that_needs_another_zstd_dictionary_is_said_to(tmp_path: Path) -> None:
    trained = dictionary()
    packed = zstd.compress(b"".join(crawled(3)), zstd_dict=trained)
    reason = refusal(file(tmp_path, "a.warc.zst", packed))
    assert reason.startswith(f"the zstd stream needs the dictionary {trained.dict_id}, which the file does not hold")
    assert "expected" not in reason
    large = b"\x5d\x2a\x4d\x18\xff\xff\xff\x7f"
    assert "its zstd dictionary has more than" in refusal(file(tmp_path, "b.warc.zst", large + packed))


def test_a_file_in_arc_names_what_makes_a_warc_file_of_it(tmp_path: Path) -> None:
    content = b"filedesc://a.arc 0.0.0.0 20260302081500 text/plain 12\n1 0 crawler\n\n"
    for name in ("a.arc.gz", "a"):
        assert "warcio recompress" in refusal(file(tmp_path, name, gz(content) if name.endswith("gz") else content))


def test_a_page_of_a_warc_file_is_read_under_each_url_that_redirects_to_it(tmp_path: Path) -> None:
    crawl = Crawl()
    crawl.response("http://a.example/new", b"<p>text")
    for name in ("http://a.example/old", "http://b.example/"):
        crawl.response(name, b"", status="301 Moved", headers=[("Location", "http://a.example/new?utm_source=b")])
    crawl.response(
        "http://a.example/new", b"<head><link rel=canonical href=/x></head><p>text", date="2026-03-03T00:00:00Z"
    )
    passed_over = Counter[str]()
    items = read([str(file(tmp_path, "a.warc", crawl.content()))], passed_over=passed_over)
    documents = [received(item).document for item in items]
    assert [document.url for document in documents] == [
        "http://a.example/new",
        "http://a.example/old",
        "http://b.example/",
    ]
    assert {document.id for document in documents} == {"http://a.example/new"}
    assert [document.lineage for document in documents] == ["http://a.example/new"] * 3
    assert passed_over == {"no_response": 1, "redirect": 2}


def test_a_broken_record_of_a_warc_file_is_refused_with_its_place(tmp_path: Path) -> None:
    crawl = Crawl()
    crawl.response("http://a.example/1", b"<p>one")
    (item, broken) = read([str(file(tmp_path, "a.warc", crawl.content() + b"WARC/1.0\r\nbroken"))])
    assert isinstance(item, Item)
    assert isinstance(broken, Refused)
    assert broken.source == f"{tmp_path}/a.warc (record at byte {len(crawl.content())})"


def test_warc_needs_an_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warc, "is_available", lambda: False)
    assert "pip install 'nearstream[crawl]'" in refusal(file(tmp_path, "a.warc", b"WARC/1.0\r\n"))


def test_a_text_that_only_resembles_mail_or_html_is_a_text(tmp_path: Path) -> None:
    for text in (
        "From London, Mon Jan was late\nand so on",
        "From: the mayor\nDate: today\nSubject: the bridge\n\nThe bridge is closed.",
        "From: the mayor\nDate: Mon, 5 Jan 2026 10:11:12\n\nThe bridge is closed.",
        "From: a@b.example\nDate: tomorrow\n\nThe bridge is closed.",
        "PEP: 8\nTitle: Style\nAuthor: someone\nContent-Type: text/x-rst\n\nText",
        "Received wisdom has it that <html> is a tag",
        "<p>A fragment</p>",
        "BZhukov wrote this",
        "a\x1b[1mbold\x1b[0m line of a log",
    ):
        (item,) = read([str(file(tmp_path, "a.txt", text.encode()))])
        assert received(item).document.text == text


def test_hostile_beginnings_are_recognised_in_time(tmp_path: Path) -> None:
    size = 1 << 16
    for content in (
        b"<!-- -->" * (size // 8),
        b"<!--" * (size // 4),
        b" " * size,
        b"From " + b"x " * size,
        b"a:\n" * size,
    ):
        began = time.process_time()
        list(read([str(file(tmp_path, "a", content))]))
        assert time.process_time() - began < 1


# ---- counting


def test_what_cannot_be_counted_cheaply_is_not_counted(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (
        file(tmp_path, "a.jsonl.gz", gz(LINES)),
        file(tmp_path, "a.jsonl.zst", zstd.compress(LINES)),
        file(tmp_path, "a.json", ARRAY),
        tmp_path / "pipe",
    ):
        assert count_lines([str(path)]) == 0
        assert count_lines([str(file(tmp_path, "a.txt", b"text")), str(path)]) == 0


def test_files_that_are_refused_count_as_one(tmp_path: Path) -> None:
    names = [
        file(tmp_path, "a.txt.gz", gz(b"text")),
        file(tmp_path, "a.html", b""),
        file(tmp_path, "a.gz", b""),
        tmp_path / "missing",
        file(tmp_path, "a.jsonl", LINES.decode().encode("utf-16")),
    ]
    assert count_lines(map(str, names)) == 7


def test_a_text_whose_path_is_no_id_is_refused_with_what_to_do(tmp_path: Path) -> None:
    for name in ("a\x01b.txt", "/".join(["d" * 200] * 3) + ".txt", "a\udcffb.txt"):
        place = tmp_path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(b"some text")
        (told,) = read([str(place)])
        assert isinstance(told, Refused)
        assert told.source == str(place)
        assert told.reason.startswith("the path is the id of a text")
        assert "rename the file" in told.reason


def test_a_text_of_white_space_is_refused(tmp_path: Path) -> None:
    assert refusal(file(tmp_path, "a.txt", b" \n\t\n")) == "the file holds only white space"
