"""Files, folders and standard input as records of `documents`."""

import gzip
import json
import os
import re
import sys
import time
import tracemalloc
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from itertools import accumulate, product
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest

from nearstream.schemas.documents.record import ConsumerRecord, header
from nearstream.streams.ingest.defaults import DocumentLimits
from nearstream.streams.ingest.parse import INFLATED_MAX_BYTES, ParsedDocument, parse_record
from nearstream.workers.crawl import warc
from nearstream.workers.files.content import zstd
from nearstream.workers.files.source import STDIN, Item, Refused, bytes_of, read
from tests.support.warc import Crawl

ROWS = [b'{"id":"a","text":"one"}', b'{"id":"b","text":"two"}', b'{"id":"c","text":"three"}']
LINES = b"\n".join(ROWS) + b"\n"
ARRAY = b"[\n" + b",\n".join(ROWS) + b"\n]\n"
gz = partial(gzip.compress, mtime=0)  # test processes must make equal names of parameters
PACKED: dict[str, Callable[[bytes], bytes]] = {"gz": gz, "zst": zstd.compress}


def received(item: Item | Refused) -> ParsedDocument:
    assert isinstance(item, Item), item
    result = parse_record(item.record, DocumentLimits())
    assert isinstance(result, ParsedDocument)
    return result


