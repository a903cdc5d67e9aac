"""Decompress the records of a batch piece by piece.

A batch of a few kilobytes may hold gigabytes. Decompressed in one step, as aiokafka does it, it takes as much memory.
"""

import struct
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping

import cramjam
from aiokafka.errors import CorruptRecordException

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PIECE_BYTES = 1024 * 1024
_XERIAL_START, _XERIAL_HEADER_BYTES = b"\x82SNAPPY\0", 16
_LZ4_MAGIC = 0x184D2204
_LZ4_BLOCK_CHECKSUM, _LZ4_CONTENT_SIZE, _LZ4_DICTIONARY, _LZ4_INDEPENDENT = 0x10, 0x08, 0x01, 0x20
_CUT_OFF = "a batch ends inside its compressed data"


def unpacked(codec: int, data: bytes) -> Iterator[bytes]:
    """Yield the decompressed bytes of a batch.

    A piece has at most `PIECE_BYTES`. Of lz4 and snappy it is a block of the format, of at most 4 MiB, or of 22 times
    the compressed size if a snappy batch is a single block.

    Args:
        codec: Number of the codec in Kafka's format. 0: not compressed.
        data: The records of the batch as they were sent.

    Raises:
        CorruptRecordException: The data are damaged, or end too early.
    """
    try:
        yield from _UNPACK[codec](data)
    except (zlib.error, zstd.ZstdError, cramjam.DecompressionError, struct.error) as error:
        raise CorruptRecordException(f"a batch cannot be decompressed: {error}") from error


class PieceReader:
    """Reads from pieces, of which it holds one at a time.

    Attributes:
        position: Number of bytes read.
    """

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self.position = 0
        self._pieces = filter(None, pieces)
        self._piece = b""
        self._start = 0

    def at_end(self) -> bool:
        """Return whether nothing is left to read."""
        if self._start == len(self._piece):
            self._piece, self._start = next(self._pieces, b""), 0
        return not self._piece

    def read(self, count: int, keep: int | None = None) -> bytes:
        """Read `count` bytes and return all of them, or only the first `keep`.

        Raises:
            CorruptRecordException: There are fewer.
        """
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
        """Read a zigzag varint in Kafka's format: groups of 7 bits, the lowest first, with the sign in the lowest bit.

        Raises:
            CorruptRecordException: It is too long, or the data end inside.
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
