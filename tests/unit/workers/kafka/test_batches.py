"""Batches that unpack to much more than they are, that are damaged, or that have names of headers of other clients."""

import random
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.codec import gzip_encode, lz4_encode, snappy_encode, zstd_encode
from aiokafka.consumer import fetcher
from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from nearstream.schemas.documents.record import Headers
from nearstream.workers.kafka.batches import (
    KEPT_BYTES,
    TAKE_BYTES,
    WHOLE_BYTES,
    unpacked,
    use_our_batches,
)

MEBIBYTE = 1024 * 1024
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
ENCODERS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "none": (0, bytes),
    "gzip": (1, gzip_encode),
    "snappy of Java": (2, snappy_encode),
    "snappy": (2, lambda data: bytes(snappy_encode(data, xerial_compatible=False))),
    "lz4": (3, lz4_encode),
    "zstd": (4, zstd_encode),
}
BOMBS = ("gzip", "lz4", "zstd")

Sent = tuple[bytes | None, bytes | None, Headers]


def _batch(codec: str, records: Sequence[Sent]) -> bytes:
    builder = DefaultRecordBatchBuilder(2, CODECS[codec], 0, -1, -1, 0, 2**31 - 1)
    for number, (key, value, headers) in enumerate(records):
        builder.append(number, 1000 + number, key, value, headers)
    return bytes(builder.build())


def _read(data: bytes, is_sound: bool = True) -> Iterator[Any]:
    use_our_batches()
    batches = fetcher.MemoryRecords(data)
    while batches.has_next():
        batch = batches.next_batch()
        assert batch.validate_crc() is is_sound
        yield from batch


def _plain(record: Any) -> Sent:  # noqa: ANN401 - aiokafka has no types
    return record.key, record.value, list(record.headers)


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_is_read_alike_whole_and_record_by_record(codec: str) -> None:
    few: list[Sent] = [(b"k", b"v", [("a", b"1"), ("b", None), ("a", b"")]), (None, None, []), (b"", b"", [])]
    many = few + [(b"%d" % number, b"x" * (MEBIBYTE - number), []) for number in range(8)]
    assert sum(len(value or b"") for _, value, _ in many) > WHOLE_BYTES
    for records in (few, many):
        read = list(_read(_batch(codec, records) * 2))
        assert [_plain(record) for record in read] == records * 2
        assert [(record.offset, record.timestamp) for record in read[: len(records)]] == [
            (number, 1000 + number) for number in range(len(records))
        ]


def test_a_record_as_large_as_a_broker_takes_it_is_never_cut() -> None:
    largest: Sent = (b"k" * 1000, b"v" * (4 * MEBIBYTE), [("h", b"x" * 1000)])
    assert [_plain(record) for record in _read(_batch("zstd", [largest] * 5))] == [largest] * 5


@pytest.mark.parametrize("codec", BOMBS)
def test_b57_a_value_beyond_every_limit_is_cut_and_its_neighbours_are_read(codec: str) -> None:
    private: Headers = [("nearstream-private", b"1")]
    bomb = _batch(codec, [(b"a", b"before", []), (b"b", bytes(50 * MEBIBYTE), private), (b"c", b"behind", [])])
    assert _within_bounds(bomb) == [(b"a", b"before", []), (b"b", bytes(KEPT_BYTES), private), (b"c", b"behind", [])]


def test_b57_a_record_that_would_take_seconds_is_not_unpacked_nor_are_those_behind_it() -> None:
    sent: list[Sent] = [(b"a", b"before", []), (b"b", bytes(200 * MEBIBYTE), []), *[(b"c", b"behind", [])] * 3]
    batches = _batch("zstd", sent) + _batch("zstd", [(b"d", b"the next batch", [])])
    expected: list[Sent] = [(b"a", b"before", []), *[(None, b"", [])] * 4, (b"d", b"the next batch", [])]
    assert _within_bounds(batches) == expected
    assert [record.offset for record in _read(batches)] == [0, 1, 2, 3, 4, 0]


