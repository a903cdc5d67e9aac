"""Read record batches that aiokafka does not read, or not within bounds.

- **Header names that are not UTF-8.** Any writer of a topic can send such a record. Kafka's own clients read it and
  replace the name. aiokafka refuses the whole batch of the record and raises on each fetch, so that the partition would
  be stuck forever.
- **Batches that decompress to much more than they are.** aiokafka decompresses a batch in one step. Here the records of
  a batch of more than `WHOLE_BYTES` are read one after the other, and what is larger than any limit of ours is cut. A
  record of more than `_SKIPPED_BYTES` is not read, nor are those behind it in the batch. They appear as empty records.

Both follow https://kafka.apache.org/documentation/#recordbatch.
"""

import struct
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any, NamedTuple

from aiokafka.consumer import fetcher
from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import DefaultRecordBatch
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.record.util import decode_varint

from nearstream.schemas.documents.record import Headers
from nearstream.streams.ingest.defaults import DocumentLimits
from nearstream.workers.kafka.unpacking import PieceReader, unpacked

KEPT_BYTES = DocumentLimits().value_bytes + 1  # of a longer value, and enough to be refused with any settings
WHOLE_BYTES = KEPT_BYTES + 512 * 1024  # more than any batch has that is not compressed
TAKE_BYTES = 16 * 1024 * 1024
_KEY_BYTES = _HEADERS_BYTES = 256 * 1024
_HEADER_BYTES = 100  # of memory, at least
_SKIPPED_BYTES = 64 * 1024 * 1024
_LENGTH_AT, _LENGTH_COUNTS_FROM, _MAGIC_AT, _CODEC_AT, _RECORDS_AT = 8, 12, 16, 22, 61
_NO_CODEC = 0xF8
_FIRST_MAGIC_WITH_HEADERS = 2
_LOG_APPEND_TIME = 1


def use_our_batches() -> None:
    r"""Let every consumer of this process read such batches.

    A byte of a header name that is not UTF-8 becomes four characters such as `\xff`.
    """
    fetcher.MemoryRecords = _Batches
    fetcher.FetchResult.getall = _take


def _take(result: Any, max_records: int | None = None) -> list[Any]:  # noqa: ANN401 - aiokafka has no types
    """Return the next records of a partition, as `FetchResult.getall` does, up to about `TAKE_BYTES`.

    Otherwise a hundred records that are each as large as allowed, of one small batch, would be in memory at once.
    """
    records: list[Any] = []
    size = 0
    while size < TAKE_BYTES and (max_records is None or len(records) < max_records):
        record = result.getone()
        if record is None:
            break
        records.append(record)
        size += len(record.value or b"") + _HEADER_BYTES * len(record.headers)
    return records


class _Record(NamedTuple):
    """A record with the attributes that aiokafka's fetcher reads."""

    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    checksum: None = None


class _Batches:
    """A wrapper of aiokafka's `MemoryRecords` that keeps the bytes of each batch."""

    def __init__(self, data: bytes) -> None:
        self._batches = MemoryRecords(data)
        self._data = data
        self._start = 0

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - aiokafka has no types
        return getattr(self._batches, name)

    def next_batch(self) -> Any:  # noqa: ANN401 - aiokafka has no types
        """Return the next batch.

        It is not wrapped if its format is too old for headers.
        """
        batch, start = self._batches.next_batch(), self._start
        (length,) = struct.unpack_from(">i", self._data, start + _LENGTH_AT)
        self._start = start + _LENGTH_COUNTS_FROM + length
        if self._data[start + _MAGIC_AT] < _FIRST_MAGIC_WITH_HEADERS:
            return batch
        return _Batch(batch, memoryview(self._data)[start : self._start])


