"""Opens an index, creates it if nothing was ever admitted, and empties it to be filled again."""

import os
from collections.abc import Sequence

from nearstream.streams.store.limits import IndexLimits, IndexLostError
from nearstream.streams.store.store import Shape
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.redis_index.client import Client, ask, keys_of
from nearstream.workers.redis_store.layout import (
    EPOCH_BYTES,
    KeyKind,
    OtherLayoutError,
    StoreLayout,
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
        IndexLostError: A slot is missing, or was created anew.
        IndexUnavailableError: A server does not answer.
    """
    layout = new_layout(prefix, shape, limits, os.urandom(EPOCH_BYTES))
    for slot in reversed(range(shape.slots)):
        key = layout.tag(slot) + KeyKind.FACTS
        former_format, stored = await ask(client, "HMGET", key, "format", "layout")
        if stored is None and former_format is None and may_create:
            await ask(client, "HSETNX", key, "layout", layout.packed)
            stored = await ask(client, "HGET", key, "layout")
        found = _stored(layout, stored, former_format)
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
    former_format, stored = await ask(client, "HMGET", key, "format", "layout")
    if stored is None and former_format is None:
        raise IndexLostError(f"{_name(prefix)} holds no index: run `nearstream rebuild`")
    shape = shape_of(stored) if stored else Shape()
    layout = _stored(new_layout(prefix, shape, limits, b""), stored, former_format)
    if layout is None:
        raise AssertionError("what is stored has a layout, or is refused")
    return layout


def _stored(layout: StoreLayout, packed: bytes | None, former_format: bytes | None) -> StoreLayout | None:
    try:
        return None if packed is None and former_format is None else layout.as_stored(packed or former_format or b"")
    except OtherLayoutError as error:
        raise SettingsError(
            f"NEARSTREAM_NAMESPACE, NEARSTREAM_INDEX_SLOTS: {_name(layout.prefix)} holds an index of {error}: name "
            "another namespace, or restore the former value, and run `nearstream rebuild`"
        ) from error


async def begin_rebuild(
    client: Client, prefix: bytes, shape: Shape, limits: IndexLimits, *, lease: bytes, lease_ms: int
) -> StoreLayout:
    """Return the layout of an emptied index that nobody can use without the lease, or of one whose rebuild goes on.

    Raises:
        RebuildRefusedError: The index holds documents, or another rebuild has the lease.
        SettingsError: Another release made the index, or it has another shape.
        IndexUnavailableError: A server does not answer.
    """
    layout = new_layout(prefix, shape, limits, os.urandom(EPOCH_BYTES))
    await renew_rebuild(client, layout, lease=lease, lease_ms=lease_ms)
    keys = [layout.tag(slot) + KeyKind.FACTS for slot in range(shape.slots)]
    facts = [await ask(client, "HMGET", key, "layout", "rebuilder", "now") for key in keys]
    stored = {packed for packed, _, _ in facts}
    is_whole = len(stored) == 1 and None not in stored
    is_unfinished = any(rebuilder for _, rebuilder, _ in facts)
    if is_whole and not is_unfinished and any(now for _, _, now in facts):
        raise RebuildRefusedError(f"{_name(prefix)} holds documents: only a lost or empty index can be rebuilt")
    if is_whole and is_unfinished:
        layout = layout.as_stored(stored.pop())
    else:
        await _empty(client, layout)
    for key in keys:
        await ask(client, "HSET", key, "layout", layout.packed, "rebuilder", lease)
    return layout


async def renew_rebuild(client: Client, layout: StoreLayout, *, lease: bytes, lease_ms: int) -> None:
    """Keep the lease, or take it if nobody has it.

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


async def finish_rebuild(client: Client, layout: StoreLayout) -> None:
    """Make a rebuilt index ready for all."""
    for slot in reversed(range(layout.shape.slots)):
        await ask(client, "HDEL", layout.tag(slot) + KeyKind.FACTS, "rebuilder")


async def _empty(client: Client, layout: StoreLayout) -> None:
    """Delete everything that a former index has left, because the numbers of its states come again."""
    for slot in range(layout.shape.slots):
        tag, kept = layout.tag(slot), layout.tag(slot) + KeyKind.LEASE
        found = [key async for key in keys_of(client, tag) if key != kept]
        for at in range(0, len(found), _UNLINKED):
            await _unlink(client, found[at : at + _UNLINKED])


async def _unlink(client: Client, keys: Sequence[bytes]) -> None:
    first, *others = keys
    await ask(client, "UNLINK", first, *others)


def _name(prefix: bytes) -> str:
    return prefix.decode().strip("{:")
