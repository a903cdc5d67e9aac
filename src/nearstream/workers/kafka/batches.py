"""Read record batches that aiokafka does not read, or not within bounds.

- **Header names that are not UTF-8.** Any writer of a topic can send such a record. Kafka's own clients read it and
  replace the name. aiokafka refuses the whole batch of the record and raises on each fetch, so that the partition would
  be stuck forever.
- **Batches that decompress to much more than they are.** aiokafka decompresses a batch in one step. Here the records of
  a batch of more than `WHOLE_BYTES` are read one after the other, and what is larger than any limit of ours is cut. A
  record of more than `_SKIPPED_BYTES` is not read, nor are those behind it in the batch. They appear as empty records.

A batch of a few kilobytes may hold gigabytes, so it is decompressed piece by piece.

The formats follow https://kafka.apache.org/documentation/#recordbatch.
"""

import struct
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, NamedTuple

import cramjam
from aiokafka.consumer import fetcher
from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import DefaultRecordBatch
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.record.util import decode_varint

from nearstream.schemas.documents.record import Headers
from nearstream.streams.ingest.defaults import DocumentLimits

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

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
PIECE_BYTES = 1024 * 1024
_XERIAL_START, _XERIAL_HEADER_BYTES = b"\x82SNAPPY\0", 16
_LZ4_MAGIC = 0x184D2204
_LZ4_BLOCK_CHECKSUM, _LZ4_CONTENT_SIZE, _LZ4_DICTIONARY, _LZ4_INDEPENDENT = 0x10, 0x08, 0x01, 0x20
_CUT_OFF = "a batch ends inside its compressed data"


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


def unpacked(codec: int, data: bytes) -> Iterator[bytes]:
    """Yield the decompressed bytes of a batch.

    A piece has at most `PIECE_BYTES`. Of lz4 and snappy it is a block of the format, of at most 4 MiB, or of 22 times
    the compressed size if a snappy batch is a single block. The codec has its number in Kafka's format.
    """
    try:
        yield from _UNPACK[codec](data)
    except (zlib.error, zstd.ZstdError, cramjam.DecompressionError, struct.error) as error:
        raise CorruptRecordException(f"a batch cannot be decompressed: {error}") from error


class PieceReader:
    """Reads from pieces, of which it holds one at a time."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self.position = 0  # number of bytes read
        self._pieces = filter(None, pieces)
        self._piece = b""
        self._start = 0

    def at_end(self) -> bool:
        """Return whether nothing is left to read."""
        if self._start == len(self._piece):
            self._piece, self._start = next(self._pieces, b""), 0
        return not self._piece

    def read(self, count: int, keep: int | None = None) -> bytes:
        """Read `count` bytes and return all of them, or only the first `keep`."""
        if count < 0:
            raise CorruptRecordException(_CUT_OFF)
        kept, missing = [], count if keep is None else min(keep, count)
        left = count
        while left > 0:
            if self.at_end():
                raise CorruptRecordException(_CUT_OFF)
            size = min(left, len(self._piece) - self._start)
            if missing > 0:
                kept.append(self._piece[self._start : self._start + min(size, missing)])
                missing -= len(kept[-1])
            self._start += size
            left -= size
        self.position += count
        return b"".join(kept)

    def varint(self) -> int:
        """Read a zigzag varint in Kafka's format.

        It has groups of 7 bits, the lowest first, with the sign in the lowest bit.
        """
        number = 0
        for shift in range(0, 70, 7):
            (byte,) = self.read(1)
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number >> 1 ^ -(number & 1)
        raise CorruptRecordException("a number in a batch is longer than 64 bits")


def _as_it_is(data: bytes) -> Iterator[bytes]:
    yield data


def _gzip(data: bytes) -> Iterator[bytes]:
    while data:
        stream = zlib.decompressobj(wbits=31)
        while not stream.eof:
            piece = stream.decompress(data, PIECE_BYTES)
            data = stream.unconsumed_tail
            if not piece and not data and not stream.eof:
                raise CorruptRecordException(_CUT_OFF)
            yield piece
        data = stream.unused_data


def _zstd(data: bytes) -> Iterator[bytes]:
    while data:
        stream = zstd.ZstdDecompressor()
        while not stream.eof:
            piece = stream.decompress(data, max_length=PIECE_BYTES)
            data = b""
            if not piece and not stream.eof:
                raise CorruptRecordException(_CUT_OFF)
            yield piece
        data = stream.unused_data


def _lz4(data: bytes) -> Iterator[bytes]:
    """Yield the blocks of an lz4 frame, which are independent of each other in Kafka."""
    magic, flags, sizes = struct.unpack_from("<IBB", data)
    if magic != _LZ4_MAGIC or flags & _LZ4_DICTIONARY or not flags & _LZ4_INDEPENDENT:
        raise CorruptRecordException("expected an lz4 frame of independent blocks")
    held = bytearray(1 << 8 + 2 * (sizes >> 4 & 7))  # as large as the largest block
    at = 15 if flags & _LZ4_CONTENT_SIZE else 7
    while size := struct.unpack_from("<I", data, at)[0]:
        block = data[at + 4 : at + 4 + (size & 0x7FFFFFFF)]
        at += 4 + len(block) + (4 if flags & _LZ4_BLOCK_CHECKSUM else 0)
        yield block if size >> 31 else bytes(held[: cramjam.lz4.decompress_block_into(block, held)])


def _snappy(data: bytes) -> Iterator[bytes]:
    """Yield the blocks of the stream format of Java, or the only block."""
    if not data.startswith(_XERIAL_START):
        yield bytes(cramjam.snappy.decompress_raw(data))
        return
    at = _XERIAL_HEADER_BYTES
    while at < len(data):
        (size,) = struct.unpack_from(">I", data, at)
        yield bytes(cramjam.snappy.decompress_raw(data[at + 4 : at + 4 + size]))
        at += 4 + size


_UNPACK: Mapping[int, Callable[[bytes], Iterator[bytes]]] = {0: _as_it_is, 1: _gzip, 2: _snappy, 3: _lz4, 4: _zstd}


class _Record(NamedTuple):
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
    length, pos = decode_varint(data, pos)
    return (None, pos) if length < 0 else (bytes(data[pos : pos + length]), pos + length)


def _cut_bytes(reader: PieceReader, limit: int) -> bytes | None:
    """Read length-prefixed bytes and return the first of them, None for length -1."""
    length = reader.varint()
    return None if length < 0 else reader.read(length, keep=limit)
