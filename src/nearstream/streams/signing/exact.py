"""Measure the edit distance of two texts exactly, where both are at hand."""

from rapidfuzz.distance import Levenshtein

from nearstream.streams.fingerprints.normalize import normalize
from nearstream.streams.fingerprints.rewriting import rewritten
from nearstream.streams.signing.scheme import Scheme

# Cells of the table of Levenshtein's algorithm, 64 of which rapidfuzz computes at a time: 50 ms.
CELLS_MAX = 10**9


def normal_text(text: str, scheme: Scheme) -> str:
    """Return the normal form of a text that the signer reads, whose characters distances are counted in."""
    return normalize(rewritten(text, scheme.text), scheme.text).data.decode()


def exact_distance(one: str, other: str, cells: int = CELLS_MAX, *, expected: int | None = None) -> int | None:
    """Return the edit distance of two normal forms: insertions, deletions and substitutions of a character.

    None is returned where the table has more than `cells`. What the distance hardly exceeds is `expected`: cells that
    no shorter way reaches are then not computed.
    """
    return Levenshtein.distance(one, other, score_hint=expected) if len(one) * len(other) <= cells else None
