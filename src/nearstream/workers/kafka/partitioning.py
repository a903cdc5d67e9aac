"""The partition of a record, which its key decides as in Kafka's own clients."""

import random
from collections.abc import Sequence
from functools import lru_cache
from struct import iter_unpack

from nearstream.schemas.labels.label import LABEL_PREFIX

_REMEMBERED_KEYS, _REMEMBERED_BYTES = 4_096, 1_024
_SEED, _FACTOR, _WORD = 0x9747B28C, 0x5BD1E995, 0xFFFFFFFF


def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition of a record key among so many partitions. A label is in that of its document."""
    key = key.removeprefix(LABEL_PREFIX.encode())
    hashed = _remembered(key) if len(key) <= _REMEMBERED_BYTES else _murmur2(key)
    return (hashed & 0x7FFFFFFF) % partitions


def choose_partition(key: bytes | None, partitions: Sequence[int], available: Sequence[int]) -> int:
    """Choose the partition of a record, as aiokafka asks its producer to.

    A record without a key goes to any available partition, or to any at all if none is available.
    """
    if key is None:
        return random.choice(available or partitions)  # noqa: S311 - no secret
    return partitions[partition_of(key, len(partitions))]


def _murmur2(key: bytes) -> int:
    """Return the hash of Kafka's own clients. That of aiokafka takes longer, and loads all of aiokafka."""
    hashed, end = _SEED ^ len(key), len(key) & ~3
    for (word,) in iter_unpack("<I", key[:end]):
        mixed = word * _FACTOR & _WORD
        hashed = hashed * _FACTOR & _WORD ^ (mixed ^ mixed >> 24) * _FACTOR & _WORD
    if end < len(key):
        hashed = (hashed ^ int.from_bytes(key[end:], "little")) * _FACTOR & _WORD
    hashed = (hashed ^ hashed >> 13) * _FACTOR & _WORD
    return hashed ^ hashed >> 15


# The signature, the verdict and the events of a document have one key.
_remembered = lru_cache(_REMEMBERED_KEYS)(_murmur2)


def wrong_slots(slots: int, partitions: int) -> str:
    """Return why an index cannot have so many slots with these partitions of `signatures`. Empty: it can.

    With more slots than partitions, some would be the home of no document.
    """
    if slots <= partitions:
        return ""
    return f"NEARSTREAM_INDEX_SLOTS: expected at most {partitions}, the number of partitions of signatures, got {slots}"
