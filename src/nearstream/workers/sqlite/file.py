"""An index in a file of SQLite, which one process has at a time.

SQLite rather than LMDB: with 45 keys and a record of 1,400 bytes a document, both take a millisecond for it in batches
of 64, of which two thirds are writing. SQLite writes 70 to 150 KB a document, and LMDB 760 KB, since it copies each
page of 4 KB that it touches, where pages of SQLite may have 1 KB. SQLite is part of Python, grows by itself, and takes
back a batch for which the disk has no room. Its log has a checksum for each page, so a batch is there as a whole or not
at all.
"""

import fcntl
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from nearstream.streams.store.limits import IndexLimits, IndexUnavailableError
from nearstream.streams.store.part import Part
from nearstream.streams.store.store import Call, Local, Shape, Store
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.sqlite.tables import SCHEMA, tables_of

_LIMITS = IndexLimits()
FORMAT = 1  # changes with the tables, because a release reads no other format
_APPLICATION = 0x6E656172  # what the header of the file says: "near"
_PAGE_BYTES = 1024  # The keys of a document are spread over all pages, so that small ones are written sooner.
_CACHE_KIB = 131_072
# A record that comes lets go of two that are too old, so that no call takes long.
_LEAVE = "DELETE FROM records WHERE number IN (SELECT number FROM records ORDER BY number LIMIT 2) AND at < ?"
_HAS_NO_RECORDS = "SELECT EXISTS(SELECT 1 FROM current) AND NOT EXISTS(SELECT 1 FROM records)"
_HELD_MAX = 20_000  # values that calls have only read, which are forgotten then
_LOG_BYTES = 1 << 25  # of the log, after which its pages are written into the file
_OPENING = (
    f"PRAGMA page_size = {_PAGE_BYTES}",
    "PRAGMA locking_mode = EXCLUSIVE",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    f"PRAGMA cache_size = -{_CACHE_KIB}",
    f"PRAGMA wal_autocheckpoint = {_LOG_BYTES // _PAGE_BYTES}",
)


