"""Estimates in Python.

Floats are added from the first to the last, so that C repeats every bit of the results.
"""

import numpy as np

from nearstream.schemas.documents.signature import Signature
from nearstream.streams.estimates.estimate import Estimate, ratio
from nearstream.streams.fingerprints.parameters import KEPT_SLOT_BITS, SLOTS
from nearstream.streams.signing.kept import kept_sketch
from tests.reference.alignment import align
from tests.reference.common_text import common_shingles, find_moved, layout
from tests.reference.distance import edit_distance
from tests.reference.intervals import distance_band
from tests.reference.pair import pair

_LEAST_ROWS, _ORDERED_PART, _TOUCHED, _REPEATED = 0.3, 0.5, 3, 0.06
_CHANCE = 2.0**-KEPT_SLOT_BITS


def resemblance(a: Signature, b: Signature) -> float:
    """Estimate the resemblance of two texts from the low 4 bits of the slots of their sketches."""
    if a.spaceless != b.spaceless:
        return 0.0
    one, other = (np.frombuffer(kept_sketch(each.sketch), np.uint8) for each in (a, b))
    differing = one ^ other
    equal = 1 - int(np.count_nonzero(differing & 15) + np.count_nonzero(differing >> 4)) / SLOTS
    return max(0.0, (equal - _CHANCE) / (1.0 - _CHANCE))


def estimate(a: Signature, b: Signature) -> Estimate:
    """Estimate all numbers about two texts.

    The order of the arguments does not matter. Whole signatures and those that an index keeps give equal numbers.
    """
    both = pair(a, b)
    alignment = align(both.shorter_side, both.longer_side, both.least_common)
    shorter, longer = both.shorter, both.longer
    in_order, moved = layout(alignment.blocks, both.lead), find_moved(alignment)
    distance = edit_distance(alignment, sorted((*alignment.blocks, *moved.blocks)), both.rate, equal=both.is_equal)
    band = (0.0, 0.0) if both.is_equal else distance_band(distance, longer.n_bytes)
    value, low, high, expected = both.in_characters(distance.value, *band, distance.expected)
    sketch_resemblance = resemblance(shorter, longer)
    counts = both.shingle_counts
    in_place = common_shingles(both, alignment.blocks, moved, sketch_resemblance)
    distinct, windows = (shorter.shingles, longer.shingles), both.shorter_side.symbols
    rows = rows_in_other_order(counts, distinct, ratio(alignment.matches, windows), sketch_resemblance)
    common = max(in_place, rows * min(counts))
    shared_shorter, shared = ratio(common, counts[0]), ratio(common, min(counts))
    symbol_resemblance = ratio(common, sum(counts) - common)
    bounded_resemblance = min(sketch_resemblance, ratio(min(counts), max(counts)))
    moved_symbols = alignment.common - alignment.matches
    text_in_order = min(1.0, in_order.common / shorter.n_bytes)
    spreads = min(1.0, in_order.spreads[0] / shorter.n_bytes), min(1.0, in_order.spreads[1] / longer.n_bytes)
    longer_characters = max(shorter.characters, longer.characters)
    return Estimate(
        shorter_digest=shorter.digest,
        longer_characters=longer_characters,
        fewer_words=both.fewer_words,
        rate=both.rate,
        symbols_shorter=both.shorter_side.symbols,
        symbols_longer=both.longer_side.symbols,
        common=alignment.common,
        matches=alignment.matches,
        shingles_shorter=counts[0],
        shingles_longer=counts[1],
        length_ratio=both.length_ratio,
        sketch_resemblance=sketch_resemblance,
        common_shingles=common,
        text_in_order=text_in_order,
        spread_shorter=spreads[0],
        spread_longer=spreads[1],
        segment_cover=min(1.0, in_order.segment / shorter.n_bytes),
        segment_share=ratio(in_order.segment, in_order.common),
        distance=value,
        low=low,
        high=high,
        expected=expected,
        shared_shorter=shared_shorter,
        shared=shared,
        common_words=shared * both.fewer_words,
        order_gap=max(0.0, shared_shorter - text_in_order, ratio(moved_symbols, windows) - _REPEATED),
        mean_resemblance=symbol_resemblance if both.rate else bounded_resemblance,
        spread=min(spreads),
        distance_ratio=value / longer_characters,
        scattered=distance.scattered,
        is_equal=both.is_equal,
        is_short=both.is_short,
        same_lineage=both.same_lineage,
        same_site=both.same_site,
    )


def rows_in_other_order(counts: tuple[int, int], distinct: tuple[int, int], in_order: float, sketched: float) -> float:
    """Return the share of rows that two lists have in another order, 0 if they are in one order or few."""
    rows = min(1.0, ratio(sketched / (1 + sketched) * sum(distinct), min(distinct)))
    moved = rows >= _LEAST_ROWS and 2 * min(distinct) >= max(counts) and in_order < _ORDERED_PART * rows**_TOUCHED
    return rows if moved else 0.0
