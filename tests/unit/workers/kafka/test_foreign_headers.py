"""A damaged batch is still refused: damage is not taken for a foreign header name."""

import pytest
from aiokafka.consumer import fetcher
from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import DefaultRecordBatchBuilder, _DefaultRecordBatchBuilderPy

from nearstream.workers.kafka.batches import use_our_batches

NAMES = ("first", "second", "third")


def _batch() -> bytearray:
    batch = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, 0, 10_000)
    for number, name in enumerate(NAMES):
        batch.append(number, 1000 + number, None, b"value", [(name, b"x")])
    return bytearray(batch.build())


def _read(data: bytearray) -> list[tuple[int, list[str]]]:
    use_our_batches()
    batches = fetcher.MemoryRecords(bytes(data))
    read = []
    while batches.has_next():
        batch = batches.next_batch()
        assert batch.next_offset == batch.base_offset + len(NAMES)
        read += [(record.offset, [name for name, _ in record.headers]) for record in batch]
    return read


def test_records_before_and_behind_a_foreign_name_are_read_once() -> None:
    data = _batch() * 2
    data[data.index(b"second") + 1] = 0xFF
    told = ["first", "s\\xffcond", "third"]
    assert _read(data) == [(number, [name]) for number, name in enumerate(told)] + [
        (number, [name]) for number, name in enumerate(NAMES)
    ]


def test_a_foreign_name_is_read_from_compressed_batches() -> None:
    for compression in range(1, 5):  # gzip, snappy, lz4, zstd
        batch = _DefaultRecordBatchBuilderPy(2, compression, 0, -1, -1, 0, 10_000)
        for number in range(len(NAMES)):
            batch.append(number, 1000 + number, None, b"value" * 50, [("foreign", b"x")])
        batch._buffer = bytearray(batch._buffer.replace(b"foreign", b"f\xffreign"))
        data = bytearray(batch.build())
        assert len(data) < 500  # the values alone have 750 bytes
        assert _read(data) == [(number, ["f\\xffreign"]) for number in range(len(NAMES))]


def test_an_incomplete_batch_at_the_end_is_left_for_the_next_fetch() -> None:
    assert len(_read(_batch() + _batch()[:-1])) == len(NAMES)


def test_a_batch_with_a_wrong_length_inside_is_refused() -> None:
    for foreign in (False, True):
        data = _batch()
        place = data.index(b"second")
        if foreign:
            data[place] = 0xFF
        data[data.index(b"third") - 1] += 2  # one byte more, as a zigzag varint
        with pytest.raises(CorruptRecordException):
            _read(data)


def test_a_batch_that_ends_inside_a_record_is_refused() -> None:
    data = _batch()
    data[data.index(b"second")] = 0xFF
    data[data.index(b"third") - 2] += 2  # one header more than there is
    with pytest.raises(CorruptRecordException):
        _read(data)
