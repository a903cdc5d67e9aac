"""Packed LD signatures, bit by bit."""

import numpy as np
import pytest
from numpy.typing import NDArray

from nearstream.streams.fingerprints.ld_encoding import pack_varints, pack_words, unpack_varints, unpack_words
from nearstream.streams.fingerprints.ragged import RaggedRows


def packed_words(symbols: NDArray[np.uint32], gaps: NDArray[np.int64]) -> bytes:
    (packed,) = pack_words(symbols, RaggedRows.between(gaps, [0, gaps.size]))
    return packed


def test_a_gap_of_8191_stands_in_a_word_of_its_own() -> None:
    packed = packed_words(np.array([1, 2], dtype=np.uint32), np.array([8190, 8191]))
    assert packed == b"".join(word.to_bytes(4, "little") for word in (1 << 13 | 8190, 2 << 13 | 8191, 8191))


@pytest.mark.parametrize("gaps", [[0x1FFF, 5], [0x1FFF, 0x1FFF, 0x3FFF], [0x3FFF, 1, 0x3FFF, 0x3FFF, 2], [5, 0x3FFF]])
def test_a_gap_that_looks_like_an_escape_is_no_escape(gaps: list[int]) -> None:
    symbols = np.arange(len(gaps), dtype=np.uint32)
    assert unpack_words(packed_words(symbols, np.array(gaps)))[1].tolist() == gaps


def test_each_row_is_packed_with_its_escapes() -> None:
    gaps = np.array([9_000, 1, 2, 8_191, 70_000, 8_190, 3, 9_000])
    symbols = np.arange(gaps.size, dtype=np.uint32)
    rows = RaggedRows(gaps, [0, 2, 3, 3, 6], [2, 2, 3, 5, 8])
    alone = [
        packed_words(symbols[start:stop], gaps[start:stop]) for start, stop in zip(rows.starts, rows.stops, strict=True)
    ]
    assert pack_words(symbols, rows) == alone


@pytest.mark.parametrize("packed", [b"1", b"12345", b"\xff\xff\xff\xff", b"\x00\x00\x00\x00\xff\x1f\x00\x00"])
def test_words_without_an_end_are_refused(packed: bytes) -> None:
    with pytest.raises(ValueError, match="expected"):
        unpack_words(packed)


def test_variable_numbers_have_seven_bits_a_byte() -> None:
    numbers = [0, 127, 128, 16_383, 16_384, 2**41]
    packed = pack_varints(np.array(numbers))
    assert packed[:6].hex() == "007f8001ff7f"
    assert unpack_varints(packed).tolist() == numbers


@pytest.mark.parametrize("packed", [b"\x80", b"\x01\x80", b"\x80\x80\x80\x80\x80\x80\x01"])
def test_variable_numbers_without_an_end_are_refused(packed: bytes) -> None:
    with pytest.raises(ValueError, match="expected"):
        unpack_varints(packed)


def test_nothing_packs_to_nothing() -> None:
    assert packed_words(np.empty(0, dtype=np.uint32), np.empty(0, dtype=np.int64)) == b""
    assert pack_varints(np.empty(0, dtype=np.int64)) == b""
    assert unpack_varints(b"").size == 0
