"""The states of pages in the file of an index, by the commands of `DecisionStore`."""

import time
from collections.abc import Sequence
from typing import Any

from nearstream.streams.store.tables import EXPIRED_AT_ONCE
from nearstream.workers.sqlite.file import IndexFile

_FIRST = -(1 << 62)  # as a score
_OLD = f"SELECT key FROM pages WHERE until < ? LIMIT {EXPIRED_AT_ONCE}"  # noqa: S608 - our own number
_GET = "SELECT value FROM pages WHERE key = ?"
_RANGE = "SELECT member FROM due WHERE key = ? AND score BETWEEN ? AND ? ORDER BY score LIMIT ?"
_FROM_RANK = "SELECT member FROM due WHERE key = ?1 ORDER BY score LIMIT -1 OFFSET ?2"
_CHANGES = {
    "DEL": "DELETE FROM pages WHERE key = ?",
    "SET": "INSERT OR REPLACE INTO pages VALUES (?1, ?2, CAST(strftime('%s', 'now') AS INTEGER) + ?4)",
    "ZADD": "INSERT OR REPLACE INTO due VALUES (?1, ?3, ?2)",
    "ZREM": "DELETE FROM due WHERE key = ? AND member = ?",
    "ZREMRANGEBYRANK": f"DELETE FROM due WHERE key = ?1 AND ?3 = -1 AND member IN ({_FROM_RANK})",  # noqa: S608
}


class PageCommands:
    """Carries out commands about the states of pages, and the lists of pages that are due."""

    def __init__(self, index: IndexFile) -> None:
        self._index = index

    async def execute_command(self, command: str, key: bytes, *words: bytes | str | int) -> Any:  # noqa: ANN401 - as redis
        """Return the reply to a command about a key."""
        with self._index.mapped():
            if command == "GET":
                found = self._index.file.execute(_GET, (key,)).fetchone()
                return found[0] if found else None
            if command == "ZRANGEBYSCORE":
                first, last, *_, most = words
                row = key, _FIRST if first == "-inf" else first, last, most
                return [member for (member,) in self._index.file.execute(_RANGE, row)]
            if command != "PEXPIRE":  # of a list, which ends with its pages
                self._index.file.execute(_CHANGES[command], (key, *words))
            return None

    async def execute_commands(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        """Return the replies to commands."""
        return [await self.execute_command(*command) for command in commands]

    def expire(self) -> None:
        """Forget some of what is too old."""
        with self._index.mapped():
            self._index.file.execute(f"DELETE FROM pages WHERE key IN ({_OLD})", (int(time.time()),))  # noqa: S608
