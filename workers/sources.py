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
LINE_MAX_BYTES = 8 * 1024 * 1024
_JSON_LINES = (".jsonl", ".ndjson")


class Item(NamedTuple):
    """One record as read, with its place for messages."""

    place: str
    record: Record


def read(paths: Iterable[str]) -> Iterator[Item]:
    """Every document of the paths as the record that would carry it.

    JSON Lines (`.jsonl`, `.ndjson`, `-`) hold a document a line; any other file is one text, its path
    the id and its time of change `observed_at`; of a folder all files that are not hidden are read, in order of name.

    Raises:
        OSError: A path cannot be read.
    """
    offset = 0
    for path in _files(paths):
        for place, value, headers in _values(path):
            yield Item(place, Record("input", 0, offset, time.time_ns() // 1_000_000, None, value, headers))
            offset += 1


def count_lines(paths: Iterable[str]) -> int:
    """Documents in the paths, for progress; 0 if standard input is among them."""
    total = 0
    for path in _files(paths):
        if path == STDIN:
            return 0
        if path.endswith(_JSON_LINES):
            with Path(path).open("rb") as lines:
                total += sum(1 for line in lines if line.strip())
        else:
            total += 1
    return total


def _files(paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        if path != STDIN and Path(path).is_dir():
            for folder, folders, names in os.walk(path):
                folders[:] = sorted(name for name in folders if not name.startswith("."))
                yield from (str(Path(folder, name)) for name in sorted(names) if not name.startswith("."))
        else:
            yield path


def _values(path: str) -> Iterator[tuple[str, bytes, Headers]]:
    if path == STDIN:
        yield from _lines("standard input", sys.stdin.buffer)
    elif path.endswith(_JSON_LINES):
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
        yield path, file.read_bytes(), headers


def _lines(name: str, stream: BinaryIO) -> Iterator[tuple[str, bytes, Headers]]:
    number = 0
    while line := stream.readline(LINE_MAX_BYTES):
        number += 1
        rest = line
        while rest and not rest.endswith(b"\n"):  # of a longer line enough is kept to be refused as too large
            rest = stream.readline(LINE_MAX_BYTES)
        if line.strip():
            yield f"{name}:{number}", line.strip(), []
