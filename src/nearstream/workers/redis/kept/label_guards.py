"""Labels that are suspended because too many match them.

A family has a hash of its own, `{namespace:label:<hash>}`, with the field `guard`. Workers that alert write it, the
HTTP API reads it.
"""

from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

import msgspec

from nearstream.workers.redis.server.client import Caller, ask

KEPT_MS = 90 * 86_400_000
_FIELD = b"guard"


class Guard(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for the labels of a family."""

    state: Literal["suspended", "confirmed"]  # they do not count until somebody decides, or an operator lets them count
    document: str  # id of a document of the family


@dataclass(frozen=True)
class LabelGuards:
    """Reads and writes them."""

    client: Caller  # a client of the server of the index
    namespace: str  # first part of every key

    async def read(self, collection: str, family: str) -> Guard | None:
        """Return what holds for the labels of a family, None if nothing was decided."""
        packed = await ask(self.client, "HGET", self._key(collection, family), _FIELD)
        return msgspec.json.decode(packed, type=Guard) if packed else None

    async def suspend(self, collection: str, family: str, document: str) -> None:
        """Suspend the labels of a family, unless something was decided about them."""
        key = self._key(collection, family)
        packed = msgspec.json.encode(Guard(state="suspended", document=document))
        await ask(self.client, "HSETNX", key, _FIELD, packed)
        await ask(self.client, "PEXPIRE", key, KEPT_MS)

    async def confirm(self, collection: str, family: str, guard: Guard) -> None:
        """Let the labels of a family count again."""
        key, confirmed = self._key(collection, family), Guard(state="confirmed", document=guard.document)
        await ask(self.client, "HSET", key, _FIELD, msgspec.json.encode(confirmed))
        await ask(self.client, "PEXPIRE", key, KEPT_MS)

    async def forget(self, collection: str, family: str) -> None:
        """Forget what was decided, because the labels were taken back."""
        await ask(self.client, "HDEL", self._key(collection, family), _FIELD)

    def _key(self, collection: str, family: str) -> bytes:
        name = blake2b(f"{collection}/{family}".encode(), digest_size=16).hexdigest()
        return f"{{{self.namespace}:label:{name}}}".encode()
