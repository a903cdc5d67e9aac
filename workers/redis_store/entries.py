"""Buckets of keys: what is sent to enter, read and leave them."""

from collections.abc import Sequence

import numpy as np

from nearstream.streams.store.messages import KEY_BYTES, Entry
from nearstream.streams.store.registration import NUMBER_BYTES
from nearstream.workers.redis_store.layout import (
    BUCKET_KINDS,
    CHUNK_BYTES,
    ENTRY_FORMAT,
    FIELD_BYTES,
    FIELDS,
    FIRST_FIELD,
    StoreLayout,
    python_struct,
)

_ENTRY = python_struct(ENTRY_FORMAT)
_KEY = np.dtype([("kind", "u1"), ("value", ">u8")])
_SLOT_BITS = np.uint64(16)  # of a key, which decide its slot
_POWERS = 10 ** np.arange(FIELD_BYTES - 1, -1, -1, dtype=np.uint64)
_ZERO = ord("0")


def pack_entries(layout: StoreLayout, tag: bytes, batch: Sequence[Entry]) -> tuple[list[bytes], list[bytes]]:
    """Return the keys of buckets, and each entry: number, hint, fields of its buckets."""
    keys = np.frombuffer(b"".join([entry.keys for entry in batch]), _KEY)
    chunk_counts = np.ones(256, np.uint64)
    for kind in BUCKET_KINDS:
        chunk_counts[kind[0]] = layout.chunks[kind]
    rest, fields = np.divmod(keys["value"].astype(np.uint64) >> _SLOT_BITS, np.uint64(FIELDS))
    names = np.empty((len(keys), 1 + CHUNK_BYTES), np.uint8)
    names[:, 0] = keys["kind"]
    names[:, 1:] = (rest % chunk_counts[keys["kind"]]).astype(">u4").view(np.uint8).reshape(-1, CHUNK_BYTES)
    digits = ((fields[:, None] + np.uint64(FIRST_FIELD)) // _POWERS % np.uint64(10) + np.uint64(_ZERO)).astype(np.uint8)
    packed_names, packed_fields = names.tobytes(), digits.tobytes()
    width = 1 + CHUNK_BYTES
    ends = [tag + packed_names[at : at + width] for at in range(0, len(packed_names), width)]
    items, at = [], 0
    for entry in batch:
        size = len(entry.keys) // KEY_BYTES * FIELD_BYTES
        head = _ENTRY.pack(_number(entry.number), _number(entry.hint), len(entry.keys) // KEY_BYTES)
        items.append(head + packed_fields[at : at + size])
        at += size
    return ends, items


def _number(number: int) -> bytes:
    return number.to_bytes(NUMBER_BYTES, "big")
