"""The partition of a record is the one that aiokafka's own partitioner chooses."""

from functools import lru_cache
from random import Random

import pytest
from aiokafka.partitioner import DefaultPartitioner

from nearstream.schemas.labels.label import Label
from nearstream.workers.kafka import partitioning
from nearstream.workers.kafka.partitioning import choose_partition, partition_of
from nearstream.workers.pipeline.signature_records import label_record


@pytest.mark.parametrize("key", [b"", b"k", b"pages/https://example.org/", "größer".encode(), bytes(5_000)])
def test_a_key_has_the_partition_that_aiokafka_chooses(key: bytes) -> None:
    partitions = list(range(7))
    expected = DefaultPartitioner()(key, partitions, partitions)
    assert choose_partition(key, partitions, [6]) == partition_of(key, 7) == expected
    assert choose_partition(key, partitions, []) == expected


def test_any_key_has_the_partition_that_aiokafka_chooses() -> None:
    draw, partitions = Random(1), list(range(10_007))
    for size in range(300):
        key = draw.randbytes(size)
        assert partition_of(key, 10_007) == DefaultPartitioner()(key, partitions, partitions)


def test_a_label_goes_to_the_partition_of_its_document() -> None:
    for number in range(50):
        key = f"default/{number}"
        label = label_record("signatures", key, Label(label="spam", weight=1), 1).key or b""
        assert label != key.encode()
        assert partition_of(label, 7) == partition_of(key.encode(), 7)


def test_a_record_without_a_key_goes_to_an_available_partition() -> None:
    assert choose_partition(None, range(7), [3]) == 3
    assert choose_partition(None, [5], []) == 5


def test_a_key_is_hashed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    hashed = []

    def counted(key: bytes) -> int:
        hashed.append(key)
        return 8

    monkeypatch.setattr(partitioning, "_remembered", lru_cache(4)(counted))
    assert [partition_of(b"k", 7) for _ in range(3)] == [1, 1, 1]
    assert hashed == [b"k"]
