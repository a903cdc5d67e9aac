"""Two signatures in an order of their own, seen at their common rate."""

from dataclasses import dataclass

import numpy as np

from schemas.signature import Signature
from streams.alignment import Side
from streams.ld import view

_SYMBOL_BITS = 19
_COMPACT_SYMBOL_BITS = 16


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
    def is_equal(self) -> bool:
        """Whether both have the same normal form."""
        return self.shorter.digest == self.longer.digest

    @property
    def length_ratio(self) -> float:
        """Bytes of the shorter over bytes of the longer."""
        return self.shorter.n_bytes / self.longer.n_bytes


def pair(a: Signature, b: Signature) -> Pair:
    """Both signatures with their symbols at the coarser rate, whichever is named first.

    Raises:
        ValueError: Two schemes or two collections, or an empty normal form.
    """
    if (a.scheme, a.collection) != (b.scheme, b.collection):
        raise ValueError("signatures of one scheme and one collection expected")
    if not (a.n_bytes and b.n_bytes):
        raise ValueError("normal forms that are not empty expected")
    rates = sorted((a.rate, b.rate))
    first, second = sorted(((_side(signature, *rates), signature) for signature in (a, b)), key=_rank)
    return Pair(first[1], second[1], first[0], second[0])


def same_lineage(a: Signature, b: Signature) -> bool:
    """Whether both are states of one thing: of one document, or of one lineage."""
    if a.collection != b.collection:
        return False
    return a.id == b.id or (bool(a.lineage) and a.lineage == b.lineage)


def _side(signature: Signature, finer: int, coarser: int) -> Side:
    """Symbols at the coarser rate; each doubling of the finer one costs both texts a bit of every symbol."""
    width = _COMPACT_SYMBOL_BITS if signature.gaps else _SYMBOL_BITS
    bits = width - (coarser.bit_length() - finer.bit_length())
    if not signature.ld or bits < 1:
        return Side(np.zeros(0, np.uint32), np.zeros(0, np.int64), signature.n_bytes, signature.characters)
    seen = view(signature, coarser, bits)
    return Side(seen.symbols, seen.positions, signature.n_bytes, signature.characters)


def _rank(seen: tuple[Side, Signature]) -> tuple[int, int, bytes]:
    side, signature = seen
    return side.n_bytes, len(side.symbols), signature.digest