def test_b57_a_record_with_a_key_or_headers_beyond_every_limit_is_read_as_empty() -> None:
    large = bytes(50 * MEBIBYTE)
    rows: list[tuple[bytes, Headers]] = [
        (large, [("h", b"x")]),
        (b"k", [("h", large), ("nearstream-private", b"1")]),
        (b"k", [("h" * 100, b"x" * 100)] * 250_000),
    ]
    for key, headers in rows:
        read = _within_bounds(_batch("zstd", [(key, b"value", headers), (b"c", b"behind", [])]))
        assert read == [(None, b"", []), (b"c", b"behind", [])]


def _within_bounds(data: bytes) -> list[Sent]:
    tracemalloc.start()
    read = list(_read(data))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 6 * WHOLE_BYTES
    return [_plain(record) for record in read]


NAMES = ("first", "second", "third")


def _named() -> bytearray:
    return bytearray(_batch("none", [(None, b"value", [(name, b"x")]) for name in NAMES]))


@pytest.mark.parametrize(("place", "more"), [(-1, 2), (-2, 2)], ids=["one byte more", "one header more"])
@pytest.mark.parametrize("is_foreign", [False, True])
def test_a_batch_with_a_wrong_number_inside_is_refused(place: int, more: int, is_foreign: bool) -> None:
    """Damage is not taken for a foreign name of a header."""
    data = _named()
    if is_foreign:
        data[data.index(b"second")] = 0xFF
    data[data.index(b"third") + place] += more  # as a zigzag varint
    with pytest.raises(CorruptRecordException):
        list(_read(bytes(data), is_sound=False))


class _Partition:
    """The records of a partition, as aiokafka's fetcher holds them."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.next_fetch_offset = 0
        self._sizes = iter(sizes)

    def __iter__(self) -> "_Partition":
        return self

    def __next__(self) -> Any:  # noqa: ANN401 - aiokafka has no types
        size = next(self._sizes)
        self.next_fetch_offset += 1
        return SimpleNamespace(value=bytes(size) if size else None, headers=())


def test_a_take_ends_at_a_number_of_records_or_bytes() -> None:
    use_our_batches()
    state = SimpleNamespace(paused=False)
    state.consumed_to = lambda position: setattr(state, "position", position)
    assignment = SimpleNamespace(active=True, state_value=lambda _: state)
    for sizes, most, taken in (
        ([1] * 10, 4, [4, 4, 2]),
        ([1] * 10, None, [10]),
        ([0, 0, 0], 3, [3, 0]),
        ([TAKE_BYTES // 2] * 5, 100, [2, 2, 1]),
        ([2 * TAKE_BYTES, 1, 1], 100, [1, 2]),
    ):
        result = fetcher.FetchResult(None, assignment=assignment, partition_records=_Partition(sizes), backoff=0)
        found, state.position = [], 0
        while result.has_more():
            found.append(len(result.getall(most)))
        assert found == taken
        assert state.position == len(sizes)


@pytest.mark.parametrize("name", ENCODERS)
def test_pieces_join_to_the_whole_and_damaged_or_cut_data_are_refused(name: str) -> None:
    codec, encode = ENCODERS[name]
    draw = random.Random(1)
    for size in (0, 1, 100_000, MEBIBYTE):
        text = b" ".join(draw.choices([b"water", b"bridge", b"road"], k=size))[:size]
        for data in (bytes(size), draw.randbytes(size), text):
            assert b"".join(unpacked(codec, encode(data))) == data
    packed = encode(draw.randbytes(100_000))
    for damaged in (packed[:-2000], b"no packed data at all", packed[:3]) if codec else ():
        with pytest.raises(CorruptRecordException):
            list(unpacked(codec, damaged))


def test_several_members_or_frames_follow_each_other() -> None:
    for codec, encode in (ENCODERS["gzip"], ENCODERS["zstd"]):
        assert b"".join(unpacked(codec, encode(b"one") + encode(b" two"))) == b"one two"
