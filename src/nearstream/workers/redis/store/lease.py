"""The right to fill an index again, for one rebuild at a time."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from nearstream.workers.config.exit_codes import RefusalError
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.redis.server.client import Client, ask, keys_of
from nearstream.workers.redis.server.layout import LEASE_BYTES, KeyKind, StoreLayout
from nearstream.workers.redis.store.opening import as_stored, name_of, packed_layout

_UNLINKED = 500  # keys in one command


class RebuildRefusedError(RefusalError):
    """The index holds documents, or another rebuild is running."""


@dataclass(frozen=True)
class Lease:
    """The right to fill an index again. No client without it can use the index meanwhile.

    Every method raises IndexUnavailableError if a server does not answer, and all but `release` raise
    RebuildRefusedError if another rebuild has the lease.
    """

    client: Client  # of the server, or of the cluster
    layout: StoreLayout  # the layout of a new index
    ms: int  # how long no other rebuild may begin, unless the lease is renewed
    token: bytes = field(default_factory=lambda: os.urandom(LEASE_BYTES))  # tells it from others

    async def begin(self) -> StoreLayout:
        """Return the layout of an emptied index, or of one whose rebuild goes on."""
        await self.renew()
        try:
            return await self._emptied()
        except (RebuildRefusedError, SettingsError):
            await self.release()
            raise

    async def renew(self) -> None:
        """Keep the lease, or take it if it is free."""
        if not await ask(self.client, "SET", self._key, self.token, "NX", "PX", self.ms):
            if await ask(self.client, "GET", self._key) != self.token:
                raise RebuildRefusedError(
                    f"another rebuild of {name_of(self.layout.prefix)} is under way, or was cut off less than "
                    f"{self.ms / 1000:g} s ago: wait, then run `nearstream rebuild` again"
                )
            await ask(self.client, "SET", self._key, self.token, "XX", "PX", self.ms)

    async def finish(self) -> None:
        """Make the rebuilt index ready for all."""
        await self.renew()
        for key in reversed(self._facts_keys):
            await ask(self.client, "HDEL", key, "rebuilder")
        await self.release()

    async def release(self) -> None:
        """Give the lease back, if it is still ours. An unfinished rebuild can then be resumed at once."""
        if await ask(self.client, "GET", self._key) == self.token:
            await ask(self.client, "DEL", self._key)

    @property
    def _key(self) -> bytes:
        return self.layout.tag(0) + KeyKind.LEASE

    @property
    def _facts_keys(self) -> Sequence[bytes]:
        return [self.layout.tag(slot) + KeyKind.FACTS for slot in range(self.layout.shape.slots)]

    async def _emptied(self) -> StoreLayout:
        client, layout, keys = self.client, self.layout, self._facts_keys
        stored = [await packed_layout(client, key, layout.prefix) for key in keys]
        found = [as_stored(layout, packed) for packed in stored if packed is not None]
        facts = [await ask(client, "HMGET", key, "rebuilder", "now") for key in keys]
        is_whole = None not in stored and len(set(stored)) == 1
        is_unfinished = any(rebuilder for rebuilder, _ in facts)
        if is_whole and not is_unfinished and any(now for _, now in facts):
            raise RebuildRefusedError(
                f"{name_of(layout.prefix)} holds documents: only a lost or empty index can be rebuilt"
            )
        if is_whole and is_unfinished:
            layout = found[0]
        else:
            await self._empty()
        for key in keys:
            await ask(client, "HSET", key, "layout", layout.packed, "rebuilder", self.token)
        return layout

    async def _empty(self) -> None:
        """Delete everything that a former index has left, because the numbers of its states come again.

        The facts go first, so that no worker writes to a slot any more that is emptied.
        """
        for key in self._facts_keys:
            await ask(self.client, "DEL", key)
        for slot in range(self.layout.shape.slots):
            found = [key async for key in keys_of(self.client, self.layout.tag(slot)) if key != self._key]
            for at in range(0, len(found), _UNLINKED):
                first, *others = found[at : at + _UNLINKED]
                await ask(self.client, "UNLINK", first, *others)
