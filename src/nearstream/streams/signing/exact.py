"""Measure two texts exactly, where both are at hand: their edit distance and their sets of shingles."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein

from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.fingerprints.normalize import normalize
from nearstream.streams.fingerprints.rewriting import rewritten
from nearstream.streams.fingerprints.unicode_tables import unicode_tables
from nearstream.streams.native import Context, native
from nearstream.streams.signing.scheme import Scheme
from nearstream.streams.signing.signer import packed_context

Hashes = NDArray[np.uint64]
# Cells of the table of Levenshtein's algorithm, 64 of which rapidfuzz computes at a time: 50 ms.
CELLS_MAX = 10**9
_MAX_BYTES = 1 << 30


def normal_text(text: str, scheme: Scheme) -> str:
    """Return the normal form of a text that the signer reads, whose characters distances are counted in."""
    return normalize(rewritten(text, scheme.text), scheme.text).data.decode()


def exact_distance(one: str, other: str, cells: int = CELLS_MAX, *, expected: int | None = None) -> int | None:
    """Return the edit distance of two normal forms: insertions, deletions and substitutions of a character.

    None is returned where the table has more than `cells`. What the distance hardly exceeds is `expected`: cells that
    no shorter way reaches are then not computed.
    """
    return Levenshtein.distance(one, other, score_hint=expected) if len(one) * len(other) <= cells else None


def shingle_set(text: str, scheme: Scheme, key: HashKey) -> Hashes:
    """Return the distinct shingles of a text in ascending order, as the signer hashes them."""
    raw = rewritten(text, scheme.text).encode("utf-8", "surrogatepass")
    packed = native.shingles(_context(scheme, key), unicode_tables(), raw, _MAX_BYTES)
    return np.sort(np.frombuffer(packed or b"", dtype=np.uint64))


@lru_cache(maxsize=4)
def _context(scheme: Scheme, key: HashKey) -> Context:
    return native.context(packed_context(scheme, key))
