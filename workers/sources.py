"""Files, folders and standard input as records of `documents`."""

import os
import sys
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, NamedTuple

from schemas.record import Headers, Record

STDIN = "-"
INPUT = "input"  # stands for the topic of what came from no topic
LINE_MAX_BYTES = 8 * 1024 * 1024
_JSON_LINES = (".jsonl", ".ndjson")


class Item(NamedTuple):
    """One record as read, with its place for messages."""

    place: str
    record: Record


def read(paths: Iterable[str]) -> Iterator[Item]:
    """Every document of the paths as the record that would carry it.

    JSON Lines (`.jsonl`, `.ndjson`, `-`, any pipe) hold a document a line; any other file is one text, its path
    the id, its time of change `observed_at`. Of a folder all files are read that are not hidden, in order of name.

    Raises:
        OSError: A path cannot be read.
    """
    offset = 0
    for path in _files(paths):
        for place, value, headers in _values(path):
            yield Item(place, Record(INPUT, 0, offset, time.time_ns() // 1_000_000, None, value, headers))
            offset += 1


def count_lines(paths: Iterable[str]) -> int:
    """Documents in the paths, for progress; 0 if a pipe is among them."""
    total = 0
    for path in _files(paths):
        if path == STDIN:
            return 0
        if not _is_json_lines(path):
            total += 1
        elif Path(path).is_file():
            with Path(path).open("rb") as lines:
                total += sum(1 for line in lines if line.strip())
        else:
            return 0
    return total


def beginning(file: Path) -> bytes:
    """A file, or of one that is larger than any document enough to be refused as too large."""
    with file.open("rb") as stream:
        return stream.read(LINE_MAX_BYTES)


def _is_json_lines(path: str) -> bool:
    """By its name, or for being a pipe: whoever pipes documents pipes more than one."""
    return path.endswith(_JSON_LINES) or Path(path).is_fifo()


def _files(paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        if path != STDIN and Path(path).is_dir():
            for folder, folders, names in os.walk(path):
                folders[:] = sorted(name for name in folders if not name.startswith("."))
                found = (Path(folder, name) for name in sorted(names) if not name.startswith("."))
                yield from (str(file) for file in found if file.is_file())
        else:
            yield path


def _values(path: str) -> Iterator[tuple[str, bytes, Headers]]:
    if path == STDIN:
        yield from _lines("standard input", sys.stdin.buffer)
    elif _is_json_lines(path):
        with Path(path).open("rb") as stream:
            yield from _lines(path, stream)
    else:
        file = Path(path)
        observed_at = datetime.fromtimestamp(file.stat().st_mtime, UTC)
        headers: Headers = [
            ("content-type", b"text/plain; charset=utf-8"),
            ("nearstream-id", os.fsencode(path)),
            ("nearstream-observed-at", observed_at.isoformat().encode()),
        ]
        yield path, beginning(file), headers


def _lines(name: str, stream: BinaryIO) -> Iterator[tuple[str, bytes, Headers]]:
    number = 0
    while line := stream.readline(LINE_MAX_BYTES):
        number += 1
        rest = line
        while rest and not rest.endswith(b"\n"):  # of a longer line enough is kept to be refused as too large
            rest = stream.readline(LINE_MAX_BYTES)
        if line.strip():
            yield f"{name}:{number}", line.strip(), []
