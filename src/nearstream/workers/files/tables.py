"""Read tables: each row of a CSV or Parquet file is a document."""

import csv
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BufferedReader
from itertools import chain
from typing import Any, Literal, NamedTuple

import msgspec

from nearstream.streams.ingest.charset import decode
from nearstream.workers.files.content import DOCUMENT_MAX_BYTES, UnreadableFileError, lines_with_ends

_SEPARATORS = ",;\t|"
_ROWS_AT_ONCE = 64
_ROW_BYTES = 1 << 25  # of a row of a CSV file with its ends of lines
_NAME_SHOWN = 40  # characters of the name of a column
_FIELDS = ("text", "id", "url")  # of a document that a row may have


class Form(NamedTuple):
    """How a file holds a document, so that another file can be written in this form."""

    kind: Literal["list", "json", "csv", "parquet"]  # `list`: the file is the document
    names: tuple[str, ...] = ()  # the columns of a table
    separator: str = ""  # what stands between the cells of a CSV file
    head: bytes = b""  # the first row of a CSV file, as it came
    schema: Any = None  # the schema of a Parquet file, of a library without types


@dataclass(frozen=True)
class Columns:
    """The columns of tables that are not named as the fields of documents."""

    text: str = "text"  # the column that holds the texts
    id: str = "id"  # The column that holds the ids. Rows of a table without it have ids by their texts.
    begin: Callable[[Form], object] = bool  # takes the form of each table, before the rows of the table


@dataclass(frozen=True)
class Stored:
    """A document in the form in which it came."""

    form: Form
    raw: bytes = b""  # its bytes in a file of lines
    batch: Any = None  # the rows of a Parquet file with which it came
    place: int = 0  # its place among these rows


# A row of a table: the line where it begins, or of a Parquet file its number, its document in JSON, the row as it came,
# and why it has no document.
Row = tuple[int, bytes, Stored, str]


class _Lines:
    """The lines of a file, of which those that were read last are remembered."""

    def __init__(self, content: Iterator[bytes]) -> None:
        self._lines, self.taken = lines_with_ends(content), list[bytes]()
        self._room = _ROW_BYTES

    def __iter__(self) -> Iterator[str]:
        # In Latin-1 each byte is a character, so that the charset of a cell can be found out later.
        for line in self._lines:
            self.taken.append(line)
            self._room -= len(line)
            if self._room < 0:
                raise UnreadableFileError("a row has more than 32 MiB, is a quotation mark missing?")
            yield line.decode("latin-1")

    def forget(self) -> None:
        """Begin a row."""
        self.taken.clear()
        self._room = _ROW_BYTES


def csv_rows(content: Iterator[bytes], columns: Columns) -> Iterator[Row]:
    """Yield the rows of a CSV file, whose first row names the columns.

    The most frequent of comma, semicolon, tab and bar in the first line separates the cells.

    Raises:
        UnreadableFileError: There is no column of texts.
    """
    csv.field_size_limit(DOCUMENT_MAX_BYTES)
    lines = _Lines(content)
    texts = iter(lines)
    first = next(texts, "").removeprefix(BOM_UTF8.decode("latin-1"))
    separator = max(_SEPARATORS, key=first.count)
    reader = csv.reader(chain([first], texts), delimiter=separator, strict=True)
    names = tuple(map(_text_of, _cells(reader)))
    form = Form("csv", names, separator, b"".join(lines.taken))
    places = _places(names, columns)
    columns.begin(form)
    while True:
        number, refusal = reader.line_num + 1, ""
        lines.forget()
        try:
            cells = next(reader, None)
        except csv.Error as error:
            cells, refusal = [], str(error)
        if cells is None:
            return
        if len(cells) != len(names) and not refusal:
            refusal = f"expected {len(names)} cells, as the first row has, not {len(cells)}"
        if lines.taken != [b"\n"] and lines.taken != [b"\r\n"]:
            stored = Stored(form, b"".join(lines.taken))
            fields = {} if refusal else {name: _text_of(cells[place]) for name, place in places.items()}
            yield _row(number, stored, fields, refusal)


def _cells(reader: Iterator[list[str]]) -> list[str]:
    try:
        return next(reader, [])
    except csv.Error as error:
        raise UnreadableFileError(f"expected names of columns in the first row: {error}") from None


def _text_of(cell: str) -> str:
    data = cell.encode("latin-1")
    return cell if data.isascii() else decode(data).text


def parquet_rows(stream: BufferedReader, columns: Columns) -> Iterator[Row]:
    """Yield the rows of a Parquet file, of which some are in memory at a time.

    Raises:
        UnreadableFileError: There is no column of texts, the file is damaged, or the extra is missing.
    """
    try:
        import pyarrow as pa
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise UnreadableFileError("Parquet is read with the extra `table`: pip install 'nearstream[table]'") from None
    number = 0
    try:
        file = ParquetFile(stream)
        form = Form("parquet", tuple(file.schema_arrow.names), schema=file.schema_arrow)
        places = _places(form.names, columns)
        columns.begin(form)
        for batch in file.iter_batches(batch_size=_ROWS_AT_ONCE):
            found = {name: batch.column(place).to_pylist() for name, place in places.items()}
            for place in range(batch.num_rows):
                number += 1
                values = {name: column[place] for name, column in found.items()}
                yield _row(number, Stored(form, batch=batch, place=place), values)
    except (pa.ArrowException, OSError) as error:
        raise UnreadableFileError(f"the Parquet file is damaged ({str(error).partition(chr(10))[0]})") from None


def _places(names: Sequence[str], columns: Columns) -> dict[str, int]:
    """Return where a row has the fields of its document."""
    called = _called(columns)
    twice = [name for name in called.values() if names.count(name) > 1]
    if twice:
        raise UnreadableFileError(f"expected one column {twice[0]!r}, not {names.count(twice[0])}")
    places = {field: names.index(called[field]) for field in _FIELDS if called[field] in names}
    missing = [field for field, usual in (("text", ""), ("id", "id")) if field not in places and called[field] != usual]
    if missing:
        listed = ", ".join(name[:_NAME_SHOWN] for name in names[:20]) or "none"
        raise UnreadableFileError(
            f"expected a column {called[missing[0]]!r}, name another one with --{missing[0]}-column (columns: {listed})"
        )
    return places


def _called(columns: Columns) -> dict[str, str]:
    return {"text": columns.text, "id": columns.id, "url": "url"}


def json_document(raw: bytes, columns: Columns) -> bytes | None:
    """Return the document of a JSON object of a dataset, whose other fields may mean anything.

    None: it is no object, or has no text in that column.
    """
    try:
        fields = msgspec.json.decode(raw, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    found = _row(0, Stored(Form("json")), {name: fields.get(column) for name, column in _called(columns).items()})
    return found[1] or None


def _row(number: int, stored: Stored, values: Mapping[str, object], refusal: str = "") -> Row:
    text = values.get("text")
    if refusal or not isinstance(text, str):
        found = "null" if text is None else type(text).__name__
        return number, b"", stored, refusal or f"expected a text, not {found}"
    fields = {name: str(value) for name, value in values.items() if value is not None and value != ""}
    return number, msgspec.json.encode({"text": "", **fields}), stored, ""
