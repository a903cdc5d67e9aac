"""What is sent to enter buckets, packed in Python."""

from collections import Counter
from collections.abc import Sequence

from nearstream.streams.store.messages import KEY_BYTES, Entry
from nearstream.streams.store.registration import NUMBER_BYTES
from nearstream.workers.redis.server.layout import (
    BUCKET_KINDS,
    CHUNK_BYTES,
    ENTRY_FORMAT,
    FIELDS,
    FIRST_FIELD,
    SHARED_FORMAT,
    StoreLayout,
    python_struct,
)
from nearstream.workers.redis.store.calls import BUCKETS_CAP

_ENTRY, _SHARED = python_struct(ENTRY_FORMAT), python_struct(SHARED_FORMAT)
_SLOT_BITS = 16  # of a key, which decide its slot
_KINDS = b"".join(BUCKET_KINDS)
_Bucket = tuple[bytes, bytes]  # key of the hash that has it, and its field there


def pack_entries(layout: StoreLayout, tag: bytes, batch: Sequence[Entry]) -> tuple[list[bytes], list[bytes]]:
    """Return keys and items of a command. A batch may have more entries than fit in.

    An item is number and hint of an entry, the counts of its buckets and of those that other entries share, the field
    of each bucket, and place and index of each shared one.
    """
    visits: list[list[_Bucket]] = []
    indexes: dict[_Bucket, int] = {}
    for entry in batch:
        buckets = [_bucket(layout, tag, entry.keys[at : at + KEY_BYTES]) for at in range(0, len(entry.keys), KEY_BYTES)]
        if visits and len(indexes) + len(buckets) > BUCKETS_CAP:
            break
        visits.append(buckets)
        for bucket in buckets:
            indexes.setdefault(bucket, len(indexes))
    count = Counter(bucket for buckets in visits for bucket in buckets)
    items = []
    for entry, buckets in zip(batch, visits, strict=False):
        shared = [_SHARED.pack(place, indexes[each]) for place, each in enumerate(buckets) if count[each] > 1]
        head = _ENTRY.pack(_number(entry.number), _number(entry.hint), len(buckets), len(shared))
        items.append(b"".join((head, *(field for _, field in buckets), *shared)))
    return [key for buckets in visits for key, _ in buckets], items


def _bucket(layout: StoreLayout, tag: bytes, key: bytes) -> _Bucket:
    """Return a bucket: the key of its hash, and its field."""
    kind = BUCKET_KINDS[_KINDS.index(key[:1])]
    rest, field = divmod(int.from_bytes(key[1:], "big") >> _SLOT_BITS, FIELDS)
    return tag + kind + (rest % layout.chunks[kind]).to_bytes(CHUNK_BYTES, "big"), b"%d" % (FIRST_FIELD + field)


def _number(number: int) -> bytes:
    return number.to_bytes(NUMBER_BYTES, "big")
