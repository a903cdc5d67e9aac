"""The state of each page, and what is known of each host and folder, in Redis."""

import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeVar

import msgspec

from nearstream.streams.deciding.decider import Needs, places_of
from nearstream.streams.deciding.deciding import may_skip, renewed
from nearstream.streams.deciding.memory import MemoryDecisions
from nearstream.streams.deciding.states import HostState, PageState
from nearstream.streams.ingest.lineage import host_of
from nearstream.workers.redis.server.client import Caller, Commanded, ask, pipelined

KEPT_SECONDS = 90 * 86_400  # after the fetch that decided was read
_FORMAT = b"3"  # of the states, so that those of another format are not found
_ALIAS = b"@"  # begins the name of a page, stored under another one
# Before a host or a folder. No lineage has a control character.
_HOST, _FOLDER, _DUE = "host\n", "rates\n", "due\n"
DUE_MAX = 100_000  # pages of a host that are listed with the times at which they are due
_ERROR = 1 << 40  # seconds by which error pages are listed earlier than all others
_AT_ONCE = 250  # values, which Redis reads without keeping others waiting
_STEPS = 4  # from another name to the page, to the page on which that one rests, and on to those on which these rest

_Page = tuple[str, str]  # collection and name, also of a host or folder
_Kept = TypeVar("_Kept")
_Command = tuple[str, bytes, *tuple[bytes | int | str, ...]]


@dataclass(frozen=True)
class DecisionStore:
    """Reads and writes the states of pages, all for 90 days."""

    client: Caller | Commanded  # a client of the server of the index
    namespace: str  # first part of every key
    freshness: float = 0.8  # for the waits of pages that are asked about, as a `Decider` has it

    async def read_state(self, collection: str, name: str) -> PageState | None:
        """Return the state of a page, or None if it has none."""
        (state,) = await self.read_states(collection, [name])
        return state

    async def read_states(self, collection: str, names: Sequence[str]) -> list[PageState | None]:
        """Return the states of pages with their current waits, in few round trips."""
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
        return [state for state in states if state is not None and not may_skip(state.decision, 1000 * now)]

    async def load(self, needs: Needs) -> MemoryDecisions:
        """Return what is known before a batch of events, in few round trips."""
        found, hosts, folders = MemoryDecisions(), list(needs.hosts), list(needs.folders)
        places = [(collection, _HOST + host) for collection, host in hosts]
        places += [(collection, _FOLDER + folder) for collection, folder in folders]
        values = await self._values(self._key(*place) for place in places)
        for place, value in zip(hosts, values, strict=False):
            if value is not None:
                found.hosts[place] = msgspec.msgpack.decode(zlib.decompress(value), type=HostState)
        found.folders.update(
            (place, value) for place, value in zip(folders, values[len(hosts) :], strict=True) if value
        )
        wanted = {(key[0], turn.lineage) for key, host in found.hosts.items() for turn in host.turns} | needs.pages
        read: set[_Page] = set()
        for _ in range(_STEPS):
            pages = list(wanted - read)
            read.update(pages)
            for page, value in zip(pages, await self._values(self._key(*page) for page in pages), strict=True):
                if _is_alias(value):
                    found.aliases[page] = _name(value)
                    wanted.add((page[0], found.aliases[page]))
                elif state := _state(value):
                    found.states[page] = state
                    wanted.update([(page[0], state.canonical.name)] if state.canonical else [])
        return found

    async def save(self, before: MemoryDecisions, after: MemoryDecisions) -> None:
        """Store what a batch has changed, hosts first.

        Of two workers that store a host at one moment one is lost. Later fetches make up for it.
        """
        places = [
            (key, _HOST, zlib.compress(msgspec.msgpack.encode(host)))
            for key, host in _changed(before.hosts, after.hosts)
        ]
        places += [(key, _FOLDER, sample) for key, sample in _changed(before.folders, after.folders)]
        commands = [self._storing((key[0], kind + key[1]), value) for key, kind, value in places]
        for page in (before.states.keys() | before.aliases) - after.states.keys():
            commands += self._removing(*page)
        for page, name in _changed(before.aliases, after.aliases):
            commands.append(self._storing(page, _ALIAS + name.encode("utf-8", "surrogatepass")))
        for page, state in _changed(before.states, after.states):
            commands += [self._storing(page, msgspec.msgpack.encode(state)), *self._listing(state)]
        await pipelined(self.client, commands)

    def _listing(self, state: PageState) -> list[_Command]:
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

    def _removing(self, collection: str, name: str) -> list[_Command]:
        """Return the commands that remove the state of a page, and list it no more."""
        listed: _Command = ("ZREM", self._key(collection, _DUE + host_of(name)), _digest(collection, name))
        return [("DEL", self._key(collection, name)), *([listed] if host_of(name) else [])]

    def _storing(self, page: tuple[str, str], value: bytes) -> _Command:
        return "SET", self._key(*page), value, "EX", KEPT_SECONDS

    async def _states(self, collection: str, keys: Sequence[bytes]) -> list[PageState | None]:
        values = await self._values(keys)
        aliases = [value for value in values if _is_alias(value)]
        behind = await self._values(self._key(collection, _name(value)) for value in aliases)
        named = dict(zip(aliases, behind, strict=True))
        states = [_state(named.get(value, value) if value else None) for value in values]
        urls = [state.own.address or state.name if state else "" for state in states]
        places = {url: self._key(collection, _FOLDER + places_of(url)[1]) for url in urls if url}
        folders = dict(zip(places, await self._values(places.values()), strict=True))
        pairs = zip(states, urls, strict=True)
        return [state and renewed(state, folders.get(url) or b"", self.freshness) for state, url in pairs]

    async def _values(self, keys: Iterable[bytes]) -> list[bytes | None]:
        asked, values = [("GET", key) for key in keys], list[bytes | None]()
        for start in range(0, len(asked), _AT_ONCE):
            values += await pipelined(self.client, asked[start : start + _AT_ONCE])
        return values

    def _key(self, collection: str, name: str) -> bytes:
        return self._place(_digest(collection, name).hex())

    def _place(self, digest: str) -> bytes:
        # In a cluster each key has a slot of its own. The user of the index may write keys that begin like this.
        return f"{{{self.namespace}:page:{digest}}}".encode()


def _changed(before: Mapping[_Page, _Kept], after: Mapping[_Page, _Kept]) -> list[tuple[_Page, _Kept]]:
    return [(key, value) for key, value in after.items() if before.get(key) is not value]


def _digest(collection: str, name: str) -> bytes:
    return blake2b(f"{collection}/{name}".encode("utf-8", "surrogatepass"), digest_size=16, person=_FORMAT).digest()


def _is_alias(value: bytes | None) -> bool:
    return value is not None and value.startswith(_ALIAS)


def _name(alias: bytes | None) -> str:
    return (alias or b"")[len(_ALIAS) :].decode("utf-8", "surrogatepass")


def _state(value: bytes | None) -> PageState | None:
    """Return the state that is stored, None without one or behind a second alias."""
    return None if value is None or _is_alias(value) else msgspec.msgpack.decode(value, type=PageState)