class _Batch:
    """A wrapper of an aiokafka batch that tolerates any header name and bounds what it unpacks."""

    def __init__(self, batch: Any, data: memoryview) -> None:  # noqa: ANN401 - aiokafka has no types
        self._batch = batch
        self._data = data

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - aiokafka has no types
        return getattr(self._batch, name)

    def __next__(self) -> Any:  # noqa: ANN401 - aiokafka has no types
        return next(self._batch)

    def __iter__(self) -> Iterator[Any]:
        records = self._data[_RECORDS_AT:]
        if not self._batch.compression_type:
            return self._with_any_header_names(self._batch, records)
        pieces = unpacked(self._batch.compression_type, records.tobytes())
        first, size = [], 0
        for piece in pieces:
            first.append(piece)
            size += len(piece)
            if size > WHOLE_BYTES:
                return self._records(PieceReader(chain(first, pieces)))
        header = bytearray(self._data[:_RECORDS_AT])
        header[_CODEC_AT] &= _NO_CODEC
        whole = b"".join((header, *first))
        return self._with_any_header_names(DefaultRecordBatch(whole), memoryview(whole)[_RECORDS_AT:])

    def _with_any_header_names(self, batch: Any, records: memoryview) -> Iterator[Any]:  # noqa: ANN401 - aiokafka has no types
        done = 0
        try:
            for record in batch:
                yield record
                done += 1
        except (CorruptRecordException, UnicodeDecodeError) as error:
            # aiokafka's pure Python reader wraps the error, its compiled one does not.
            if UnicodeDecodeError not in (type(error), type(error.__cause__)):
                raise
            yield from islice(self._records(PieceReader(iter((records.tobytes(),)))), done, None)

    def _records(self, reader: PieceReader) -> Iterator[_Record]:
        following = self._batch.base_offset
        while not reader.at_end():
            length = reader.varint()
            if length > _SKIPPED_BYTES:
                # Decompressing it would take longer than a member of a group may be silent.
                yield from map(self._refused, range(following, self._batch.next_offset))
                return
            record = self._record(reader, reader.position + length)
            following = record.offset + 1
            yield record

    def _record(self, reader: PieceReader, end: int) -> _Record:
        """Read a record up to the position `end`.

        Of a larger value `KEPT_BYTES` are kept. If key or headers are too large, nothing is kept.
        """
        batch = self._batch
        reader.read(1)  # attributes, which are unused
        milliseconds, delta = reader.varint(), reader.varint()
        key, value = _cut_bytes(reader, _KEY_BYTES), _cut_bytes(reader, KEPT_BYTES)
        size = end - reader.position
        if size > _HEADERS_BYTES or len(key or b"") == _KEY_BYTES:
            reader.read(size, keep=0)
            return self._refused(batch.base_offset + delta)
        headers = _headers(bytearray(reader.read(size)))
        stamped_by_broker = batch.timestamp_type == _LOG_APPEND_TIME
        timestamp = batch.max_timestamp if stamped_by_broker else batch.first_timestamp + milliseconds
        return _Record(batch.base_offset + delta, timestamp, batch.timestamp_type, key, value, headers)

    def _refused(self, offset: int) -> _Record:
        """Return a record without key, value and headers, which is neither a document nor a removal."""
        return _Record(offset, self._batch.max_timestamp, self._batch.timestamp_type, None, b"", [])


def _headers(data: bytearray) -> Headers:
    headers: Headers = []
    try:
        count, pos = decode_varint(data, 0)
        for _ in range(count):
            name, pos = _bytes(data, pos)
            content, pos = _bytes(data, pos)
            headers.append(((name or b"").decode("utf-8", "backslashreplace"), content))
    except IndexError:
        raise CorruptRecordException("a record ends inside its headers") from None
    if pos != len(data):
        raise CorruptRecordException(f"expected headers of {len(data)} bytes, they have {pos}")
    return headers


def _bytes(data: bytearray, pos: int) -> tuple[bytes | None, int]:
    """Return length-prefixed bytes and the position after them, None for length -1."""
    length, pos = decode_varint(data, pos)
    return (None, pos) if length < 0 else (bytes(data[pos : pos + length]), pos + length)


def _cut_bytes(reader: PieceReader, limit: int) -> bytes | None:
    """Read length-prefixed bytes and return the first of them, None for length -1."""
    length = reader.varint()
    return None if length < 0 else reader.read(length, keep=limit)
