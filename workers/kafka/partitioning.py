"""The partition of a record, which its key decides as in Kafka's own clients."""

from collections.abc import Sequence
from functools import lru_cache
from typing import cast

from aiokafka.partitioner import DefaultPartitioner, murmur2

from nearstream.schemas.label import LABEL_PREFIX

_REMEMBERED_KEYS, _REMEMBERED_BYTES = 4_096, 1_024

_default_partitioner = DefaultPartitioner()


def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition of a key. A label is in that of its document.

    Args:
        key: The key of a record.
        partitions: Number of partitions of the topic, at least 1. The first one is 0.
    """
    key = key.removeprefix(LABEL_PREFIX.encode())
    hashed = _remembered(key) if len(key) <= _REMEMBERED_BYTES else murmur2(key)
    return cast(int, hashed & 0x7FFFFFFF) % partitions


def choose_partition(key: bytes | None, partitions: Sequence[int], available: Sequence[int]) -> int:
    """Choose the partition of a record, as aiokafka asks its producer to.

    A record without a key goes to any available partition, or to any at all if none is available.
    """
    if key is None:
        return cast(int, _default_partitioner(key, partitions, available))
    return partitions[partition_of(key, len(partitions))]


# The signature, the verdict and the events of a document have one key, and to hash it takes aiokafka .2 us a byte.
_remembered = lru_cache(_REMEMBERED_KEYS)(murmur2)
