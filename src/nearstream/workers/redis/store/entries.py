"""Buckets of keys: what is sent to enter, read and leave them."""

from collections.abc import Sequence

from nearstream.streams.native import native
from nearstream.streams.store.messages import Entry
from nearstream.workers.redis.server.layout import (
    BUCKET_KINDS,
    FIELDS,
    FIRST_FIELD,
    StoreLayout,
)

BUCKETS_CAP = 1_024  # of one command, so that none takes the server for long
_KINDS = b"".join(BUCKET_KINDS)


def pack_entries(layout: StoreLayout, tag: bytes, batch: Sequence[Entry]) -> tuple[list[bytes], list[bytes]]:
    """Return keys and items of a command. A batch may have more entries than fit in.

    An item is number and hint of an entry, the counts of its buckets and of those that other entries share, the field
    of each bucket, and place and index of each shared one.
    """
    chunks = [layout.chunks[kind] for kind in BUCKET_KINDS]
    return native.pack_entries(list(batch), tag, _KINDS, (*chunks, FIRST_FIELD, FIELDS, BUCKETS_CAP))
