"""Labels that are suspended because too many match them.

A family has a hash of its own, `{namespace:label:<hash>}`, with the field `guard`. Workers that alert write it, the
HTTP API reads it.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal, Protocol

import msgspec

from nearstream.schemas.labels.label import LabelState
from nearstream.streams.matching.labels import Labelling
from nearstream.workers.redis.server.client import Caller, ask

KEPT_MS = 90 * 86_400_000
_FIELD = b"guard"
_LATER_MIN = 2  # documents that were labelled as spam since a suspension


class Guard(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for the labels of a family."""

    state: Literal["suspended", "confirmed"]  # they do not count until somebody decides, or an operator lets them count
    document: str  # id of a document of the family, empty if the labels were confirmed before any was suspended
    since_ms: int = 0  # when they were suspended, in milliseconds since 1970


def label_state(guard: Guard | None, given: Iterable[Labelling]) -> LabelState:
    """Return what holds for the labels of a family.

    Labels that two other documents have got since count for all: the family grows because it is spam, and the first
    label was right. One label of ham leaves the decision to an operator.
    """
    if guard is None or guard.state == "confirmed":
        return guard.state if guard else ""
    labels = list(given)
    later = sum(each.given_ms > guard.since_ms > 0 for each in labels)
    return "" if later >= _LATER_MIN and all(each.label == "spam" for each in labels) else "suspended"


class Guards(Protocol):
    """Says what holds for labels."""

    async def read(self, collection: str, family: str) -> Guard | None:
        """Return what holds for the labels of a family, None if nothing was decided."""


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
        key, since_ms = self._key(collection, family), time.time_ns() // 1_000_000
        packed = msgspec.json.encode(Guard(state="suspended", document=document, since_ms=since_ms))
        await ask(self.client, "HSETNX", key, _FIELD, packed)
        await ask(self.client, "PEXPIRE", key, KEPT_MS)

    async def confirm(self, collection: str, family: str, guard: Guard | None) -> None:
        """Let the labels of a family count, also those that it will get."""
        key, confirmed = (
            self._key(collection, family),
            Guard(state="confirmed", document=guard.document if guard else ""),
        )
        await ask(self.client, "HSET", key, _FIELD, msgspec.json.encode(confirmed))
        await ask(self.client, "PEXPIRE", key, KEPT_MS)

    async def forget(self, collection: str, family: str) -> None:
        """Forget what was decided, because the labels were taken back."""
        await ask(self.client, "HDEL", self._key(collection, family), _FIELD)

    def _key(self, collection: str, family: str) -> bytes:
        name = blake2b(f"{collection}/{family}".encode(), digest_size=16).hexdigest()
        return f"{{{self.namespace}:label:{name}}}".encode()
