"""The partition of a record is the one that aiokafka's own partitioner chooses."""

from random import Random

from aiokafka.partitioner import DefaultPartitioner

from nearstream.schemas.labels.label import Label
from nearstream.workers.kafka.partitioning import choose_partition, partition_of
from nearstream.workers.pipeline.signature_records import label_record


def test_a_key_has_the_partition_that_aiokafka_chooses_and_no_key_an_available_one() -> None:
    draw, partitions = Random(1), list(range(10_007))
    for size in (*range(300), 5_000):
        key = draw.randbytes(size)
        expected = DefaultPartitioner()(key, partitions, partitions)
        assert choose_partition(key, partitions, [6]) == partition_of(key, 10_007) == expected
        assert choose_partition(key, partitions, []) == expected
    assert choose_partition(None, range(7), [3]) == 3
    assert choose_partition(None, [5], []) == 5


def test_a_key_has_the_partition_that_the_producer_of_java_chooses() -> None:
    """The hashes are those that Kafka's own tests expect. Kafka Connect uses that producer."""
    for key, value in (
        (b"21", -973_932_308),
        (b"abc", 479_470_107),
        (b"foobar", -790_332_482),
        (b"a-little-bit-long-string", -985_981_536),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
    ):
        assert partition_of(key, 10_007) == (value & 0x7FFF_FFFF) % 10_007


def test_a_label_goes_to_the_partition_of_its_document() -> None:
    for number in range(50):
        key = f"default/{number}"
        label = label_record("signatures", key, Label(label="spam", weight=1), 1).key or b""
        assert label != key.encode()
        assert partition_of(label, 7) == partition_of(key.encode(), 7)
