"""Open an index, create it, and lease it to the one process that fills it again."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from nearstream.streams.store.limits import IndexLimits, IndexLostError
from nearstream.streams.store.store import Shape
from nearstream.workers.config.exit_codes import RefusalError
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.redis.server.client import Client, ask, delete_keys, keys_of
from nearstream.workers.redis.server.layout import (
    EPOCH_BYTES,
    FORMAT,
    LEASE_BYTES,
    KeyKind,
    StoreLayout,
    format_of,
    new_layout,
    shape_of,
)


async def open_store(
    client: Client, prefix: bytes, shape: Shape, limits: IndexLimits, *, may_create: bool
) -> StoreLayout:
    """Return the layout of an index.

    Slots are created from the last to the first, each once. So where the first is, all have been created.
    If it `may_create` slots, nothing was ever admitted, so what is missing is new rather than lost.
    """
    layout = new_layout(prefix, shape, limits, os.urandom(EPOCH_BYTES))
    first = await packed_layout(client, layout.tag(0) + KeyKind.FACTS, prefix)
    if first is not None:  # an index of another format or shape is not lost because it lacks some of these slots
        as_stored(layout, first)
    for slot in reversed(range(shape.slots)):
        key = layout.tag(slot) + KeyKind.FACTS
        stored = await packed_layout(client, key, prefix)
        if stored is None and may_create:
            await ask(client, "HSETNX", key, "layout", layout.packed)
            stored = await packed_layout(client, key, prefix)
        found = None if stored is None else as_stored(layout, stored)
        if found is None or (slot < shape.slots - 1 and found.epoch != layout.epoch):
            raise IndexLostError(f"slot {slot} of {name_of(prefix)} was emptied or replaced: run `nearstream rebuild`")
        layout = found
    return layout


async def stored_layout(client: Client, prefix: bytes, limits: IndexLimits) -> StoreLayout:
    """Return the layout of an index, as its first slot keeps it."""
    key = StoreLayout(prefix, b"", Shape(), {}, limits).tag(0) + KeyKind.FACTS
    stored = await packed_layout(client, key, prefix)
    if stored is None:
        raise IndexLostError(f"{name_of(prefix)} holds no index: run `nearstream rebuild`")
    return new_layout(prefix, shape_of(stored), limits, b"").as_stored(stored)


async def packed_layout(client: Client, key: bytes, prefix: bytes) -> bytes | None:
    """Return what a slot keeps of the layout, None if there is no slot."""
    packed: bytes | None = await ask(client, "HGET", key, "layout")
    if packed is not None and (found := format_of(packed)) != FORMAT:
        raise SettingsError(
            f"NEARSTREAM_NAMESPACE: {name_of(prefix)} holds an index of format {found}, this release keeps {FORMAT}:"
            " name another one and run `nearstream rebuild`"
        )
    return packed


def as_stored(layout: StoreLayout, packed: bytes) -> StoreLayout:
    """Return the layout that a slot keeps."""
    require_shape(layout.prefix, shape_of(packed), layout.shape)
    return layout.as_stored(packed)


def require_shape(prefix: bytes, stored: Shape, wanted: Shape) -> None:
    """Refuse an index of another shape than the one that is wanted."""
    if stored.partitions != wanted.partitions:
        raise SettingsError(
            f"NEARSTREAM_NAMESPACE: {name_of(prefix)} holds an index for {stored.partitions} partitions of signatures,"
            f" which has {wanted.partitions}: name another one and run `nearstream rebuild`"
        )
    if stored.slots != wanted.slots:
        raise SettingsError(
            f"NEARSTREAM_INDEX_SLOTS: {name_of(prefix)} is spread over {stored.slots} slots, not {wanted.slots}:"
            " restore the former value, or name another namespace and run `nearstream rebuild`"
        )


def name_of(prefix: bytes) -> str:
    """Return the namespace of an index."""
    return prefix.decode().strip("{").partition(":")[0]


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
        """Give the lease back, if it is still ours, so that a rebuild can go on."""
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
            keys = keys_of(self.client, self.layout.tag(slot))
            await delete_keys(self.client, (key async for key in keys if key != self._key))
