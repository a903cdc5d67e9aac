"""Opens an index, creates it if there never was one, and empties a lost one."""

import os
from collections.abc import Sequence

from nearstream.streams.store.limits import IndexLimits, IndexLostError
from nearstream.streams.store.store import Shape
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.redis.server.client import Client, ask, keys_of
from nearstream.workers.redis.server.layout import (
    EPOCH_BYTES,
    FORMAT,
    KeyKind,
    StoreLayout,
    format_of,
    new_layout,
    shape_of,
)

_UNLINKED = 500  # keys in one command


class RebuildRefusedError(Exception):
    """The index holds documents, or another rebuild is running."""


async def open_store(
    client: Client, prefix: bytes, shape: Shape, limits: IndexLimits, *, may_create: bool
) -> StoreLayout:
    """Return the layout of an index.

    Slots are created from the last to the first, each once. So where the first is, all have been created.

    Args:
        client: Of the server, or of the cluster.
        prefix: What the hash tags of all slots begin with.
        shape: Count of slots and partitions.
        limits: Bounds of the index.
        may_create: Nothing was ever admitted, so what is missing is new rather than lost.

    Raises:
        SettingsError: Another release made the index, or it has another shape.
        IndexLostError: A slot is missing, or was created again.
        IndexUnavailableError: A server does not answer.
    """
    layout = new_layout(prefix, shape, limits, os.urandom(EPOCH_BYTES))
    first = await _packed_layout(client, layout.tag(0) + KeyKind.FACTS, prefix)
    if first is not None:  # an index of another format or shape is not lost because it lacks some of these slots
        _as_stored(layout, first)
    for slot in reversed(range(shape.slots)):
        key = layout.tag(slot) + KeyKind.FACTS
        stored = await _packed_layout(client, key, prefix)
        if stored is None and may_create:
            await ask(client, "HSETNX", key, "layout", layout.packed)
            stored = await _packed_layout(client, key, prefix)
        found = None if stored is None else _as_stored(layout, stored)
        if found is None or (slot < shape.slots - 1 and found.epoch != layout.epoch):
            raise IndexLostError(f"slot {slot} of {_name(prefix)} was emptied or replaced: run `nearstream rebuild`")
        layout = found
    return layout


async def stored_layout(client: Client, prefix: bytes, limits: IndexLimits) -> StoreLayout:
    """Return the layout of an index, as its first slot keeps it.

    Raises:
        SettingsError: Another release made the index.
        IndexLostError: There is no index.
        IndexUnavailableError: The server does not answer.
    """
    key = StoreLayout(prefix, b"", Shape(), {}, limits).tag(0) + KeyKind.FACTS
    stored = await _packed_layout(client, key, prefix)
    if stored is None:
        raise IndexLostError(f"{_name(prefix)} holds no index: run `nearstream rebuild`")
    return new_layout(prefix, shape_of(stored), limits, b"").as_stored(stored)


async def _packed_layout(client: Client, key: bytes, prefix: bytes) -> bytes | None:
    """Return what a slot keeps of the layout, None if there is no slot.

    Raises:
        SettingsError: Another release made the index. Those before format 8 kept the format by itself.
        IndexUnavailableError: The server does not answer.
    """
    packed: bytes | None
    former_format, packed = await ask(client, "HMGET", key, "format", "layout")
    if packed is None and former_format is None:
        return None
    found = int(former_format) if packed is None else format_of(packed)
    if found != FORMAT:
        raise SettingsError(
            f"NEARSTREAM_NAMESPACE: {_name(prefix)} holds an index of format {found}, this release keeps {FORMAT}: name"
            " another one and run `nearstream rebuild`"
        )
    return packed


def _as_stored(layout: StoreLayout, packed: bytes) -> StoreLayout:
    """Return the layout that a slot keeps.

    Raises:
        SettingsError: It has another shape.
    """
    require_shape(layout.prefix, shape_of(packed), layout.shape)
    return layout.as_stored(packed)


def require_shape(prefix: bytes, stored: Shape, wanted: Shape) -> None:
    """Refuse an index of another shape than the one that is wanted.

    Raises:
        SettingsError: It has another number of slots or partitions.
    """
    if stored.partitions != wanted.partitions:
        raise SettingsError(
            f"NEARSTREAM_NAMESPACE: {_name(prefix)} holds an index for {stored.partitions} partitions of signatures,"
            f" which has {wanted.partitions}: name another one and run `nearstream rebuild`"
        )
    if stored.slots != wanted.slots:
        raise SettingsError(
            f"NEARSTREAM_INDEX_SLOTS: {_name(prefix)} is spread over {stored.slots} slots, not {wanted.slots}:"
            " restore the former value, or name another namespace and run `nearstream rebuild`"
        )


