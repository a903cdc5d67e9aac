"""Covering: the parts of an arriving text that an earlier text contains, from both LD signatures.

Text counts as had from a run of eight words on, because shorter ones come by chance.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from struct import Struct

from nearstream.schemas.documents.signature import Signature
from nearstream.streams.estimates.comparing import fields_of, reach_table, text_of
from nearstream.streams.native import native
from nearstream.streams.store.record import Comparable

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


def cover(arriving: Signature, others: Sequence[Comparable]) -> list[Cover]:
    """Return the parts of a text that each earlier text contains."""
    found = []
    for packed in native.cover(fields_of(arriving), tuple(map(text_of, others)), reach_table):
        (rate,) = _RATE.unpack_from(packed)
        found.append(Cover(tuple(_SPAN.iter_unpack(packed[_RATE.size :])), rate))
    return found


def union(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return spans that do not touch, in order."""
    found: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found
