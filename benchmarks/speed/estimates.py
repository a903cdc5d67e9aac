"""Count estimates a second from LD signatures of given lengths."""

import random
from collections.abc import Sequence
from itertools import combinations, islice
from typing import Any

import numpy as np
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from benchmarks.reference.ld_compression import compress_to_symbols
from benchmarks.speed import ours
from benchmarks.speed.measure import Effort, timed
from benchmarks.texts import speeches
from nearstream.streams.fingerprints.ld import view

# From Coates, "Super Fast Estimates of Levenshtein Distance", "How well does it work?", first table. The columns are
# characters of both texts, symbols of their signatures, and estimates a second on a laptop of 2015.
BLOG = (
    (4_865, 181, 8_000),
    (4_865, 98, 30_300),
    (4_865, 59, 90_909),
    (4_865, 28, 250_000),
    (27_478, 940, 280),
    (27_478, 514, 1_048),
    (27_478, 305, 2_932),
    (27_478, 195, 11_627),
)
_CUTOFF = 0.4
_MOST_STRINGS = 256
_MOST_PAIRS = 300
_FIRST_CODE_POINT = 0xE000
_RATE, _BITS = 32, 19
_SEED_RATE, _SEED_WIDTH = 32, 12


def estimate_rows(effort: Effort) -> list[dict[str, Any]]:
    """Measure estimates a second for each row of the blog's table.

    All pairs are unrelated. They are estimated pair by pair, and one to many with a cut-off. An estimated distance is
    that of the signatures times the characters for one symbol. Symbols of `kind` "ours" have 19 bits, those of "source"
    are the blog's 62 characters.
    """
    kinds = {"ours": symbol_strings(), "source": source_strings()}
    return [_row(kind, strings, *entry, effort) for kind, strings in kinds.items() for entry in BLOG]


def symbol_strings() -> list[str]:
    """Return the LD symbols of unrelated texts as strings.

    Each symbol is one code point. All strings are longer than any signature of the blog.
    """
    sign = ours.signer("numpy")
    views = [view(sign(ours.document(text)), _RATE, _BITS).symbols for text in speeches()]
    return ["".join(map(chr, (symbols + np.uint32(_FIRST_CODE_POINT)).tolist())) for symbols in views]


def source_strings() -> list[str]:
    """Return the signatures of the texts of `symbol_strings` by the blog's method."""
    return [compress_to_symbols(text, rate=_SEED_RATE, neighbourhood=_SEED_WIDTH) for text in speeches()]


def _row(kind: str, longest: list[str], characters: int, symbols: int, blog: int, effort: Effort) -> dict[str, Any]:
    strings = [text[start : start + symbols] for text in longest for start in range(0, len(text) - symbols, symbols)]
    random.Random(symbols).shuffle(strings)
    strings = strings[:_MOST_STRINGS]
    scale, cutoff = characters / symbols, int(_CUTOFF * symbols)

    def in_pairs(pairs: Sequence[tuple[str, str]]) -> object:
        return process.cpdist(*zip(*pairs, strict=True), scorer=Levenshtein.distance, workers=1) * scale

    # rapidfuzz compares several short strings at once if they are the rows. Longer strings are faster as columns.
    def in_a_column(query: str) -> object:
        return process.cdist([query], strings, scorer=Levenshtein.distance, score_cutoff=cutoff, workers=1)

    def in_rows(query: str) -> object:
        return process.cdist(strings, [query], scorer=Levenshtein.distance, score_cutoff=cutoff, workers=1)

    unrelated = list(islice(combinations(strings, 2), _MOST_PAIRS))
    pairs = timed(in_pairs, [unrelated], effort)
    many = min((timed(way, strings[:8], effort) for way in (in_a_column, in_rows)), key=lambda timing: timing.us)
    a_pair, a_many = 1e6 / pairs.us * len(unrelated), 1e6 / many.us * len(strings)
    return {
        "kind": kind,
        "characters": characters,
        "symbols": symbols,
        "blog": blog,
        "pairs": round(a_pair),
        "one to many": round(a_many),
        "pairs / blog": round(a_pair / blog, 2),
        "one to many / blog": round(a_many / blog, 2),
        "n": pairs.n,
        "spread": round(max(pairs.spread, many.spread), 4),
    }
