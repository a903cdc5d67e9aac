"""Compressed bytes are unpacked piece by piece, to what a whole step gives."""

import random
import tracemalloc
from collections.abc import Callable
from itertools import islice

import pytest
from aiokafka.codec import gzip_encode, lz4_encode, snappy_encode, zstd_encode
from aiokafka.errors import CorruptRecordException

from nearstream.workers.kafka.batches import PieceReader, unpacked

MEBIBYTE = 1024 * 1024
CODECS: list[tuple[int, Callable[[bytes], bytes]]] = [
    (0, bytes),
    (1, gzip_encode),
    (2, snappy_encode),
    (2, lambda data: bytes(snappy_encode(data, xerial_compatible=False))),
    (3, lz4_encode),
    (4, zstd_encode),
]
NAMES = ["none", "gzip", "snappy of Java", "snappy", "lz4", "zstd"]
every_codec = pytest.mark.parametrize(("codec", "encode"), CODECS, ids=NAMES)
every_packing = pytest.mark.parametrize(("codec", "encode"), CODECS[1:], ids=NAMES[1:])


@every_codec
def test_pieces_join_to_the_whole(codec: int, encode: Callable[[bytes], bytes]) -> None:
    draw = random.Random(1)
    for size in (0, 1, 100_000, 3 * MEBIBYTE):
        text = b" ".join(draw.choices([b"water", b"bridge", b"road"], k=size))[:size]
        for data in (bytes(size), draw.randbytes(size), text):
            assert b"".join(unpacked(codec, encode(data))) == data


@every_packing
def test_damaged_or_cut_data_are_refused(codec: int, encode: Callable[[bytes], bytes]) -> None:
    packed = encode(random.Random(1).randbytes(100_000))
    for damaged in (packed[:-2000], b"no packed data at all", packed[:3]):
        with pytest.raises(CorruptRecordException):
            for _ in unpacked(codec, damaged):
                pass


@pytest.mark.parametrize(("codec", "encode"), [CODECS[1], CODECS[4], CODECS[5]], ids=["gzip", "lz4", "zstd"])
def test_the_first_pieces_of_a_bomb_cost_no_more_than_themselves(codec: int, encode: Callable[[bytes], bytes]) -> None:
    packed = encode(bytes(200 * MEBIBYTE))
    tracemalloc.start()
    assert sum(map(len, islice(unpacked(codec, packed), 3))) >= 3 * 64 * 1024
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 16 * MEBIBYTE


def test_several_members_or_frames_follow_each_other() -> None:
    for codec, encode in (CODECS[1], CODECS[5]):
        assert b"".join(unpacked(codec, encode(b"one") + encode(b" two"))) == b"one two"


def test_a_reader_crosses_pieces_and_keeps_what_was_asked_for() -> None:
    reader = PieceReader(iter([b"abc", b"", b"defg", b"h"]))
    assert reader.read(2) == b"ab"
    assert reader.read(4, keep=3) == b"cde"
    assert reader.read(1, keep=0) == b""
    assert (reader.read(0), reader.at_end(), reader.position) == (b"", False, 7)
    assert (reader.read(1), reader.at_end(), reader.position) == (b"h", True, 8)
    with pytest.raises(CorruptRecordException):
        reader.read(1)


def test_numbers_are_read_as_kafka_writes_them_and_one_without_end_is_refused() -> None:
    largest = b"\xfe" + b"\xff" * 8 + b"\x01"
    numbers = {b"\x00": 0, b"\x01": -1, b"\x02": 1, b"\xac\x02": 150, largest: 2**63 - 1}
    assert {data: PieceReader(iter([data])).varint() for data in numbers} == numbers
    with pytest.raises(CorruptRecordException):
        PieceReader(iter([b"\xff" * 20])).varint()
