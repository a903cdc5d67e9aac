"""Blocks of common text, and the text between them."""

from collections import Counter
from random import Random

import numpy as np
import pytest
from rapidfuzz.distance import LCSseq

from nearstream.streams.estimates.alignment import MatchingBlock, Side, align
from nearstream.streams.estimates.common_text import layout, shingle_bytes
from nearstream.streams.estimates.distance import edit_distance
from nearstream.streams.estimates.intervals import weighted_shingles


def side(symbols: list[int], positions: list[int], n_bytes: int, rate: int = 8, grain: int = 0) -> Side:
    windows = np.array(([*positions, n_bytes], [*symbols, 0]), np.int64)
    return Side(windows, n_bytes, n_bytes, rate, grain)


def symbols_of(one: Side) -> list[int]:
    return one.windows[1, :-1].tolist()


def found(one: Side, other: Side) -> list[MatchingBlock]:
    return align(one, other).blocks


def placed(*places: tuple[float, float, float]) -> list[MatchingBlock]:
    """Return blocks with these starts in both texts and lengths."""
    return [MatchingBlock(one, other, one + length, other + length, length) for one, other, length in places]


def drawn(seed: int, count: int, kinds: int) -> Side:
    random = Random(seed)
    return side([random.randrange(kinds) for _ in range(count)], sorted(random.sample(range(9 * count), count)), 9999)


@pytest.mark.parametrize("kinds", [5, 300, 1 << 19])
def test_symbols_that_are_left_out_before_aligning_lose_no_match(kinds: int) -> None:
    for seed in range(5):
        one, other = drawn(seed, 120, kinds), drawn(seed + 50, 300, kinds)
        alignment = align(one, other)
        ours, theirs = symbols_of(one), symbols_of(other)
        assert alignment.matches == LCSseq.similarity(ours, theirs)
        assert all(ours[here] == theirs[there] for here, there in alignment.matched[:, 1:-1].T)
        assert alignment.common == (Counter(ours) & Counter(theirs)).total()
        rest = alignment.align_rest()
        assert rest.common == alignment.common - alignment.matches
        assert not {*rest.matched[0, 1:-1]} & {*alignment.matched[0, 1:-1]}
        assert align(one, other, alignment.common + 1).matches == 0


def test_a_block_grows_to_the_text_around_it_only_if_nothing_differs() -> None:
    one, other = side([1, 2, 3], [5, 30, 60], 100), side([1, 2, 3, 9], [5, 30, 60, 70], 200)
    (common,) = found(one, other)
    assert (common.start_shorter, common.start_longer) == (0, 0)
    # The first difference is in the window of symbol 9, ten bytes after its start.
    assert common.end_shorter == common.end_longer == common.length
    assert 60 + 16 + 5 < common.length < 60 + 16 + 10


def test_a_lost_symbol_or_moved_text_ends_a_block() -> None:
    one = side([1, 2, 3, 4], [0, 40, 80, 120], 200)
    assert found(one, side([1, 2, 3, 4], [0, 40, 80, 120], 200)) == placed((0, 0, 200))
    assert len(found(one, side([1, 2, 7, 3, 4], [0, 40, 60, 80, 120], 200))) == 2
    assert len(found(one, side([1, 2, 3, 4], [0, 40, 81, 121], 201))) == 2
    # Positions in units of two bytes may be off by two bytes.
    assert len(found(one, side([1, 2, 3, 4], [0, 40, 82, 122], 202, grain=2))) == 1


def test_neighbouring_blocks_meet_halfway() -> None:
    common = found(side([1, 2], [0, 20], 60), side([1, 2], [0, 25], 65))
    assert common[0].end_shorter <= common[1].start_shorter
    assert common[0].end_longer <= common[1].start_longer


def test_texts_without_a_match_have_no_block() -> None:
    nothing = found(side([1], [0], 50), side([2], [0], 50))
    assert nothing == []
    assert shingle_bytes(nothing, 20) == 0
    assert layout(nothing, 20).segment_spans is None
    assert align(side([1], [0], 50), side([2], [0], 50)).matches == 0


def test_spread_reaches_over_the_blocks_that_hold_the_outer_points() -> None:
    common = placed((0, 0, 30), (50, 50, 100), (200, 200, 600), (900, 900, 24))
    measured = layout(common, 24)
    # 5 % of 754 bytes is 37.7, in the second block. 95 % is 716.3, in the third.
    assert measured.spreads == (750.0, 750.0)
    assert measured.common == 754
    # Two blocks short of four words do not count, unless there are no others.
    assert layout(common, 31).common == 700
    assert layout(common, 999).common == 754


def test_the_best_segment_is_where_common_text_outweighs_other_text() -> None:
    measured = layout(placed((0, 0, 100), (100, 1000, 100), (200, 1150, 100), (300, 1300, 100)), 20)
    assert measured.segment == 300
    assert measured.segment_spans == ((100.0, 400.0), (1000.0, 1400.0))


def test_shingles_start_where_enough_common_text_follows() -> None:
    assert shingle_bytes(placed((0, 0, 60), (100, 100, 20)), 24) == 36


def test_two_estimates_of_common_shingles_are_weighted_by_their_variance() -> None:
    # J = .5 of 300 and 300 shingles, from slots of 4 bits, means 200 common ones, with a standard deviation of 12.5.
    assert weighted_shingles(180, 0.0, 0.5, (300, 300)) == 180
    assert weighted_shingles(180, 1e6, 0.5, (300, 300)) == pytest.approx(200)
    assert weighted_shingles(180, 12.5, 0.5, (300, 300)) == pytest.approx(190, abs=0.5)
    assert weighted_shingles(500, 0.0, 0.5, (300, 900)) == 300
    assert weighted_shingles(0, 0.0, 0.0, (0, 0)) == 0


def cost(one: Side, other: Side) -> float:
    alignment = align(one, other)
    return edit_distance(alignment, alignment.blocks, 8, equal=False).value


def test_a_short_block_that_costs_more_moves_than_it_saves_is_left_out() -> None:
    one, other = side([1], [100], 1000), side([1], [800], 1000)
    # Unrelated texts of 1,000 bytes differ by 770, and moving them by 700 twice would cost more.
    assert cost(one, other) == pytest.approx(770, rel=0.01)
    assert cost(one, side([1], [100], 1000)) < 770


def test_many_blocks_are_chained_whatever_their_number() -> None:
    symbols = list(range(300))
    one = side(symbols, [40 * place for place in symbols], 12_000)
    other = side(symbols, [40 * place + place // 3 for place in symbols], 12_100)
    assert cost(one, other) == pytest.approx(100, abs=1)