class IndexFile:
    """An index in a file.

    What is done through its store is in the file, as a whole, after the next `commit`. A matcher must have returned by
    then, and an answer waits for it.

    Attributes:
        store: The store of the index.
        offsets: Offsets of which none was used before, also by what was rolled back.
        scheme: The name of its scheme.
        path: Where it is.
    """

    def __init__(
        self, path: str | Path, scheme: str, limits: IndexLimits, shape: Shape, clock: Callable[[], int] | None = None
    ) -> None:
        """Open a file, or make one. `open_store` describes the arguments and the errors."""
        self.path, self.scheme = Path(path), scheme
        try:
            self.file = sqlite3.connect(self.path.absolute(), 0, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise SettingsError(f"{self.path}: expected a file that can be written: {error}") from None
        self._lock = _locked(self.path)
        try:
            self._begin()
            self._next = int(self._fact("next") or 0)
        except BaseException as error:
            self.close()
            if isinstance(error, sqlite3.OperationalError):
                raise SettingsError(f"{self.path}: the file cannot be written: {error}") from None
            if isinstance(error, sqlite3.Error | UnicodeError):
                raise SettingsError(f"{self.path}: expected an index, or a new file: {error}") from None
            raise
        tables, self.ages, self._tables = tables_of(self.file)
        self._retention_ms = 1000 * limits.retention_seconds
        self.part = Part(limits, clock or _now_ms, tables)
        self.offsets = self._numbers()
        self.store = Store(self, shape, limits, offsets=self.offsets)
        self._local = Local([self.part])
        self._has_changed = False

    def _begin(self) -> None:
        """Begin to write into the file, which is empty or an index of this scheme."""
        (application,) = self.file.execute("PRAGMA application_id").fetchone()
        (tables,) = self.file.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if application != _APPLICATION and tables:
            raise SettingsError(f"{self.path}: expected an index, or a new file, not another database")
        for setting in _OPENING:
            self.file.execute(setting)
        self.file.execute("BEGIN IMMEDIATE")
        if not tables:
            for statement in SCHEMA:
                self.file.execute(statement)
            self.file.execute(f"PRAGMA application_id = {_APPLICATION}")
            self.file.executemany("INSERT INTO facts VALUES (?, ?)", (("format", FORMAT), ("scheme", self.scheme)))
            self.file.execute("COMMIT")
            self.file.execute("BEGIN IMMEDIATE")
        self._require("format", FORMAT, "an index of another release: make a new one from your documents")
        way = "set NEARSTREAM_SCHEME and NEARSTREAM_HASH_KEY as they were, or after an update make a new one"
        self._require("scheme", self.scheme, way)

    def _fact(self, name: str) -> Any:  # noqa: ANN401 - a number or a text
        row = self.file.execute("SELECT value FROM facts WHERE key = ?", (name,)).fetchone()
        return row[0] if row else None

    def _require(self, name: str, expected: int | str, way: str) -> None:
        found = self._fact(name)
        if found != expected:
            raise SettingsError(f"{self.path}: expected the {name} {expected}, but it has {found}: {way}")

    def _numbers(self) -> Iterator[int]:
        while True:
            self._next += 1
            yield self._next - 1

    def expire(self) -> None:
        """Forget what became too old while the file was closed."""
        with self.mapped():
            self.part.history.advance(0)
            while self.part.expire():
                self.commit()

    @contextmanager
    def mapped(self) -> Iterator[None]:
        """Go back to the last commit if anything goes wrong with the file in the block."""
        try:
            yield
        except sqlite3.Error as error:
            self._forget()
            with suppress(sqlite3.Error):
                self.file.execute("ROLLBACK")
            with suppress(sqlite3.Error):
                self.file.execute("BEGIN IMMEDIATE")
            raise IndexUnavailableError(f"{self.path}: nothing was stored: {error}") from error

    def flush(self) -> None:
        """Hand what was done since the last commit to the file, for `write`."""
        with self.mapped():
            for table in self._tables:
                table.flush()
            self._has_changed = False
            self.file.execute("INSERT OR REPLACE INTO facts VALUES ('next', ?)", (self._next,))

    def write(self) -> None:
        """Write what was handed to the file, all of it or nothing."""
        with self.mapped():
            self.file.execute("COMMIT")
            self.file.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Write what was done since the last commit, all of it or nothing.

        Raises:
            IndexUnavailableError: The disk has no room, or the like. What was done since the last commit is lost.
        """
        self.flush()
        self.write()

    def close(self) -> None:
        """Close the file, without what was done since the last commit."""
        with suppress(sqlite3.Error):
            self.file.execute("ROLLBACK")
        self.file.close()
        Path(f"{self.path}.lock").unlink(missing_ok=True)
        os.close(self._lock)

    def __enter__(self) -> Self:
        """Return the open index."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Commit, unless something went wrong, and close the file."""
        try:
            if kind is None:
                self.commit()
        finally:
            self.close()

    def keep(self, key: bytes, value: bytes | None, at_ms: int) -> None:
        """Keep the newest record of a key for a retention, as the topic of signatures does."""
        with self.mapped():
            self.file.execute("DELETE FROM records WHERE key = ?", (key,))
            if value is not None:
                self.file.execute("INSERT INTO records(key, at, value) VALUES (?, ?, ?)", (key, at_ms, value))
            if self._retention_ms:
                self.file.execute(_LEAVE, (at_ms - self._retention_ms,))

    def records(self) -> Iterator[tuple[bytes, int, bytes]]:
        """Yield key, time and value of each record that is kept, the oldest first."""
        with self.mapped():
            if self.file.execute(_HAS_NO_RECORDS).fetchone()[0]:
                way = "send the documents, since `open_store` keeps no signatures"
                raise SettingsError(f"{self.path}: expected an index of `scan` or `serve`: {way}")
            yield from self.file.execute("SELECT key, at, value FROM records ORDER BY number")

    def founders(self) -> list[int]:
        """Return the founders of all families with a second member."""
        with self.mapped():
            return [founder for (founder,) in self.file.execute("SELECT DISTINCT founder FROM members")]

    async def all(self, calls: Sequence[Call]) -> Sequence[Sequence[Any]]:
        """Return the replies to calls, as a transport does."""
        with self.mapped():
            replies = await self._local.all(calls)
        self._has_changed |= any(call.partition is not None for call in calls)
        if not self._has_changed and sum(map(len, self._tables)) > _HELD_MAX:
            self._forget()
        return replies

    def _forget(self) -> None:
        for table in self._tables:
            table.forget()
        self.ages.forget()


def open_store(path: str | Path, scheme: str, limits: IndexLimits = _LIMITS) -> IndexFile:
    """Open the index in a file for this process alone, or make one.

    Args:
        path: The file. While it is open, two others lie beside it, with its name and `-wal` and `.lock` behind that.
        scheme: The name of the scheme of all signatures, which depends on its key.
        limits: Bounds of the index.

    Raises:
        SettingsError: It is no index, has another scheme, or another process has it open.
    """
    index = IndexFile(path, scheme, limits, Shape())
    index.expire()
    return index


def _locked(path: Path) -> int:
    """Take the lock of a file. It names its process."""
    lock = None
    try:
        lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)
    except OSError as error:
        why = f"expected a file that can be written: {error.strerror}"
        if lock is not None:
            if isinstance(error, BlockingIOError):
                why = f"another process has it open, with the id {os.pread(lock, 20, 0).decode()}"
            os.close(lock)
        raise SettingsError(f"{path}: {why}") from None
    return lock


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
