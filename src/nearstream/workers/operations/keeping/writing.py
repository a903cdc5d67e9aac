"""Write documents into a file, in the form in which they came."""

import csv
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import msgspec

from nearstream.workers.config.exit_codes import Exit, RefusalError
from nearstream.workers.files.content import PACKED_SUFFIXES
from nearstream.workers.files.tables import Form, Stored
from nearstream.workers.operations.terminal import PATH_CHARACTERS, escaped, print_message, printable

Told = Mapping[str, str | int | None]  # what is said about a document, by the name of its column
_GROUP_BYTES = 1 << 26  # of Parquet, which are written as one group of rows


@contextmanager
def new_file(path: str, *, replaces: bool) -> Iterator[IO[bytes]]:
    """Open a new file, which appears under its name when it is complete.

    Raises:
        RefusalError: There is such a file already, and it may not be replaced, or no file can have this name.
    """
    target = Path(path)
    if target.is_symlink() or (target.exists() and not target.is_file()) or not target.parent.is_dir():
        raise RefusalError(f"{path}: expected the name of a file, in a folder that is there", Exit.UNWRITABLE)
    if path.endswith(PACKED_SUFFIXES):
        raise RefusalError(
            f"{path}: what is written is not compressed, name a file without {target.suffix}", Exit.USAGE
        )
    if target.exists() and not replaces:
        raise RefusalError(f"{path}: it exists, name another file or replace it with --overwrite", Exit.UNWRITABLE)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    except BaseException as error:
        print_message(f"{escaped(path, PATH_CHARACTERS)} was not written")
        if isinstance(error, OSError) and not error.filename:
            error.filename = path
        raise
    finally:
        part.unlink(missing_ok=True)


class KeptFile:
    """A file of kept documents, in the form of the first one."""

    def __init__(self, file: IO[bytes], columns: Sequence[str]) -> None:
        """Write into an open file, with these columns beside what came."""
        self._file, self._columns = file, columns
        self._form: Form | None = None
        self._rows: _ParquetRows | None = None

    def write(self, source: str, stored: Stored, told: Told) -> None:
        """Add a document. `told` has the values of columns, and is empty for what could not be read.

        Raises:
            RefusalError: It came in another form than the first one, or has a column of this name already.
        """
        form, expected = stored.form._replace(head=b""), self.begin(stored.form)
        if form != expected:
            raise RefusalError(
                f"{source}: expected {_described(expected)} as before, not {_described(form)}, scan each form alone",
                Exit.UNREADABLE,
            )
        if self._rows is not None:
            self._rows.write(stored, [told.get(name) for name in self._columns])
        else:
            self._file.write(self._line(source, stored, told))

    def close(self) -> None:
        """Write what is held back."""
        if self._rows is not None:
            self._rows.close()

    def begin(self, form: Form) -> Form:
        """Return the form of the file, whose head is written before its first row."""
        if self._form is not None:
            return self._form
        self._form = form._replace(head=b"")
        if taken := sorted({*form.names} & {*self._columns}):
            raise self._clash(taken[0])
        if form.kind == "parquet":
            self._rows = _ParquetRows(self._file, form, self._columns)
        elif form.kind == "csv":
            self._file.write(_with_cells(form.head, form.separator, self._columns))
        return self._form

    def _line(self, source: str, stored: Stored, told: Told) -> bytes:
        values = [told.get(name) for name in self._columns]
        if stored.form.kind == "list":
            return "\t".join([printable(source), *map(_cell, values)]).encode("utf-8", "surrogateescape") + b"\n"
        if stored.form.kind == "csv":
            return _with_cells(stored.raw, stored.form.separator, list(map(_cell, values)) if told else ())
        return self._json(stored.raw, told) + b"\n"

    def _json(self, raw: bytes, told: Told) -> bytes:
        if not (self._columns and told):
            return raw
        fields = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        if taken := sorted({*fields} & {*self._columns}):
            raise self._clash(taken[0])
        return msgspec.json.encode({**fields, **{name: told.get(name) for name in self._columns}})

    def _clash(self, name: str) -> RefusalError:
        return RefusalError(f"the documents have a column {name!r} already: leave it out of --columns", Exit.USAGE)


class _ParquetRows:
    """Rows of Parquet files, which are written in groups."""

    def __init__(self, file: IO[bytes], form: Form, columns: Sequence[str]) -> None:
        import pyarrow as pa
        from pyarrow.parquet import ParquetWriter

        self._fields = [pa.field(name, pa.int64() if name == "novel" else pa.string()) for name in columns]
        self._writer = ParquetWriter(file, pa.schema([*form.schema, *self._fields], form.schema.metadata))
        self._rows, self._values = list[pa.RecordBatch](), list[Sequence[object]]()
        self._batch, self._n_bytes = None, 0  # a row holds the batch that it came with

    def write(self, stored: Stored, values: Sequence[object]) -> None:
        """Add a row with values of further columns."""
        if stored.batch is not self._batch:
            self._batch, self._n_bytes = stored.batch, self._n_bytes + stored.batch.nbytes
        self._rows.append(stored.batch.slice(stored.place, 1))
        self._values.append(values)
        if self._n_bytes > _GROUP_BYTES:
            self._write_group()

    def close(self) -> None:
        """Write what is held back, and the end of the file."""
        if self._rows:
            self._write_group()
        self._writer.close()

    def _write_group(self) -> None:
        import pyarrow as pa

        table = pa.Table.from_batches(self._rows)
        for at, field in enumerate(self._fields):
            table = table.append_column(field, [pa.array([row[at] for row in self._values], field.type)])
        self._writer.write_table(table.combine_chunks())
        self._rows, self._values, self._n_bytes = [], [], 0


def _described(form: Form) -> str:
    columns = f" with the columns {', '.join(form.names)}" if form.names else ""
    return {"list": "files of one document", "json": "JSON", "csv": "CSV", "parquet": "Parquet"}[form.kind] + columns


def _with_cells(row: bytes, separator: str, cells: Sequence[str]) -> bytes:
    """Return the bytes of a row of CSV with more cells at its end."""
    bare = row.rstrip(b"\r\n")
    end = row[len(bare) :] or b"\n"
    if not cells:
        return bare + end
    line = io.StringIO()
    csv.writer(line, delimiter=separator, lineterminator="").writerow(cells)
    return bare + separator.encode() + line.getvalue().encode() + end


def _cell(value: str | int | None) -> str:
    return "" if value is None else printable(str(value))
