"""Common text of two documents: its layout, and the shingles it holds."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import sqrt

from tests.reference.alignment import Alignment, MatchingBlock, total
from tests.reference.intervals import weighted_shingles
from tests.reference.pair import SignaturePair

_TRIM = 0.05  # of the common text, at each end, is ignored when its spread is measured

# Fewer symbols in another order are not worth an alignment of their own.
_MOVED_SYMBOLS = 4
_MOVED_SHARE = 0.02

Span = tuple[float, float]


@dataclass(frozen=True)
class BlockLayout:
    """The layout of common text in two documents, in bytes.

    Pairs are of the shorter text first, then of the longer.
    """

    common: float  # common text in blocks that are long enough
    # Distance from the block that holds the 5 % point of this text to the one that holds the 95 % point.
    spreads: tuple[float, float]
    # Common text in the best segment, which is the part of the longer text where common text outweighs other text most.
    segment: float
    segment_spans: tuple[Span, Span] | None  # start and end of the best segment in both texts, None without common text


@dataclass(frozen=True)
class MovedBlocks:
    """Common blocks in another order."""

    blocks: Sequence[MatchingBlock]  # the blocks that a second alignment found
    symbols_per_match: float  # how many common symbols in another order each match in these blocks represents


NOTHING_MOVED = MovedBlocks((), 1.0)


def layout(blocks: Sequence[MatchingBlock], min_bytes: float) -> BlockLayout:
    """Measure how blocks of at least `min_bytes` lie in both texts.

    All blocks are measured if none is as long.
    """
    used = [block for block in blocks if block.length >= min_bytes] or [block for block in blocks if block.length]
    totals = list(accumulate([block.length for block in used]))
    if not totals or not totals[-1]:
        return BlockLayout(0.0, (0.0, 0.0), 0.0, None)
    first = used[bisect_left(totals, _TRIM * totals[-1])]
    last = used[bisect_left(totals, (1 - _TRIM) * totals[-1])]
    start, stop, segment = _best_segment(used)
    return BlockLayout(
        totals[-1],
        (last.end_shorter - first.start_shorter, last.end_longer - first.start_longer),
        segment,
        ((start.start_shorter, stop.end_shorter), (start.start_longer, stop.end_longer)),
    )


def find_moved(alignment: Alignment) -> MovedBlocks:
    """Find common text in another order, if there is enough of it.

    It is aligned once more. That alignment cannot follow many moves, so its matches represent all symbols in another
    order.
    """
    symbols = alignment.common - alignment.matches
    if not alignment.matches or symbols < max(_MOVED_SYMBOLS, _MOVED_SHARE * alignment.shorter.symbols):
        return NOTHING_MOVED
    rest = alignment.align_rest()
    return MovedBlocks(rest.blocks, symbols / rest.matches)


def shingle_bytes(blocks: Sequence[MatchingBlock], lead: float) -> float:
    """Return the number of bytes at which a common shingle can start."""
    return total([block.length - lead for block in blocks if block.length > lead])


def common_shingles(
    both: SignaturePair, in_order: Sequence[MatchingBlock], moved: MovedBlocks, sketch_resemblance: float
) -> float:
    """Estimate the common shingles, each as often as both texts have it.

    The blocks found in another order represent all text that moved, which is uncertain by about the part of it that was
    not found. For the rest see native/estimates/common_text.h.
    """
    lead, counts, distinct = both.lead, both.shingle_counts, (both.shorter.shingles, both.longer.shingles)
    if both.is_equal:
        return float(min(counts))  # a signature from outside may state a wrong number
    per_byte = counts[0] / max(1.0, both.shorter.n_bytes - lead)
    # Text that either side has only once is distinct.
    new_per_byte = per_byte * max(distinct[0] / max(1, counts[0]), distinct[1] / max(1, counts[1]))
    moved_bytes = shingle_bytes(moved.blocks, lead)
    guessed = moved_bytes * (moved.symbols_per_match - 1)
    found = shingle_bytes(in_order, lead) + moved_bytes + guessed
    uncertain = both.rate * sqrt(len(in_order) + 1) if both.rate > 1 else 0.0
    deviation = sqrt(uncertain * uncertain + guessed * guessed)
    common = weighted_shingles(found * new_per_byte, deviation * new_per_byte, sketch_resemblance, distinct)
    repeated = min(counts[0] - distinct[0], counts[1] - distinct[1])
    return min(max(found * per_byte, common), common + repeated)


def _best_segment(blocks: Sequence[MatchingBlock]) -> tuple[MatchingBlock, MatchingBlock, float]:
    """Return the first and the last block of the best segment, and its common bytes.

    This is Kadane's maximum subarray, where a common byte of the longer text counts +1 and any other byte -1.
    """
    start, common, end = blocks[0], 0.0, 0.0
    score, best_score, best = -1.0, 0.0, (start, start, 0.0)
    for block in blocks:
        score -= block.start_longer - end
        if score < 0:
            start, common, score = block, 0.0, 0.0
        score += block.length
        common += block.length
        if score > best_score:
            best_score, best = score, (start, block, common)
        end = block.start_longer + block.length
    return best
