"""The C twin of the alignment equals numpy byte for byte and refuses invalid input."""

import math
import struct
from random import Random
from time import process_time

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nearstream.streams.estimates import alignment_numpy
from nearstream.streams.estimates.alignment import Side, align
from nearstream.streams.native import native
from tests.support.implementations import needs_native

pytestmark = needs_native

SHARES = np.linspace(0.0, 0.77, 257).tobytes()


def windows(symbols: list[int], gaps: list[int]) -> bytes:
    """Pack consecutive windows: their starts, then their symbols.

    The last window ends at the end of the text or before it.
    """
    starts = np.cumsum(gaps[: len(symbols) + 1])
    starts[-1] += 16
    return np.array((starts, [*symbols, 0]), np.int64).tobytes()


@st.composite
def texts(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """Draw two texts made of common blocks of symbols.

    Blocks may be missing, repeated, moved or edited.
    """
    random = Random(draw(st.integers(0, 2**32)))
    kinds = draw(st.sampled_from((2, 40, 1 << 19)))
    parts = [[random.randrange(kinds) for _ in range(draw(st.integers(0, 150)))] for _ in range(3)]
    both = []
    for _ in range(2):
        symbols = [symbol for part in draw(st.lists(st.sampled_from(parts), max_size=5)) for symbol in part]
        edited = [symbol if random.random() > 0.05 else random.randrange(kinds) for symbol in symbols]
        both.append(windows(edited, [random.choice((0, 3, 8, 8, 8, 40, 400)) for _ in range(len(edited) + 1)]))
    return both[0], both[1]


@given(texts(), st.sampled_from((0, 2, 16)), st.sampled_from((0, 5, 10_000)))
@settings(max_examples=200)
def test_both_find_the_same_matches_and_blocks(pair: tuple[bytes, bytes], grain: int, least: int) -> None:
    reach = np.linspace(-8.0, -1.0, 100).tobytes()
    found = native.align_symbols(*pair, reach, grain, least)
    assert found == alignment_numpy.align_symbols(*pair, reach, grain, least)
    ends = [*struct.unpack(f"{len(found[2]) // 8}d", found[2]), *(5e4, 6e4, 5e4, 6e4, 0.0)]
    blocks = struct.pack(f"{len(ends)}d", *ends)
    arguments = blocks, SHARES, (32.0, 0.5), 0.8, 0.56
    assert native.cheapest_path(*arguments) == alignment_numpy.cheapest_path(*arguments)


def test_what_is_no_text_is_refused() -> None:
    text, reach = windows([1, 2], [0, 8, 8]), bytes(8)
    for wrong in ((b"", text, reach), (text, text[:8], reach), (text, text, b""), (bytes(1 << 21), text, reach)):
        with pytest.raises(ValueError, match="windows of two texts"):
            native.align_symbols(*wrong, 0, 0)
    with pytest.raises(ValueError, match="257 shares expected"):
        native.cheapest_path(b"", SHARES[8:], (32.0, 0.5), 0.8, 0.56)


@given(st.binary(max_size=400), st.binary(max_size=400), st.binary(min_size=8, max_size=40), st.integers(0, 9))
@settings(max_examples=200)
def test_any_bytes_can_be_handed_over(one: bytes, other: bytes, reach: bytes, grain: int) -> None:
    if min(len(one), len(other)) >= 16:
        common, matched, blocks = native.align_symbols(one, other, reach, grain, 0)
        assert len(matched) // 16 - 2 <= common
        assert len(blocks) // 40 <= common
    assert isinstance(native.cheapest_path(one, SHARES, (32.0, 0.5), 0.8, 0.56), float)


@given(st.lists(st.floats(), max_size=40))
@example([*(0.0, 0.0, -math.inf, -math.inf, 0.0), *(5.0, 5.0, 9.0, 9.0, 0.0)])
@settings(max_examples=200)
def test_blocks_of_any_numbers_can_be_handed_over(numbers: list[float]) -> None:
    blocks = struct.pack(f"{len(numbers)}d", *numbers)
    assert isinstance(native.cheapest_path(blocks, SHARES, (32.0, 0.5), 0.8, 0.56), float)


def test_texts_that_repeat_themselves_are_compared_in_no_more_time() -> None:
    repeated = [7, 9] * 1024
    texts = (repeated, [5, *[9, 7, 7] * 682, 6]), (list(range(2048)), [5, *range(0, 2048, 2), *range(1, 2048, 2)])
    taken = []
    for one, other in texts:
        sides = [Side(windows(each, [8] * (len(each) + 1)), 16_400, 16_400, 8) for each in (one, other)]
        began = process_time()
        for _ in range(20):
            align(*sides)
        taken.append(process_time() - began)
    assert taken[0] < 10 * taken[1]
