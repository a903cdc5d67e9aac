"""The state of each page, what rests on it, and what is known of each host, in Redis."""

from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeVar

import msgspec

from nearstream.streams.deciding.states import FOLLOWERS_MAX, HostErrors, PageState
from nearstream.streams.estimates.frames import Frame
from nearstream.workers.redis.server.client import Caller, ask, ask_fields

KEPT_SECONDS = 90 * 86_400  # after the fetch that decided was read
_ALIAS = b"@"  # begins the name of a page, stored under another one
# Before a host, or before a name. No lineage has a control character.
_FRAME, _ERRORS, _FOLLOWERS = "frame\n", "errors\n", "followers\n"

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
        if value is not None and value.startswith(_ALIAS):
            value = await ask(self.client, "GET", self._key(collection, value[1:].decode("utf-8", "surrogatepass")))
        if value is None or value.startswith(_ALIAS):
            return None
        return msgspec.msgpack.decode(value, type=PageState)

    async def write(self, state: PageState) -> None:
        """Store the state of a page, in place of the one before."""
        await self._set(state.decision.collection, state.decision.lineage, msgspec.msgpack.encode(state))

    async def write_alias(self, collection: str, alias: str, name: str) -> None:
        """Give a page another name."""
        await self._set(collection, alias, _ALIAS + name.encode("utf-8", "surrogatepass"))

    async def forget(self, collection: str, name: str) -> None:
        """Remove the state of a page."""
        await ask(self.client, "DEL", self._key(collection, name))

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

    async def _get(self, collection: str, name: str, kind: type[_Value], missing: _Value) -> _Value:
        value = await ask(self.client, "GET", self._key(collection, name))
        return missing if value is None else msgspec.msgpack.decode(value, type=kind)

    async def _set(self, collection: str, name: str, value: bytes) -> None:
        await ask(self.client, "SET", self._key(collection, name), value, "EX", KEPT_SECONDS)

    def _key(self, collection: str, name: str) -> bytes:
        digest = blake2b(f"{collection}/{name}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        # In a cluster each key has a slot of its own. The user of the index may write keys that begin like this.
        return f"{{{self.namespace}:decision:{digest}}}".encode()
