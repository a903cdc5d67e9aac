"""Batches that unpack to much more than they are: their records are read within bounds, and refused where too large."""

import tracemalloc
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.consumer import fetcher
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from nearstream.schemas.documents.record import Headers
from nearstream.workers.kafka.batches import KEPT_BYTES, TAKE_BYTES, WHOLE_BYTES, use_our_batches

MEBIBYTE = 1024 * 1024
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
every_codec = pytest.mark.parametrize("codec", CODECS)
every_bomb = pytest.mark.parametrize("codec", ["gzip", "lz4", "zstd"])

Sent = tuple[bytes | None, bytes | None, Headers]


def _batch(codec: str, records: Sequence[Sent]) -> bytes:
    builder = DefaultRecordBatchBuilder(2, CODECS[codec], 0, -1, -1, 0, 2**31 - 1)
    for number, (key, value, headers) in enumerate(records):
        builder.append(number, 1000 + number, key, value, headers)
    return bytes(builder.build())


def _read(data: bytes) -> Iterator[Any]:
    use_our_batches()
    batches = fetcher.MemoryRecords(data)
    while batches.has_next():
        batch = batches.next_batch()
        assert batch.validate_crc()
        yield from batch


def _plain(record: Any) -> Sent:  # noqa: ANN401 - aiokafka has no types
    return record.key, record.value, list(record.headers)


@every_codec
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


@every_bomb
def test_b57_a_value_beyond_every_limit_is_cut_and_its_neighbours_are_read(codec: str) -> None:
    private: Headers = [("nearstream-private", b"1")]
    bomb = _batch(codec, [(b"a", b"before", []), (b"b", bytes(50 * MEBIBYTE), private), (b"c", b"behind", [])])
    before, cut, behind = _within_bounds(bomb)
    assert (_plain(before), _plain(behind)) == ((b"a", b"before", []), (b"c", b"behind", []))
    assert _plain(cut) == (b"b", bytes(KEPT_BYTES), private)


@every_bomb
def test_b57_a_record_that_would_take_seconds_is_not_unpacked_nor_are_those_behind_it(codec: str) -> None:
    sent: list[Sent] = [(b"a", b"before", []), (b"b", bytes(200 * MEBIBYTE), []), *[(b"c", b"behind", [])] * 3]
    read = _within_bounds(_batch(codec, sent) + _batch(codec, [(b"d", b"the next batch", [])]))
    assert [_plain(record) for record in read] == [
        (b"a", b"before", []),
        *[(None, b"", [])] * 4,
        (b"d", b"the next batch", []),
    ]
    assert [record.offset for record in read] == [0, 1, 2, 3, 4, 0]


@every_bomb
@pytest.mark.parametrize("where", ["key", "header", "headers"])
def test_b57_a_record_with_a_key_or_headers_beyond_every_limit_is_read_as_empty(codec: str, where: str) -> None:
    large = bytes(50 * MEBIBYTE)
    key = large if where == "key" else b"k"
    headers: Headers = {
        "key": [("h", b"x")],
        "header": [("h", large), ("nearstream-private", b"1")],
        "headers": [("h" * 100, b"x" * 100)] * 250_000,
    }[where]
    read = _within_bounds(_batch(codec, [(key, b"value", headers), (b"c", b"behind", [])]))
    assert [_plain(record) for record in read] == [(None, b"", []), (b"c", b"behind", [])]


def _within_bounds(data: bytes) -> list[Any]:
    tracemalloc.start()
    read = list(_read(data))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 6 * WHOLE_BYTES
    return read


def test_a_record_as_large_as_a_broker_takes_it_is_never_cut() -> None:
    largest: Sent = (b"k" * 1000, b"v" * (4 * MEBIBYTE), [("h", b"x" * 1000)])
    assert [_plain(record) for record in _read(_batch("zstd", [largest] * 5))] == [largest] * 5


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


@pytest.mark.parametrize(
    ("sizes", "most", "taken"),
    [
        ([1] * 10, 4, [4, 4, 2]),
        ([1] * 10, None, [10]),
        ([0, 0, 0], 3, [3, 0]),
        ([TAKE_BYTES // 2] * 5, 100, [2, 2, 1]),
        ([2 * TAKE_BYTES, 1, 1], 100, [1, 2]),
    ],
)
def test_a_take_ends_at_a_number_of_records_or_bytes(sizes: list[int], most: int | None, taken: list[int]) -> None:
    use_our_batches()
    state = SimpleNamespace(paused=False, position=0)
    state.consumed_to = lambda position: setattr(state, "position", position)
    assignment = SimpleNamespace(active=True, state_value=lambda _: state)
    result = fetcher.FetchResult(None, assignment=assignment, partition_records=_Partition(sizes), backoff=0)
    found = []
    while result.has_more():
        found.append(len(result.getall(most)))
    assert found == taken
    assert state.position == len(sizes)
