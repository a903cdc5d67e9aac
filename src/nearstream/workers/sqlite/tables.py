"""The tables of a slot in a file of SQLite.

What was read or changed since the last commit is held as it is, and what has changed is written at the next one. So
the file sees each value once in a batch, however often the batch changed it.
"""

import sqlite3
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

from nearstream.streams.store.families import Facts, Family
from nearstream.streams.store.history import Documents, State
from nearstream.streams.store.messages import ANCHOR, BAND, DIGEST, LINEAGE
from nearstream.streams.store.part import Tables
from nearstream.streams.store.registration import NUMBER_BYTES, Sent
from nearstream.streams.store.tables import EXPIRED_AT_ONCE

Key = TypeVar("Key", int, bytes)
Value = TypeVar("Value")
# Tables whose keys are numbers, and tables whose keys are bytes.
_NUMBERED = ("states", "keys", "families", "kept", "covers", "buckets")
_NAMED = ("facts", "current", "removals", "labels")
SCHEMA = (
    *(f"CREATE TABLE {name}(key INTEGER PRIMARY KEY, value)" for name in _NUMBERED),
    *(f"CREATE TABLE {name}(key BLOB PRIMARY KEY, value) WITHOUT ROWID" for name in _NAMED),
    "CREATE TABLE ages(kind, since, key, PRIMARY KEY(kind, since, key)) WITHOUT ROWID",
    "CREATE TABLE members(founder, number, ordinal, has_left, PRIMARY KEY(founder, number)) WITHOUT ROWID",
    "CREATE TABLE records(number INTEGER PRIMARY KEY, key UNIQUE, at, value)",
    "CREATE TABLE pages(key PRIMARY KEY, value, until) WITHOUT ROWID",
    "CREATE INDEX old ON pages(until)",
    "CREATE TABLE due(key, member, score, PRIMARY KEY(key, member)) WITHOUT ROWID",
    "CREATE INDEX first_due ON due(key, score)",
    "CREATE INDEX living ON members(founder, ordinal, number) WHERE has_left = 0 AND ordinal > 0",
)
_KINDS = {kind: place << 47 for place, kind in enumerate((DIGEST, LINEAGE, BAND, ANCHOR))}
_VALUE_BITS = (1 << 47) - 1  # of a key that are kept, so that a number of 7 bytes names a bucket

_pack = msgspec.msgpack.Encoder().encode


class _Cached(Generic[Key, Value]):
    """A table of the file, with the values since the last commit."""

    def __init__(
        self,
        file: sqlite3.Connection,
        name: str,
        pack: Callable[[Value], bytes | int],
        unpack: Callable[[Key, Any], Value],
    ) -> None:
        self._file, self._pack = file, pack
        self._unpack: Callable[[Key, Any], Value] = unpack
        self._read = f"SELECT value FROM {name} WHERE key = ?"  # noqa: S608 - our own name
        self._write = f"INSERT OR REPLACE INTO {name} VALUES (?, ?)"  # noqa: S608
        self._remove = f"DELETE FROM {name} WHERE key = ?"  # noqa: S608
        self._held: dict[Key, tuple[Value | None, bytes | int | None]] = {}  # with what the file has

    def get(self, key: Key, /) -> Value | None:
        held = self._held.get(key)
        if held is None:
            row = self._file.execute(self._read, (key,)).fetchone()
            try:
                held = self._held[key] = (self._unpack(key, row[0]), row[0]) if row else (None, None)
            except (msgspec.MsgspecError, ValueError) as error:
                raise sqlite3.DatabaseError(f"a value in it is damaged: {error}") from None
        return held[0]

    def __getitem__(self, key: Key, /) -> Value:
        value = self.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def __setitem__(self, key: Key, value: Value, /) -> None:
        self.get(key)
        self._held[key] = value, self._held[key][1]

    def __delitem__(self, key: Key, /) -> None:
        self.get(key)
        self._held[key] = None, self._held[key][1]

    def __contains__(self, key: Key, /) -> bool:
        return self.get(key) is not None

    def __len__(self) -> int:
        return len(self._held)

    def flush(self) -> None:
        packed = [(key, None if value is None else self._pack(value), was) for key, (value, was) in self._held.items()]
        self._file.executemany(self._write, ((key, now) for key, now, was in packed if now not in (None, was)))
        self._file.executemany(self._remove, ((key,) for key, now, was in packed if now is None is not was))
        self.forget()

    def forget(self) -> None:
        self._held.clear()


class _Buckets:
    """The numbers in buckets, each of which is named by its kind and 47 bits of its key."""

    def __init__(self, table: _Cached[int, bytes]) -> None:
        self._table = table

    def get(self, key: bytes) -> bytes:
        return self._table.get(_place(key)) or b""

    def put(self, key: bytes, before: bytes, numbers: bytes) -> None:
        if numbers:
            self._table[_place(key)] = numbers
        elif before:
            del self._table[_place(key)]


