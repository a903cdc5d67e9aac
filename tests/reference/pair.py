"""Two signatures in a fixed order, read at their common rate."""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil

import numpy as np

from nearstream.schemas.documents.signature import Signature
from nearstream.streams.estimates.comparing import ONE_SITE, refuse_incomparable, same_lineage, tie
from nearstream.streams.fingerprints.parameters import (
    GAP_STEPS,
    MIN_SPACELESS_BYTES,
    MIN_WORDS,
    SHINGLE_WORDS,
    SPACELESS_SHINGLE_BYTES,
)
from tests.reference.alignment import Side
from tests.reference.ld import LdSignature, compared_bits, view

_GATE_SYMBOLS = 4
_GATE_SHARE = 0.04
_GATE_RATIO = 0.9  # of texts of similar length, because few windows survive among scattered noise
_CACHED_SIDES = 128  # at most 10 MB


@dataclass(frozen=True)
class SignaturePair:
    """Two texts, the shorter one first.

    The shorter text has fewer bytes in its normal form, then fewer symbols, then the smaller digest. An alignment is
    not unique, so without a fixed order the numbers would depend on the order of arrival.
    """

    shorter: Signature
    longer: Signature
    shorter_side: Side
    longer_side: Side

    @property
    def rate(self) -> int:
        """Return the average bytes per LD symbol of the coarser signature, 0 without LD signatures."""
        return max(self.shorter.rate, self.longer.rate)

    @property
    def lead(self) -> float:
        """Return the bytes of a shingle before its last word, or its last character in a spaceless text."""
        shorter, longer = self.shorter, self.longer
        n_bytes = shorter.n_bytes + longer.n_bytes
        if shorter.spaceless or longer.spaceless:
            return max(0.0, SPACELESS_SHINGLE_BYTES - n_bytes / max(1, shorter.characters + longer.characters))
        return (SHINGLE_WORDS - 1) * n_bytes / max(1, shorter.words + longer.words)

    @property
    def is_equal(self) -> bool:
        """Return whether both texts have one normal form."""
        return self.shorter.digest == self.longer.digest

    @property
    def same_lineage(self) -> bool:
        """Return whether both are states of one document or of one lineage."""
        return same_lineage(self.shorter, self.longer)

    @property
    def same_site(self) -> bool:
        """Return whether the lineages of both are different URLs of one host."""
        return tie(self.shorter, self.longer) == ONE_SITE

    @property
    def is_short(self) -> bool:
        """Return whether either text is too short for its numbers to say anything."""
        return _is_short(self.shorter) or _is_short(self.longer)

    @property
    def length_ratio(self) -> float:
        """Return the smaller over the larger number of words, or of bytes in spaceless texts."""
        if self.shorter.spaceless or self.longer.spaceless:
            return self.shorter.n_bytes / self.longer.n_bytes
        fewer, more = sorted((self.shorter.words, self.longer.words))
        return fewer / max(1, more)

    @property
    def fewer_words(self) -> int:
        """Return the smaller number of words, or of shingles in spaceless texts."""
        if self.shorter.spaceless or self.longer.spaceless:
            return min(self.shingle_counts)
        return min(self.shorter.words, self.longer.words)

    @property
    def shingle_counts(self) -> tuple[int, int]:
        """Return the shingles of both texts, each as often as it comes."""
        return _shingle_count(self.shorter), _shingle_count(self.longer)

    @property
    def least_common(self) -> int:
        """Return the least number of common symbols with which a rule can find a relation."""
        if self.is_equal or self.same_lineage:
            return 0
        if self.shorter.n_bytes >= _GATE_RATIO * self.longer.n_bytes:
            return _GATE_SYMBOLS
        return max(_GATE_SYMBOLS, ceil(_GATE_SHARE * min(self.shorter_side.symbols, self.longer_side.symbols)))

    def in_characters(self, *distances: float) -> list[float]:
        """Convert distances from bytes to characters, beyond the known difference of the lengths by their width."""
        shorter, longer = self.shorter, self.longer
        width = (shorter.characters + longer.characters) / (shorter.n_bytes + longer.n_bytes)
        known, least = abs(longer.characters - shorter.characters), longer.n_bytes - shorter.n_bytes
        return [max(0.0, known + (distance - least) * width) for distance in distances]


def pair(a: Signature, b: Signature) -> SignaturePair:
    """Order two signatures, given in any order, and read their symbols at the coarser rate."""
    refuse_incomparable(a, b)
    finer, coarser = min(a.rate, b.rate), max(a.rate, b.rate)
    side_a, side_b = _side(a, finer, coarser), _side(b, finer, coarser)
    if _rank(side_a, a) <= _rank(side_b, b):
        return SignaturePair(a, b, side_a, side_b)
    return SignaturePair(b, a, side_b, side_a)


def span_in_characters(span: tuple[float, float], text: Signature) -> tuple[int, int]:
    """Convert a span of bytes to characters of average width, inside the text."""
    width = text.characters / text.n_bytes
    return round(max(0.0, span[0]) * width), round(min(span[1], text.n_bytes) * width)


def _side(signature: Signature, finer: int, coarser: int) -> Side:
    """Read the symbols of a signature at the coarser rate."""
    bits = compared_bits(signature, coarser.bit_length() - finer.bit_length())
    if not signature.ld or bits < 1:
        return Side(np.array(((signature.n_bytes,), (0,)), np.int64), signature.n_bytes, signature.characters, coarser)
    stored = signature.rate, signature.ld, signature.gaps
    return _cached_side(stored, coarser, bits, signature.n_bytes, signature.characters)


@lru_cache(maxsize=_CACHED_SIDES)
def _cached_side(stored: tuple[int, bytes, bytes], rate: int, bits: int, n_bytes: int, characters: int) -> Side:
    """Read an LD signature at a coarser rate.

    The result is cached, since an arriving signature is compared with each of its candidates.
    """
    seen = view(LdSignature(*stored), rate, bits)
    windows = np.empty((2, len(seen.symbols) + 1), np.int64)
    windows[0, :-1], windows[1, :-1], windows[:, -1] = seen.positions, seen.symbols, (n_bytes, 0)
    return Side(windows, n_bytes, characters, rate, rate // GAP_STEPS if stored[2] else 0)


def _is_short(text: Signature) -> bool:
    return text.n_bytes < MIN_SPACELESS_BYTES if text.spaceless else text.words < MIN_WORDS


def _shingle_count(text: Signature) -> int:
    """Return the number of places at which a shingle starts, which is at least that of the distinct shingles."""
    if text.spaceless:
        places = max(0, text.n_bytes - SPACELESS_SHINGLE_BYTES) * text.characters // text.n_bytes + 1
    else:
        places = text.words - (SHINGLE_WORDS - 1)
    return max(text.shingles, places)


def _rank(side: Side, signature: Signature) -> tuple[int, int, bytes]:
    return side.n_bytes, side.symbols, signature.digest
