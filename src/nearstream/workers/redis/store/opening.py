"""Opens an index, and creates it if there never was one."""

import os

from nearstream.streams.store.limits import IndexLimits, IndexLostError
from nearstream.streams.store.store import Shape
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.redis.server.client import Client, ask
from nearstream.workers.redis.server.layout import (
    EPOCH_BYTES,
    FORMAT,
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