def only(path: Path | str) -> ParsedDocument:
    """Return what the one record of a path is parsed to."""
    (item,) = read([str(path)])
    return received(item)


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
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with two texts, JSON Lines, a hidden file, and a hidden folder."""
    file(tmp_path, "b.txt", b"second text")
    file(tmp_path, "a.txt", b"first text")
    file(tmp_path, ".hidden", b"no")
    file(tmp_path, ".git/config", b"not a document")
    file(tmp_path, "inner/c.jsonl", b'{"id":"1","text":"third"}\n\n  \n{"id":"2","text":"fourth"}')
    return tmp_path


def test_json_lines_hold_a_document_a_line(tmp_path: Path) -> None:
    path = file(tmp_path, "some.jsonl", b'{"id":"a","text":"one"}\n\n \t\n  {"id":"b","text":"two"}  \r\n{broken\n')
    items = list(read([str(path)]))
    assert [item.source for item in items] == [f"{path}:1", f"{path}:4", f"{path}:5"]
    assert values(path) == [b'{"id":"a","text":"one"}', b'{"id":"b","text":"two"}', b"{broken"]
    assert [received(item).document.id for item in items[:2]] == ["a", "b"]


def test_any_other_file_is_one_text_with_its_path_as_id_and_its_change_as_time(tmp_path: Path) -> None:
    path = file(tmp_path, "größe.txt", b"some\ntext\n")
    os.utime(path, (1_700_000_000, 1_700_000_000))
    document = only(path).document
    assert document.id == str(path)
    assert (document.text, document.lineage) == ("some\ntext\n", None)
    assert document.observed_at == datetime.fromtimestamp(1_700_000_000, UTC)


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no file system for such times")  # noqa: S108
def test_a_time_of_change_that_no_calendar_holds_is_refused() -> None:
    with TemporaryDirectory(dir="/dev/shm") as folder:
        path = file(Path(folder), "a.txt", b"text")
        os.utime(path, (1 << 40, 1 << 40))
        assert "outside the years 1 to 9999" in refusal(path)


GERMAN = "Die alte Brücke über den Fluss ist gesperrt, weil das größte Lager für Möbel gestern früh gebrannt hat."
RUSSIAN = "Северные ворота порта будут закрыты во вторник, поэтому грузовики едут по восточному пандусу."
ENCODED = [*((GERMAN, charset) for charset in ("latin-1", "utf-16-be", "utf-16")), (RUSSIAN, "koi8-r")]


NEITHER_MAIL_NOR_HTML = (
    "From London, Mon Jan was late\nand so on",
    "From: the mayor\nDate: today\nSubject: the bridge\n\nThe bridge is closed.",
    "From: the mayor\nDate: Mon, 5 Jan 2026 10:11:12\n\nThe bridge is closed.",
    "From: a@b.example\nDate: tomorrow\n\nThe bridge is closed.",
    "PEP: 8\nTitle: Style\nAuthor: someone\nContent-Type: text/x-rst\n\nText",
    "Received wisdom has it that <html> is a tag",
    "<p>A fragment</p>",
    "BZhukov wrote this",
    "a\x1b[1mbold\x1b[0m line of a log",
)


def test_a_text_is_read_in_its_charset(tmp_path: Path) -> None:
    for text, charset in (*ENCODED, *((text, "utf-8") for text in NEITHER_MAIL_NOR_HTML)):
        parsed = only(file(tmp_path, "a.txt", text.encode(charset)))
        assert (parsed.document.text, parsed.degraded) == (text, ())
    parsed = only(file(tmp_path, "a.txt", GERMAN.encode() + b" \xfc."))
    assert (parsed.document.text, parsed.degraded) == (f"{GERMAN} \ufffd.", ("charset_replaced",))


def test_a_folder_is_read_in_order_of_name_without_hidden_files(folder: Path) -> None:
    names = [item.source.removeprefix(f"{folder}/") for item in read([str(folder)])]
    assert names == ["a.txt", "b.txt", "inner/c.jsonl:1", "inner/c.jsonl:4"]
    before = time.time_ns() // 1_000_000
    found = records([folder / "b.txt", folder])
    read_ms = [record.timestamp_ms for record in found]
    assert before <= read_ms[0] < read_ms[-1] <= time.time_ns() // 1_000_000 + len(found)
    assert read_ms == sorted(set(read_ms))  # one that is read later is newer
    assert [header(record.headers, "content-type") for record in found] == [*[b"text/plain"] * 3, None, None]
    places = [(record.topic, record.partition, record.offset, record.key) for record in found]
    assert places == [("input", 0, offset, None) for offset in range(5)]  # across all paths
    assert bytes_of([str(folder)]) == sum((folder / name.partition(":")[0]).stat().st_size for name in names[:3])
    assert bytes_of([str(folder), STDIN]) == 0


def test_standard_input_is_recognised_like_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for content in (b"\n\n".join(ROWS), gz(LINES), ARRAY, LINES.decode().encode("utf-16")):
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


def test_a_path_that_cannot_be_read_is_named_and_the_others_are_read(folder: Path) -> None:
    for name in ("missing.txt", "missing.jsonl", "missing", ""):
        path = str(folder / name) if name else ""
        first, refused, last = read([str(folder / "a.txt"), path, str(folder / "b.txt")])
        assert (first.source, last.source) == (str(folder / "a.txt"), str(folder / "b.txt"))
        assert refused == Refused(path, "No such file or directory")
    (folder / "loop").symlink_to("loop")
    (folder / "gone").symlink_to("nowhere")
    os.mkfifo(folder / "pipe")
    assert [item for item in read([str(folder)]) if isinstance(item, Refused)] == [
        Refused(str(folder / "gone"), "No such file or directory"),
        Refused(str(folder / "loop"), "Too many levels of symbolic links"),
    ]
    items = read([str(folder / "a.txt"), str(folder / "inner")])
    assert next(items).source == str(folder / "a.txt")
    (folder / "inner" / "c.jsonl").unlink()
    (folder / "inner").rmdir()
    assert list(items) == [Refused(str(folder / "inner"), "No such file or directory")]


def test_of_a_document_without_end_a_bounded_piece_is_one_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("content", "source"):
        monkeypatch.setattr(f"nearstream.workers.files.{module}.DOCUMENT_MAX_BYTES", 10)
    path = file(tmp_path, "a.jsonl", b"x" * 25 + b"\nshort\n" + b"y" * 11)
    items = [(item.source, item.record.value) for item in read([str(path)]) if isinstance(item, Item)]
    assert items == [(f"{path}:1", b"x" * 10), (f"{path}:2", b"short"), (f"{path}:3", b"y" * 10)]
    array = file(tmp_path, "a.json", b'[{"text": "longer"}, {}, {"a": []}]')
    assert values(array) == [b'{"text": "', b"{}", b'{"a": []}']
    assert values(file(tmp_path, "a.txt", b"z" * 11)) == [b"z" * 10]


# ---- compressed files


def test_compressed_documents_are_read_under_any_name(tmp_path: Path) -> None:
    for name in ("a.jsonl", "a.ndjson", "a.json", "a.txt", "a"):
        for suffix in PACKED:
            for path in (tmp_path / f"{name}.{suffix}", tmp_path / name, tmp_path / f"{name}.{suffix.upper()}"):
                path.write_bytes(PACKED[suffix](LINES))
                assert values(path) == ROWS


def test_all_members_of_a_compressed_file_are_read(tmp_path: Path) -> None:
    for suffix, pack in PACKED.items():
        members = pack(LINES[:30]) + pack(b"") + pack(LINES[30:])
        assert values(file(tmp_path, f"a.jsonl.{suffix}", members)) == ROWS
        path = file(tmp_path, f"a.txt.{suffix}", pack(b"some text"))
        assert (only(path).document.id, only(path).document.text) == (str(path), "some text")
    skipped = b"\x5e\x2a\x4d\x18\x04\0\0\0abcd"  # a frame that zstd passes over
    assert values(file(tmp_path, "a.jsonl.zst", skipped + zstd.compress(LINES))) == ROWS


def many(count: int) -> bytes:
    """Return JSON Lines that do not compress well."""
    random = Random(1)
    return b"".join(b'{"text":"%s"}\n' % random.randbytes(50).hex().encode() for _ in range(count))


def test_what_precedes_the_damage_of_a_compressed_file_is_read(tmp_path: Path) -> None:
    lines = many(5_000)
    for suffix, pack in PACKED.items():
        packed = pack(lines)
        for content, reason in (
            (packed[: len(packed) // 2], "is cut off"),
            (packed[:-1], "is cut off"),
            (packed + b"something else", "is damaged"),
        ):
            *items, last = read([str(file(tmp_path, f"a.jsonl.{suffix}", content))])
            assert items
            assert [item.record.value for item in items if isinstance(item, Item)] == lines.splitlines()[: len(items)]
            assert isinstance(last, Refused)
            assert reason in last.reason
            assert f"(found before that: {len(items)} document" in last.reason
        text = pack(lines[1:300_000])
        for start in (text[:-1], text[:5]):  # a text that is cut off is no shorter text
            assert "is cut off" in refusal(file(tmp_path, f"a.txt.{suffix}", start))


def test_damage_that_only_a_checksum_shows_is_refused_too(tmp_path: Path) -> None:
    checked = zstd.compress(LINES, options={zstd.CompressionParameter.checksum_flag: 1})
    for suffix, content in (("gz", gz(LINES)[:-8] + bytes(8)), ("zst", checked[:-4] + bytes(4))):
        *_, last = read([str(file(tmp_path, f"a.jsonl.{suffix}", content))])
        assert isinstance(last, Refused)
        assert "is damaged" in last.reason
    assert "secret" not in refusal(file(tmp_path, "a.gz", gz(b"x" * 10) + b"secret"))


def test_a_small_file_never_expands_to_a_large_one(tmp_path: Path) -> None:
    for name, packer in (("a.jsonl.gz", zlib.compressobj(wbits=31)), ("a.json.zst", zstd.ZstdCompressor())):
        count = 5 * INFLATED_MAX_BYTES >> 20
        pieces = [packer.compress(piece) for piece in (b'{"text":"', *[b"a" * (1 << 20)] * count)]
        path = file(tmp_path, name, b"".join([*pieces, packer.flush()]))
        tracemalloc.start()
        try:
            assert "expands to more than 100 times its size" in refusal(path)
            assert tracemalloc.get_traced_memory()[1] < 2 * INFLATED_MAX_BYTES
        finally:
            tracemalloc.stop()


# ---- JSON


def test_a_json_array_holds_documents(tmp_path: Path) -> None:
    path = file(tmp_path, "a.json", b"[\n{},{\n},\n{}]")
    places = [item.source.removeprefix(str(path)) for item in read([str(path)])]
    assert places == [":2 (document 1)", ":2 (document 2)", ":4 (document 3)"]
    one = file(tmp_path, "a.json", b'{\n  "text": "some text"\n}\n')
    assert (records([one])[0].offset, only(one).document.id) == (0, str(one))
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


def test_an_array_that_is_not_closed_is_refused_after_its_documents(tmp_path: Path) -> None:
    reason = "the array that begins in line 2 is not closed (found before that: 3 documents)"
    for end in (b"", b",", b"\n"):
        path = file(tmp_path, "a.json", b"\n[" + b",".join(ROWS) + end)
        assert list(read([str(path)]))[3:] == [Refused(str(path), reason)]


BROKEN = [b"{nope}", b"5", b'"text"', b"[{}]", b"null", b'{"text":}']
INDENTED = [json.dumps(json.loads(row), indent=2).encode() for row in ROWS]
# A name, what the file holds, and the records that are read.
READ = (
    ("a", LINES, ROWS),
    ("a.jsonl", LINES.replace(b"\n", b"\r\n"), ROWS),
    ("a.jsonl", b"\xef\xbb\xbf" + LINES, ROWS),
    ("a.jsonl", ROWS[0] + b"\n" + bytes(4096) + b"\n" + ROWS[1], [ROWS[0], bytes(4096), ROWS[1]]),
    ("a.json", ROWS[0] + b"\n{broken\n" + ROWS[1], [ROWS[0], b"{broken", ROWS[1]]),
    ("a.json", b"\n".join(INDENTED), INDENTED),
    ("a.json", b"[" + b",".join([ROWS[0], *BROKEN, ROWS[1]]) + b",]", [ROWS[0], *BROKEN, ROWS[1]]),
    ("a.json", b"[]", []),
    ("a.jsonl", b"", []),
    ("a.jsonl", b"\n \n", []),
    ("a.jsonl.gz", gz(b""), []),
    ("a.txt", "{text}\n".encode("utf-16-le"), ["{text}\n".encode("utf-16-le")]),
    # A file that says nothing by its name is JSON only if it holds documents.
    *(("a", text, [text]) for text in (b'{"name": "x"}', b"[1] A note", b"{{template}} text", b'[{"a": 1}]')),
)


def test_a_file_holds_these_records(tmp_path: Path) -> None:
    for name, content, expected in READ:
        assert values(file(tmp_path, name, content)) == expected, (name, content[:100])


# ---- encodings


def test_a_byte_order_mark_names_the_encoding(tmp_path: Path) -> None:
    for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"):
        mark = "" if encoding in {"utf-16", "utf-32"} else "\ufeff"
        lines = "".join(f'{{"id":"{number}","text":"größe 😀"}}\n' for number in range(1000))
        for name, content in (("a.jsonl", lines), ("a.json", f"[{lines.strip().replace(chr(10), ',')}]")):
            path = file(tmp_path, name, (mark + content).encode(encoding))
            assert values(path) == lines.encode().splitlines()
            assert values(file(tmp_path, f"{name}.gz", gz(path.read_bytes()))) == lines.encode().splitlines()
        parsed = only(file(tmp_path, "a.txt", (mark + "größe 😀").encode(encoding)))
        assert (parsed.document.text, parsed.degraded) == ("größe 😀", ())


# ---- what is no text


NO_TEXT = (
    *((content, "binary, or ") for content in (b"some text\nand\0more", bytes(range(1, 256)), b"\x01\x02\x03text")),
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
)
ARC = b"filedesc://a.arc 0.0.0.0 20260302081500 text/plain 12\n1 0 crawler\n\n"
REFUSED = (
    *((name, *each) for name in ("a", "a.txt", "a.jsonl") for each in NO_TEXT),
    *((name, b"{}", "expected gzip or zstd, as the name says") for name in ("a.gz", "a.txt.zst", "a.json.GZ")),
    *(("a.jsonl.gz", content, "expected gzip or zstd, as the name says") for content in (b"", b"text", b"\x1f")),
    *(("a.jsonl", "вода в реке".encode(name), "binary, or ") for name in ("utf-16-be", "utf-16-le")),
    ("a.jsonl", "{text}\n".encode("utf-16-le"), "binary, or JSON that is not UTF-8"),
    ("a.jsonl", b"<html><body>Not found", "HTML, but JSON is expected"),
    *(("a.html", content, "binary, ") for content in (bytes(range(256)), b"\x01\x02\x03<p>text")),
    ("a.mbox", b"text", "expected an mbox"),
    ("a.txt", b"", "the file is empty"),
    ("a.txt.gz", gz(b""), "the file is empty"),
    ("a.txt", b" \n\t\n", "the file holds only white space"),
    ("a.json", b" \n", "expected a JSON object or array"),
    ("a.txt", b"\xff\xfea\0\0\xd8a\0", "expected utf-16-le as its byte order mark says"),
    ("a.txt", b"\xff\xfea\0b", "expected utf-16-le as its byte order mark says"),
    ("a.arc.gz", gz(ARC), ""),
    ("a.wacz", b"PK\x03\x04", "WACZ is not read: `unzip` it"),
    ("a", ARC, ""),
)


def test_a_file_that_cannot_be_sent_is_refused_with_a_reason(tmp_path: Path) -> None:
    for name, content, reason in REFUSED:
        told = refusal(file(tmp_path, name, content))
        assert told.startswith(reason), (name, content[:100])
        assert reason or "warcio recompress" in told


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
        document = only(path).document
        assert (document.id, document.raw, document.content_type) == (str(path), content, "text/html")
    with file(tmp_path, "given", b"<!doctype html><p>text").open() as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        document = only(STDIN).document
    assert document.raw == b"<!doctype html><p>text"
    assert re.fullmatch("[0-9a-f]+", document.id or "")  # made of the text, as standard input has no path


def test_the_pages_of_a_warc_file_are_read_and_the_rest_is_counted(tmp_path: Path) -> None:
    for name in ("a.warc", "a.warc.gz", "a"):
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
        assert 0 < item.place <= bytes_of([str(tmp_path / name)])


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
    for (suffix, pack), count, is_one_stream in product(PACKED.items(), (1, 3, 30), (True, False)):
        records = crawled(count)
        whole = pack(b"".join(records)) if is_one_stream else b"".join(map(pack, records))
        for cut in (1, 9, 200, len(pack(records[-1])) // 2, 4_000):
            *items, refused = read([str(file(tmp_path, f"a.warc.{suffix}", whole[:-cut]))])
            assert isinstance(refused, Refused)
            assert refused.reason.startswith(f"the {'gzip' if suffix == 'gz' else 'zstd'} stream is cut off")
            readable = len(unpacked_start(whole[:-cut], suffix)) + len(b"\r\n\r\n")
            whole_records = sum(end <= readable for end in accumulate(map(len, records)))
            assert sum(isinstance(item, Item) for item in items) == whole_records >= count - 20


def test_a_file_that_is_packed_with_a_zstd_dictionary_is_refused_with_what_to_do(tmp_path: Path) -> None:
    trained = zstd.train_dict(crawled(40), 16 * 1024)
    packed, stored = zstd.compress(crawled(1)[0], zstd_dict=trained), trained.dict_content
    for start in (b"", b"\x5d\x2a\x4d\x18" + len(stored).to_bytes(4, "little") + stored):
        assert "needs a dictionary: unpack it with zstd" in refusal(file(tmp_path, "a.warc.zst", start + packed))


def test_warc_needs_an_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warc, "is_available", lambda: False)
    assert "pip install 'nearstream[crawl]'" in refusal(file(tmp_path, "a.warc", b"WARC/1.0\r\n"))


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


# ---- progress


def test_what_is_read_is_placed_among_the_bytes_of_all_files(tmp_path: Path) -> None:
    paths = [str(file(tmp_path, "a.txt", b"text")), str(file(tmp_path, "b.jsonl.gz", gz(LINES)))]
    text, *_, last = read(paths)
    assert isinstance(text, Item)
    assert isinstance(last, Item)
    assert (text.place, last.place) == (4, bytes_of(paths))
    os.mkfifo(tmp_path / "pipe")
    assert bytes_of([*paths, str(tmp_path / "pipe")]) == bytes_of([*paths, str(tmp_path / "missing")]) == 0


def test_a_text_whose_path_is_no_id_is_refused_with_what_to_do(tmp_path: Path) -> None:
    for name in ("a\x01b.txt", "/".join(["d" * 200] * 3) + ".txt", "a\udcffb.txt"):
        told = refusal(file(tmp_path, name, b"some text"))
        assert told.startswith("the path is the id of a text")
        assert "rename the file" in told