class _Members:
    """The members of a family."""

    def __init__(self, file: sqlite3.Connection, founder: int) -> None:
        self._file, self._founder = file, founder

    def place(self, number: int) -> tuple[int, bool]:
        asking = "SELECT ordinal, has_left FROM members WHERE founder = ? AND number = ?"
        ordinal, has_left = self._file.execute(asking, (self._founder, number)).fetchone() or (0, 0)
        return ordinal, bool(has_left)

    def put(self, number: int, ordinal: int, has_left: bool) -> None:
        self._file.execute(
            "INSERT OR REPLACE INTO members VALUES (?, ?, ?, ?)", (self._founder, number, ordinal, has_left)
        )

    def forget(self, number: int) -> None:
        self._file.execute("DELETE FROM members WHERE founder = ? AND number = ?", (self._founder, number))

    def newest(self, most: int) -> list[int]:
        return [number for (number,) in self._living("number", "ORDER BY ordinal DESC, number DESC LIMIT ?", most)]

    def page(self, first: int, last: int, most: int) -> list[tuple[int, int]]:
        how = "AND ordinal BETWEEN ? AND ? ORDER BY ordinal, number LIMIT ?"
        return self._living("number, ordinal", how, first, last, most).fetchall()

    def count(self) -> int:
        return int(self._living("count(*)").fetchone()[0])

    def _living(self, what: str, how: str = "", *values: int) -> sqlite3.Cursor:
        asking = f"SELECT {what} FROM members WHERE founder = ? AND has_left = 0 AND ordinal > 0 {how}"  # noqa: S608
        return self._file.execute(asking, (self._founder, *values))

    def clear(self) -> None:
        self._file.execute("DELETE FROM members WHERE founder = ?", (self._founder,))


class _Ages:
    """Since when keys are there."""

    def __init__(self, file: sqlite3.Connection) -> None:
        self._file = file
        self._none_before: dict[str, int] = {}  # by kind, the time before which no key is there

    def add(self, kind: str, since_ms: int, key: int | bytes) -> None:
        self._file.execute("INSERT OR IGNORE INTO ages VALUES (?, ?, ?)", (kind, since_ms, key))
        self._none_before[kind] = min(self._none_before.get(kind, 0), since_ms)

    def forget(self) -> None:
        self._none_before.clear()

    def take(self, kind: str, before_ms: int) -> list[Any]:
        if before_ms <= self._none_before.get(kind, 0):
            return []
        asking = "SELECT since, key FROM ages WHERE kind = ? ORDER BY since LIMIT ?"
        oldest = self._file.execute(asking, (kind, EXPIRED_AT_ONCE + 1)).fetchall()
        taken = [row for row in oldest[:EXPIRED_AT_ONCE] if row[0] < before_ms]
        self._file.executemany(
            "DELETE FROM ages WHERE kind = ? AND since = ? AND key = ?", ((kind, *row) for row in taken)
        )
        self._none_before[kind] = oldest[len(taken)][0] if len(oldest) > len(taken) else before_ms
        return [key for _, key in taken]


def _place(key: bytes) -> int:
    return _KINDS[key[:1]] | int.from_bytes(key[1:], "big") & _VALUE_BITS


def tables_of(file: sqlite3.Connection) -> tuple[Tables, _Ages, list[_Cached[Any, Any]]]:
    """Return the tables of the slot, its ages, and the tables to flush."""
    made: list[_Cached[Any, Any]] = []

    def packed(name: str, kind: Any) -> _Cached[Any, Any]:  # noqa: ANN401 - a type
        decode = msgspec.msgpack.Decoder(kind).decode
        return plain(name, _pack, lambda _, value: decode(value))

    def plain(
        name: str,
        pack: Callable[[Any], Any] = lambda value: value,
        unpack: Callable[[Any, Any], Any] = lambda _, it: it,
    ) -> _Cached[Any, Any]:
        made.append(_Cached(file, name, pack, unpack))
        return made[-1]

    facts, ages = msgspec.msgpack.Decoder(Facts).decode, _Ages(file)
    tables = Tables(
        documents=Documents(
            states=packed("states", State),
            current=plain("current"),
            removals=packed("removals", tuple[Sent, int]),
            labels=packed("labels", tuple[int, bytes]),
            ages=ages,
        ),
        covers=plain("covers"),
        held=_Buckets(plain("buckets", _packed_numbers, _numbers)),
        keys=plain("keys"),
        families=plain(
            "families",
            lambda family: _pack(family.facts),
            lambda founder, value: Family(founder, facts(value), _Members(file, founder)),
        ),
        members=lambda founder: _Members(file, founder),
        kept=packed("kept", tuple[bytes, int]),
    )
    return tables, ages, made


def _packed_numbers(numbers: bytes) -> bytes | int:
    """Return a single number as such, which takes less room."""
    return numbers if len(numbers) > NUMBER_BYTES else int.from_bytes(numbers, "big")


def _numbers(_: int, value: bytes | int) -> bytes:
    return value if isinstance(value, bytes) else value.to_bytes(NUMBER_BYTES, "big")
