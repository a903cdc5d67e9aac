"""Records whose header names are not UTF-8, which aiokafka refuses together with their whole batch.

Any writer of a topic can send one. Kafka's own clients read it with the name replaced; aiokafka raises on each fetch,
so that the partition waits for ever. Such a batch, and only such a one, is read here, after
https://kafka.apache.org/documentation/#recordbatch.
"""

import struct
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from aiokafka.codec import gzip_decode, lz4_decode, snappy_decode, zstd_decode
from aiokafka.consumer import fetcher
from aiokafka.errors import CorruptRecordException
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.record.util import decode_varint

from schemas.record import Headers

_LENGTH_AT, _LENGTH_COUNTS_FROM, _MAGIC_AT, _RECORDS_AT = 8, 12, 16, 61
_FIRST_MAGIC_WITH_HEADERS = 2
_LOG_APPEND_TIME = 1
_DECOMPRESS = {0: bytes, 1: gzip_decode, 2: snappy_decode, 3: lz4_decode, 4: zstd_decode}


def tolerate_foreign_header_names() -> None:
    r"""Lets every consumer of this process read such records, a byte that is not UTF-8 as `\xff`: four characters."""
    fetcher.MemoryRecords = _Batches


class _Record(NamedTuple):
    """A record as aiokafka's fetcher wants it."""

    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    checksum: None = None


class _Batches:
    """aiokafka's `MemoryRecords`, with the bytes of each batch at hand."""

    def __init__(self, data: bytes) -> None:
        self._batches = MemoryRecords(data)
        self._data = data
        self._start = 0

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - aiokafka has no types
        return getattr(self._batches, name)

    def next_batch(self) -> Any:  # noqa: ANN401 - aiokafka has no types
        """The next batch; one of an old format knows no headers."""
        batch, start = self._batches.next_batch(), self._start
        (length,) = struct.unpack_from(">i", self._data, start + _LENGTH_AT)
        self._start = start + _LENGTH_COUNTS_FROM + length
        if self._data[start + _MAGIC_AT] < _FIRST_MAGIC_WITH_HEADERS:
            return batch
        return _Batch(batch, memoryview(self._data)[start : self._start])


class _Batch:
    """aiokafka's batch, but for names of headers."""

    def __init__(self, batch: Any, data: memoryview) -> None:  # noqa: ANN401 - aiokafka has no types
        self._batch = batch
        self._data = data

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - aiokafka has no types
        return getattr(self._batch, name)

    def __next__(self) -> Any:  # noqa: ANN401 - aiokafka has no types
        return next(self._batch)

    def __iter__(self) -> Iterator[Any]:
        done = 0
        try:
            for record in self._batch:
                yield record
                done += 1
        except (CorruptRecordException, UnicodeDecodeError) as error:
            # aiokafka's slow way of reading wraps the error, its fast one does not.
            if UnicodeDecodeError not in (type(error), type(error.__cause__)):
                raise
            yield from islice(self._records(), done, None)

    def _records(self) -> Iterator[_Record]:
        data = bytearray(_DECOMPRESS[self._batch.compression_type](self._data[_RECORDS_AT:].tobytes()))
        pos = 0
        while pos < len(data):
            length, pos = decode_varint(data, pos)
            try:
                yield self._record(data, pos, pos + length)
            except IndexError:
                raise CorruptRecordException(f"a whole record expected at byte {pos} of its batch") from None
            pos += length

    def _record(self, data: bytearray, pos: int, end: int) -> _Record:
        batch, headers = self._batch, []
        milliseconds, pos = decode_varint(data, pos + 1)  # behind attributes, which are unused
        offset, pos = decode_varint(data, pos)
        key, pos = _bytes(data, pos)
        value, pos = _bytes(data, pos)
        count, pos = decode_varint(data, pos)
        for _ in range(count):
            name, pos = _bytes(data, pos)
            content, pos = _bytes(data, pos)
            headers.append(((name or b"").decode("utf-8", "backslashreplace"), content))
        if pos != end:
            raise CorruptRecordException(f"a record that ends at byte {end} expected, it ends at {pos}")
        stamped_by_broker = batch.timestamp_type == _LOG_APPEND_TIME
        timestamp = batch.max_timestamp if stamped_by_broker else batch.first_timestamp + milliseconds
        return _Record(batch.base_offset + offset, timestamp, batch.timestamp_type, key, value, headers)


def _bytes(data: bytearray, pos: int) -> tuple[bytes | None, int]:
    """What stands behind its length, with the place behind it; a length of -1 is null."""
    length, pos = decode_varint(data, pos)
    return (None, pos) if length < 0 else (bytes(data[pos : pos + length]), pos + length)
