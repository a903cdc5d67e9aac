"""Two signatures in an order of their own, seen at their common rate."""

import struct
from dataclasses import dataclass
from functools import lru_cache
from math import ceil

import numpy as np

from schemas.signature import Signature
from streams.alignment import Side
from streams.ld import LdSignature, compared_bits, view

_GAP_STEPS = 8
_SHINGLE_WORDS = 5
_SPACELESS_SHINGLE_BYTES = 12
_GATE_SYMBOLS = 4
_GATE_SHARE = 0.04
_GATE_RATIO = 0.9  # among scattered noise few windows survive
_SEEN_MAX = 128  # at most 10 MB


@dataclass(frozen=True)
class Pair:
    """Two texts, the shorter first: by bytes of the normal form, then by symbols, then by digest.

    An alignment is not unique, so that numbers would depend on arrival if the order did.
    """

    shorter: Signature
    longer: Signature
    shorter_side: Side
    longer_side: Side

    @property
    def rate(self) -> int:
        """Bytes per LD symbol, on average, of the coarser signature; 0 without LD signatures."""
        return max(self.shorter.rate, self.longer.rate)

    @property
    def lead(self) -> float:
        """Bytes of a shingle before its last word, or before its last character where no spaces part the words."""
        shorter, longer = self.shorter, self.longer
        n_bytes = shorter.n_bytes + longer.n_bytes
        if shorter.spaceless or longer.spaceless:
            return max(0.0, _SPACELESS_SHINGLE_BYTES - n_bytes / max(1, shorter.characters + longer.characters))
        return (_SHINGLE_WORDS - 1) * n_bytes / max(1, shorter.words + longer.words)

    @property
    def is_equal(self) -> bool:
        """Whether both have the same normal form."""
        return self.shorter.digest == self.longer.digest

    @property
    def length_ratio(self) -> float:
        """Fewer over more words, or bytes where no spaces part the words."""
        if self.shorter.spaceless or self.longer.spaceless:
            return self.shorter.n_bytes / self.longer.n_bytes
        fewer, more = sorted((self.shorter.words, self.longer.words))
        return fewer / max(1, more)

    @property
    def fewer_words(self) -> int:
        """Words of the text that has fewer of them; shingles, where no spaces part the words."""
        if self.shorter.spaceless or self.longer.spaceless:
            return min(self.shorter.shingles, self.longer.shingles)
        return min(self.shorter.words, self.longer.words)

    @property
    def least_common(self) -> int:
        """With fewer common symbols no rule can find a relation: nothing more is worth its time."""
        if self.is_equal or same_lineage(self.shorter, self.longer):
            return 0
        if self.shorter.n_bytes >= _GATE_RATIO * self.longer.n_bytes:
            return _GATE_SYMBOLS
        return max(_GATE_SYMBOLS, ceil(_GATE_SHARE * min(self.shorter_side.symbols, self.longer_side.symbols)))

    def characters(self, *distances: float) -> list[float]:
        """Distances in characters: the difference of lengths is known, the rest is as wide as characters are here."""
        shorter, longer = self.shorter, self.longer
        width = (shorter.characters + longer.characters) / (shorter.n_bytes + longer.n_bytes)
        known, least = abs(longer.characters - shorter.characters), longer.n_bytes - shorter.n_bytes
        return [max(0.0, known + (distance - least) * width) for distance in distances]


def pair(a: Signature, b: Signature) -> Pair:
    """Both signatures with their symbols at the coarser rate, whichever is named first.

    Raises:
        ValueError: Two schemes or two collections, or an empty normal form.
    """
    if (a.scheme, a.collection) != (b.scheme, b.collection):
        raise ValueError("signatures of one scheme and one collection expected")
    if not (a.n_bytes and b.n_bytes):
        raise ValueError("normal forms that are not empty expected")
    finer, coarser = min(a.rate, b.rate), max(a.rate, b.rate)
    one, other = _side(a, finer, coarser), _side(b, finer, coarser)
    if _rank(one, a) <= _rank(other, b):
        return Pair(a, b, one, other)
    return Pair(b, a, other, one)


def characters(span: tuple[float, float], text: Signature) -> tuple[int, int]:
    """A span of bytes in characters of average width, inside the text."""
    width = text.characters / text.n_bytes
    return round(max(0.0, span[0]) * width), round(min(span[1], text.n_bytes) * width)


def same_lineage(a: Signature, b: Signature) -> bool:
    """Whether both are states of one thing: of one document, or of one lineage."""
    if a.collection != b.collection:
        return False
    return a.id == b.id or (bool(a.lineage) and a.lineage == b.lineage)


def _side(signature: Signature, finer: int, coarser: int) -> Side:
    """Symbols at the coarser rate."""
    bits = compared_bits(signature, coarser.bit_length() - finer.bit_length())
    if not signature.ld or bits < 1:
        return Side(struct.pack("=qq", signature.n_bytes, 0), signature.n_bytes, signature.characters, coarser)
    stored = signature.rate, signature.ld, signature.gaps
    return _seen(stored, coarser, bits, signature.n_bytes, signature.characters)


@lru_cache(maxsize=_SEEN_MAX)
def _seen(stored: tuple[int, bytes, bytes], rate: int, bits: int, n_bytes: int, characters: int) -> Side:
    """The view of a signature: kept for a while, since an arriving one is compared with each of its candidates."""
    seen = view(LdSignature(*stored), rate, bits)
    windows = np.empty((2, len(seen.symbols) + 1), np.int64)
    windows[0, :-1], windows[1, :-1], windows[:, -1] = seen.positions, seen.symbols, (n_bytes, 0)
    return Side(windows.tobytes(), n_bytes, characters, rate, rate // _GAP_STEPS if stored[2] else 0)


def _rank(side: Side, signature: Signature) -> tuple[int, int, bytes]:
    return side.n_bytes, side.symbols, signature.digest
