"""The state of each page, what rests on it, and what is known of each host, in Redis."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeVar

import msgspec

from nearstream.streams.deciding.states import FOLLOWERS_MAX, HostErrors, PageState
from nearstream.streams.estimates.frames import Frame
from nearstream.streams.ingest.lineage import host_of
from nearstream.workers.redis.server.client import Caller, ask, ask_fields, pipelined

KEPT_SECONDS = 90 * 86_400  # after the fetch that decided was read
_ALIAS = b"@"  # begins the name of a page, stored under another one
# Before a host, or before a name. No lineage has a control character.
_FRAME, _ERRORS, _FOLLOWERS, _DUE = "frame\n", "errors\n", "followers\n", "due\n"
DUE_MAX = 100_000  # pages of a host that are listed with the times at which they are due
_ERROR = 1 << 40  # seconds by which error pages are listed earlier than all others
_STATES_AT_ONCE = 250  # which Redis reads without keeping others waiting

_Value = TypeVar("_Value")


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
        decision = state.decision
        key = self._key(decision.collection, decision.lineage)
        storing = ("SET", key, msgspec.msgpack.encode(state), "EX", KEPT_SECONDS)
        await pipelined(self.client, [storing, *self._listing(state)])

    async def write_alias(self, collection: str, alias: str, name: str) -> None:
        """Give a page another name."""
        await self._set(collection, alias, _ALIAS + name.encode("utf-8", "surrogatepass"))

    async def forget(self, collection: str, name: str) -> None:
        """Remove the state of a page."""
        await ask(self.client, "DEL", self._key(collection, name))
        if host_of(name):
            await ask(self.client, "ZREM", self._key(collection, _DUE + host_of(name)), _digest(collection, name))

    async def read_frame(self, collection: str, host: str) -> Frame:
        """Return what is known of the frame of a host."""
        return await self._get(collection, _FRAME + host, Frame, {})

    async def write_frame(self, collection: str, host: str, frame: Frame) -> None:
        """Store what is known of the frame of a host.

        Of two workers that store it at one moment one is lost. Later fetches make up for it.
        """
        await self._set(collection, _FRAME + host, msgspec.msgpack.encode(frame))

    async def read_errors(self, collection: str, host: str) -> HostErrors:
        """Return what is known of the error pages of a host."""
        return await self._get(collection, _ERRORS + host, HostErrors, HostErrors())

    async def write_errors(self, collection: str, host: str, errors: HostErrors) -> None:
        """Store what is known of the error pages of a host, as a frame."""
        await self._set(collection, _ERRORS + host, msgspec.msgpack.encode(errors))

    async def follow(self, collection: str, canonical: str, follower: str) -> bool:
        """List a page that rests on another one. Return whether there was room for it.

        Workers that list pages at one moment may each take the last room, so the list may be a little longer.
        """
        key, name = self._key(collection, _FOLLOWERS + canonical), follower.encode("utf-8", "surrogatepass")
        is_known = await ask(self.client, "HEXISTS", key, name)
        if not is_known and await ask(self.client, "HLEN", key) >= FOLLOWERS_MAX:
            return False
        await ask(self.client, "HSET", key, name, b"")
        await ask(self.client, "PEXPIRE", key, 1000 * KEPT_SECONDS)
        return True

    async def followers(self, collection: str, canonical: str) -> list[str]:
        """Return the pages that rest on a page, or have rested on it."""
        names = await ask_fields(self.client, self._key(collection, _FOLLOWERS + canonical))
        return sorted(name.decode("utf-8", "surrogatepass") for name in names)

    async def leave(self, collection: str, canonical: str, follower: str) -> None:
        """Take a page from the list of those that rest on another one."""
        name = follower.encode("utf-8", "surrogatepass")
        await ask(self.client, "HDEL", self._key(collection, _FOLLOWERS + canonical), name)

    def _listing(self, state: PageState) -> list[tuple[str, bytes, *tuple[bytes | int, ...]]]:
        """Return the commands that list when a page is due, if its lineage is a URL.

        Of too many pages of a host, those due last are left out.
        """
        decision = state.decision
        host = host_of(decision.lineage)
        if not host:
            return []
        key, due_at = self._key(decision.collection, _DUE + host), int(decision.until.timestamp())
        score = due_at - _ERROR if state.is_error_page else due_at
        return [
            ("ZADD", key, score, _digest(decision.collection, decision.lineage)),
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

    async def _get(self, collection: str, name: str, kind: type[_Value], missing: _Value) -> _Value:
        value = await ask(self.client, "GET", self._key(collection, name))
        return missing if value is None else msgspec.msgpack.decode(value, type=kind)

    async def _set(self, collection: str, name: str, value: bytes) -> None:
        await ask(self.client, "SET", self._key(collection, name), value, "EX", KEPT_SECONDS)

    def _key(self, collection: str, name: str) -> bytes:
        return self._place(_digest(collection, name).hex())

    def _place(self, digest: str) -> bytes:
        # In a cluster each key has a slot of its own. The user of the index may write keys that begin like this.
        return f"{{{self.namespace}:decision:{digest}}}".encode()


def _digest(collection: str, name: str) -> bytes:
    return blake2b(f"{collection}/{name}".encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _is_alias(value: bytes | None) -> bool:
    return value is not None and value.startswith(_ALIAS)


def _name(alias: bytes | None) -> str:
    return (alias or b"")[len(_ALIAS) :].decode("utf-8", "surrogatepass")


def _state(value: bytes | None) -> PageState | None:
    """Return the state that is stored, None without one or behind a second alias."""
    return None if value is None or _is_alias(value) else msgspec.msgpack.decode(value, type=PageState)
