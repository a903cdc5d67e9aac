"""Where the common text of documents lies: passages, and the parts of a text that earlier texts have."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import NamedTuple, TypeVar

from nearstream.schemas.documents.signature import Signature
from nearstream.streams.estimates.comparing import fields_of, reach_table, refuse_incomparable, same_lineage, text_of
from nearstream.streams.fingerprints.parameters import LD_WINDOW_BYTES
from nearstream.streams.native import native
from nearstream.streams.store.record import Comparable

PASSAGES_MAX = 16
PLACES = Struct("=4q")
_SPAN = Struct("=2d")
_RATE = Struct("=q")
T = TypeVar("T", bound=tuple[object, ...])


class Passage(NamedTuple):
    """Common text as `[start, end)` in characters of both normal forms.

    The common text may extend beyond both ends.
    """

    shorter: tuple[int, int]
    longer: tuple[int, int]

    @property
    def length(self) -> int:
        """Return the number of characters in both texts together."""
        return self.shorter[1] - self.shorter[0] + self.longer[1] - self.longer[0]


@dataclass(frozen=True)
class CommonText:
    """Where the common text of two documents lies."""

    in_order: tuple[Passage, ...]  # all passages that both texts have in one order, in the order of the text
    # The passages in another order. What the alignment leaves over is aligned again, up to four times. Each time
    # another set of passages is found in order.
    moved: tuple[Passage, ...]
    segment: Passage | None  # where the best segment is expected to lie, None without a match
    # Where symbols are lost or one text has grown, as exactly as common windows show it. If that is nowhere, all places
    # without a common window, since a change has to be in one of them. A span may be empty or end before it starts
    # where a text has nothing.
    changes: tuple[Passage, ...]


def common_text(a: Signature, b: Signature) -> CommonText:
    """Return where the common text of two documents lies. The order of the arguments does not matter."""
    refuse_incomparable(a, b)
    found = native.common_text(fields_of(a), fields_of(b), same_lineage(a, b), reach_table)
    in_order, moved, segment, changes = (
        tuple([Passage((start, end), (start_longer, end_longer)) for start, end, start_longer, end_longer in numbers])
        for numbers in map(PLACES.iter_unpack, found)
    )
    return CommonText(in_order, moved, segment[0] if segment else None, changes)


def uncovered(covered: Iterable[tuple[int, int]], characters: int, least: int) -> list[tuple[int, int]]:
    """Return the spans outside the passages of a text, of at least some characters. Passages come in any order."""
    position, found = 0, []
    for start, end in (*sorted(covered), (characters, characters)):
        if start - position >= min(least, characters):
            found.append((position, start))
        position = max(position, end)
    return found


def changed(of_one: Iterable[tuple[int, int]], of_other: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return which changes leave something in one text, from their spans in both.

    Where a text is shorter by a window or more, text was probably only cut out. Such places count if there is no other.
    """
    both = [(own, other) for own, other in zip(of_one, of_other, strict=True) if own[1] > own[0]]
    grown = [own for own, other in both if own[1] - own[0] > other[1] - other[0] - LD_WINDOW_BYTES]
    return grown or [own for own, _ in both]


def longest(found: Sequence[T], length: Callable[[T], int]) -> tuple[tuple[T, ...], int]:
    """Return the 16 longest spans or passages, in order, and the number of those left out."""
    kept = sorted(sorted(found, key=length, reverse=True)[:PASSAGES_MAX])
    return tuple(kept), len(found) - len(kept)


@dataclass(frozen=True)
class Cover:
    """What an earlier text has of an arriving one."""

    # Common text as `[start, end)` in bytes of the arriving normal form, in any order.
    spans: tuple[tuple[float, float], ...]
    rate: int  # bytes per symbol, which is how exactly each end is known


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