async def begin_rebuild(
    client: Client, prefix: bytes, shape: Shape, limits: IndexLimits, *, lease: bytes, lease_ms: int
) -> StoreLayout:
    """Return the layout of an emptied index, or of one whose rebuild goes on.

    No other client can use it without the lease.

    Raises:
        RebuildRefusedError: The index holds documents, or another rebuild has the lease.
        SettingsError: Another release made the index, or it has another shape.
        IndexUnavailableError: A server does not answer.
    """
    layout = new_layout(prefix, shape, limits, os.urandom(EPOCH_BYTES))
    await renew_rebuild(client, layout, lease=lease, lease_ms=lease_ms)
    try:
        return await _emptied(client, layout, lease)
    except (RebuildRefusedError, SettingsError):
        await release_rebuild(client, layout, lease=lease)
        raise


async def _emptied(client: Client, layout: StoreLayout, lease: bytes) -> StoreLayout:
    keys = [layout.tag(slot) + KeyKind.FACTS for slot in range(layout.shape.slots)]
    stored = [await _packed_layout(client, key, layout.prefix) for key in keys]
    found = [_as_stored(layout, packed) for packed in stored if packed is not None]
    facts = [await ask(client, "HMGET", key, "rebuilder", "now") for key in keys]
    is_whole = None not in stored and len(set(stored)) == 1
    is_unfinished = any(rebuilder for rebuilder, _ in facts)
    if is_whole and not is_unfinished and any(now for _, now in facts):
        raise RebuildRefusedError(f"{_name(layout.prefix)} holds documents: only a lost or empty index can be rebuilt")
    if is_whole and is_unfinished:
        layout = found[0]
    else:
        await _empty(client, layout)
    for key in keys:
        await ask(client, "HSET", key, "layout", layout.packed, "rebuilder", lease)
    return layout


async def renew_rebuild(client: Client, layout: StoreLayout, *, lease: bytes, lease_ms: int) -> None:
    """Keep the lease, or take it if it is free.

    Raises:
        RebuildRefusedError: Another rebuild has the lease.
        IndexUnavailableError: A server does not answer.
    """
    key = layout.tag(0) + KeyKind.LEASE
    if not await ask(client, "SET", key, lease, "NX", "PX", lease_ms):
        if await ask(client, "GET", key) != lease:
            raise RebuildRefusedError(
                f"another rebuild of {_name(layout.prefix)} is under way, or was cut off less than "
                f"{lease_ms / 1000:g} s ago: wait, then run `nearstream rebuild` again"
            )
        await ask(client, "SET", key, lease, "XX", "PX", lease_ms)


async def finish_rebuild(client: Client, layout: StoreLayout, *, lease: bytes, lease_ms: int) -> None:
    """Make a rebuilt index ready for all.

    Raises:
        RebuildRefusedError: Another rebuild has the lease.
        IndexUnavailableError: A server does not answer.
    """
    await renew_rebuild(client, layout, lease=lease, lease_ms=lease_ms)
    for slot in reversed(range(layout.shape.slots)):
        await ask(client, "HDEL", layout.tag(slot) + KeyKind.FACTS, "rebuilder")
    await release_rebuild(client, layout, lease=lease)


async def release_rebuild(client: Client, layout: StoreLayout, *, lease: bytes) -> None:
    """Give the lease back, if it is still ours.

    Raises:
        IndexUnavailableError: The server does not answer.
    """
    key = layout.tag(0) + KeyKind.LEASE
    if await ask(client, "GET", key) == lease:
        await ask(client, "DEL", key)


async def _empty(client: Client, layout: StoreLayout) -> None:
    """Delete everything that a former index has left, because the numbers of its states come again.

    The facts go first, so that no worker writes to a slot any more that is emptied.
    """
    for slot in range(layout.shape.slots):
        await ask(client, "DEL", layout.tag(slot) + KeyKind.FACTS)
    for slot in range(layout.shape.slots):
        tag, kept = layout.tag(slot), layout.tag(slot) + KeyKind.LEASE
        found = [key async for key in keys_of(client, tag) if key != kept]
        for at in range(0, len(found), _UNLINKED):
            await _unlink(client, found[at : at + _UNLINKED])


async def _unlink(client: Client, keys: Sequence[bytes]) -> None:
    first, *others = keys
    await ask(client, "UNLINK", first, *others)


def _name(prefix: bytes) -> str:
    """Return the namespace of an index."""
    return prefix.decode().strip("{").partition(":")[0]
