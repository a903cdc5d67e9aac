"""Covering: the parts of an arriving text that an earlier text contains, from both LD signatures.

Text counts as had from a run of eight words on, because shorter ones come by chance. native/estimates/covering.h is the
twin of the comparison.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from struct import Struct

from nearstream.schemas.documents.signature import Signature
from nearstream.streams.estimates.alignment import align, reach_table
from nearstream.streams.estimates.comparing import fields_of, text_of
from nearstream.streams.estimates.pair import pair
from nearstream.streams.native import fastest, native
from nearstream.streams.store.record import Comparable, signature_of

_LEADS = 2.0  # the least length of a block, in times of four words
_ROUNDS = 8  # text that comes in another order or several times is found by aligning what is left

_SPAN = Struct("=2d")
_RATE = Struct("=q")


@dataclass(frozen=True)
class Cover:
    """What an earlier text has of an arriving one.

    Attributes:
        spans: Common text as `[start, end)` in bytes of the arriving normal form, in any order.
        rate: Bytes per symbol, which is how exactly each end is known.
    """

    spans: tuple[tuple[float, float], ...]
    rate: int


def cover_numpy(arriving: Signature, others: Sequence[Comparable]) -> list[Cover]:
    """Return the parts of a text that each earlier text contains, without C."""
    return [_cover(arriving, signature_of(other)) for other in others]


def cover_native(arriving: Signature, others: Sequence[Comparable]) -> list[Cover]:
    """Return the parts of a text that each earlier text contains, in one call of C."""
    found = []
    for packed in native.cover(fields_of(arriving), tuple(map(text_of, others)), reach_table):
        (rate,) = _RATE.unpack_from(packed)
        found.append(Cover(tuple(_SPAN.iter_unpack(packed[_RATE.size :])), rate))
    return found


cover = fastest(cover_native, cover_numpy)


def union(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return spans that do not touch, in order."""
    found: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def _cover(arriving: Signature, other: Signature) -> Cover:
    both = pair(arriving, other)
    if both.is_equal:
        return Cover(((0.0, float(arriving.n_bytes)),), both.rate)
    own = 0 if both.shorter is arriving else 1
    alignment = align(both.shorter_side, both.longer_side)
    least, end = _LEADS * both.lead, float(arriving.n_bytes)
    spans: list[tuple[float, float]] = []
    for _ in range(_ROUNDS):
        long = [block for block in alignment.blocks if block.length >= least]
        found = [(max(0.0, block[own]), min(end, block[2 + own])) for block in long]
        spans += found
        if not found:
            break
        side, matched = (alignment.shorter, alignment.longer)[own], alignment.matched[own, 1:-1]
        left = side.without(matched)
        alignment = align(alignment.shorter, left) if own else align(left, alignment.longer)
    return Cover(tuple(spans), both.rate)
