"""The partition of a record is the one that aiokafka's own partitioner chooses."""

import pytest
from aiokafka.partitioner import DefaultPartitioner

from nearstream.workers.kafka.partitioning import choose_partition, partition_of


@pytest.mark.parametrize("key", [b"", b"k", b"pages/https://example.org/", "größer".encode(), bytes(5_000)])
def test_a_key_has_the_partition_that_aiokafka_chooses(key: bytes) -> None:
    partitions = list(range(7))
    expected = DefaultPartitioner()(key, partitions, partitions)
    assert choose_partition(key, partitions, [6]) == partition_of(key, 7) == expected
    assert choose_partition(key, partitions, []) == expected  # the second time it is remembered


def test_a_record_without_a_key_goes_to_an_available_partition() -> None:
    assert choose_partition(None, range(7), [3]) == 3
