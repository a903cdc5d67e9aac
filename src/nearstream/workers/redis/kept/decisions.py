"""The state of each page, and what is known of each host and folder, in Redis."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import msgspec

from nearstream.streams.deciding.states import HostState, PageState
from nearstream.streams.ingest.lineage import host_of
from nearstream.workers.redis.server.client import Caller, ask, pipelined

KEPT_SECONDS = 90 * 86_400  # after the fetch that decided was read
_ALIAS = b"@"  # begins the name of a page, stored under another one
# Before a host or a folder. No lineage has a control character.
_HOST, _FOLDER, _DUE = "host\n", "folder\n", "due\n"
DUE_MAX = 100_000  # pages of a host that are listed with the times at which they are due
_ERROR = 1 << 40  # seconds by which error pages are listed earlier than all others
_STATES_AT_ONCE = 250  # which Redis reads without keeping others waiting


@dataclass(frozen=True)
class DecisionStore:
    """Reads and writes the states of pages, all for 90 days.

    Every method raises IndexUnavailableError if the server does not answer.
    """

    client: Caller  # a client of the server of the index
    namespace: str  # first part of every key

    async def read_state(self, collection: str, name: str) -> PageState | None:
        """Return the state of a page, or None if it has none."""
        value = await ask(self.client, "GET", self._key(collection, name))
        if _is_alias(value):
            value = await ask(self.client, "GET", self._key(collection, _name(value)))
        return _state(value)

    async def read_states(self, collection: str, names: Sequence[str]) -> list[PageState | None]:
        """Return the states of pages, in few round trips."""
        return await self._states(collection, [self._key(collection, name) for name in names])

    async def due(self, collection: str, host: str, most: int) -> list[PageState]:
        """Return pages of a host that are due.

        Error pages come first, and of these and the others what is overdue for the longest time.
        """
        key, now = self._key(collection, _DUE + host), int(time.time())
        found: list[bytes] = []
        for first, last in (("-inf", now - _ERROR), (0, now)):
            found += await ask(self.client, "ZRANGEBYSCORE", key, first, last, "LIMIT", 0, most - len(found))
        states = await self._states(collection, [self._place(name.hex()) for name in found])
        return [state for state in states if state is not None]

    async def write(self, state: PageState) -> None:
        """Store the state of a page, in place of the one before."""
        key = self._key(state.collection, state.name)
        storing = ("SET", key, msgspec.msgpack.encode(state), "EX", KEPT_SECONDS)
        await pipelined(self.client, [storing, *self._listing(state)])

    async def write_alias(self, collection: str, alias: str, name: str) -> None:
        """Give a page another name, in place of the state that had it."""
        await self._set(collection, alias, _ALIAS + name.encode("utf-8", "surrogatepass"))

    async def forget(self, collection: str, name: str) -> None:
        """Remove the state of a page."""
        await ask(self.client, "DEL", self._key(collection, name))
        if host_of(name):
            await ask(self.client, "ZREM", self._key(collection, _DUE + host_of(name)), _digest(collection, name))

    async def read_places(self, collection: str, host: str, folder: str) -> tuple[HostState, bytes]:
        """Return what is known of a host, and of a folder."""
        keys = [self._key(collection, name) for name in (_HOST + host, _FOLDER + folder)]
        known, sample = await pipelined(self.client, [("GET", key) for key in keys])
        return HostState() if known is None else msgspec.msgpack.decode(known, type=HostState), sample or b""

    async def write_places(self, collection: str, host: str, state: HostState, folder: str, sample: bytes) -> None:
        """Store what is known of a host and a folder.

        Of two workers that store it at one moment one is lost. Later fetches make up for it.
        """
        values = {_HOST + host: msgspec.msgpack.encode(state), _FOLDER + folder: sample}
        commands = [("SET", self._key(collection, name), value, "EX", KEPT_SECONDS) for name, value in values.items()]
        await pipelined(self.client, commands)

    def _listing(self, state: PageState) -> list[tuple[str, bytes, *tuple[bytes | int, ...]]]:
        """Return the commands that list when a page is due, if its lineage is a URL.

        Of too many pages of a host, those due last are left out.
        """
        host = host_of(state.name)
        if not host:
            return []
        key, due_at = self._key(state.collection, _DUE + host), state.own.at_ms // 1000 + state.wait_seconds
        score = due_at - _ERROR if state.is_error_page else due_at
        return [
            ("ZADD", key, score, _digest(state.collection, state.name)),
            ("PEXPIRE", key, 1000 * KEPT_SECONDS),
            ("ZREMRANGEBYRANK", key, DUE_MAX, -1),
        ]

    async def _states(self, collection: str, keys: Sequence[bytes]) -> list[PageState | None]:
        states: list[PageState | None] = []
        for start in range(0, len(keys), _STATES_AT_ONCE):
            values = await pipelined(self.client, [("GET", key) for key in keys[start : start + _STATES_AT_ONCE]])
            aliases = {value: self._key(collection, _name(value)) for value in values if _is_alias(value)}
            behind = await pipelined(self.client, [("GET", key) for key in aliases.values()])
            named = dict(zip(aliases, behind, strict=True))
            states += [_state(named.get(value, value) if value else None) for value in values]
        return states

    async def _set(self, collection: str, name: str, value: bytes) -> None:
        await ask(self.client, "SET", self._key(collection, name), value, "EX", KEPT_SECONDS)

    def _key(self, collection: str, name: str) -> bytes:
        return self._place(_digest(collection, name).hex())

    def _place(self, digest: str) -> bytes:
        # In a cluster each key has a slot of its own. The user of the index may write keys that begin like this.
        return f"{{{self.namespace}:page:{digest}}}".encode()


def _digest(collection: str, name: str) -> bytes:
    return blake2b(f"{collection}/{name}".encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _is_alias(value: bytes | None) -> bool:
    return value is not None and value.startswith(_ALIAS)


def _name(alias: bytes | None) -> str:
    return (alias or b"")[len(_ALIAS) :].decode("utf-8", "surrogatepass")


def _state(value: bytes | None) -> PageState | None:
    """Return the state that is stored, None without one or behind a second alias."""
    return None if value is None or _is_alias(value) else msgspec.msgpack.decode(value, type=PageState)
