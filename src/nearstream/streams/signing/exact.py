"""Measure two texts exactly, where both are at hand: their edit distance and their sets of shingles."""

import numpy as np
from rapidfuzz.distance import Levenshtein

from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.fingerprints.normalize import NormalForm, normal_forms
from nearstream.streams.fingerprints.rewriting import rewritten
from nearstream.streams.fingerprints.shingles import FeatureHasher, Hashes
from nearstream.streams.signing.scheme import Scheme

# Cells of the table of Levenshtein's algorithm, 64 of which rapidfuzz computes at a time: 50 ms.
CELLS_MAX = 10**9
NO_SHINGLES: Hashes = np.empty(0, dtype=np.uint64)


def normal_text(text: str, scheme: Scheme) -> str:
    """Return the normal form of a text that the signer reads, whose characters distances are counted in."""
    return _normal_form(text, scheme).data.tobytes().decode()


def exact_distance(one: str, other: str, cells: int = CELLS_MAX) -> int | None:
    """Return the edit distance of two normal forms: insertions, deletions and substitutions of a character.

    Args:
        one: A normal form.
        other: Another one.
        cells: Most cells of the table, the product of both lengths. None is returned where there are more.
    """
    return Levenshtein.distance(one, other) if len(one) * len(other) <= cells else None


def shingle_set(text: str, scheme: Scheme, key: HashKey) -> Hashes:
    """Return the distinct shingles of a text in ascending order, as the signer hashes them."""
    form = _normal_form(text, scheme)
    if not form.data.size:
        return NO_SHINGLES
    hasher = FeatureHasher(key, scheme.text.word_bytes)
    (found,) = hasher.shingles(hasher.features([form]), scheme.sketch)
    return found


def _normal_form(text: str, scheme: Scheme) -> NormalForm:
    """Return the normal form that the signer reads: of a rewritten text, where the scheme rewrites."""
    return normal_forms([rewritten(text, scheme.text)], scheme.text)[0]
