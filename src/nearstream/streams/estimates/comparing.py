"""Comparing one text with others, which C does, and what documents are to each other by their names."""

from array import array
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import pairwise
from math import expm1
from operator import attrgetter
from typing import Protocol

from nearstream.schemas.documents.signature import Signature
from nearstream.streams.estimates.estimate import Estimate, unpack_estimates
from nearstream.streams.ingest.lineage import host_of
from nearstream.streams.native import PackedText, TextFields, native
from nearstream.streams.store.record import Comparable, Recorded

NO_TIE, ONE_LINEAGE, ONE_SITE = 0, 1, 2

_CACHED_HOSTS = 1024
# The fields of a signature in the order of `TextFields`.
fields_of = attrgetter(
    *("digest", "n_bytes", "characters", "words", "shingles", "spaceless", "sketch", "rate", "ld", "gaps")
)
_TINY = 1e-9  # bytes: avoids a division by 0 and changes no result
_COARSEST_RATE = 1 << 13  # used for texts of 16 MB
_FARTHEST_RATES = 38  # from this distance on, the growth no longer changes a single bit of a float
# Edits between unrelated English texts beyond the difference of their lengths, over the shorter length, by
# shorter / longer in steps of 1 / 256. Measured on texts of 250 to 8,000 characters.
_UNRELATED = (
    *((0.0, 0.0), (0.0625, 0.030), (0.125, 0.115), (0.25, 0.265), (0.35, 0.355), (0.5, 0.465)),
    *((0.65, 0.560), (0.8, 0.650), (0.9, 0.710), (1.0, 0.770)),
)
_RATIO_STEPS = 256


class Stated(Protocol):
    """The fields that identify the document of a state, as `Signature` describes them."""

    @property
    def collection(self) -> str:
        """The tenant."""

    @property
    def id(self) -> str:
        """The id of the document."""

    @property
    def lineage(self) -> str | None:
        """What successive states of one thing share."""


def same_lineage(a: Stated, b: Stated) -> bool:
    """Return whether both are states of one document or of one lineage."""
    if a.collection != b.collection:
        return False
    return a.id == b.id or (bool(a.lineage) and a.lineage == b.lineage)


def tie(a: Stated, b: Stated) -> int:
    """Return what two documents are to each other by their names, whatever their texts.

    Returns:
        `ONE_LINEAGE` if they are states of one document or lineage, `ONE_SITE` if their lineages are different URLs of
        one host, else `NO_TIE`.
    """
    if same_lineage(a, b):
        return ONE_LINEAGE
    one, other = a.lineage, b.lineage
    if one and other and a.collection == b.collection:
        host = _host_of(_start_of(one))
        if host and host == _host_of(_start_of(other)):
            return ONE_SITE
    return NO_TIE


def _start_of(url: str) -> str:
    """Return a URL up to the slash that ends its host."""
    return "/".join(url.split("/", 3)[:3])


@lru_cache(maxsize=_CACHED_HOSTS)
def _host_of(start: str) -> str:
    return host_of(start)


def refuse_incomparable(a: Signature, b: Signature) -> None:
    """Refuse signatures that have nothing to compare."""
    if a.scheme != b.scheme or a.collection != b.collection:
        raise ValueError(
            "two signatures of one scheme and one collection expected,"
            f" not of {a.scheme} in {a.collection} and {b.scheme} in {b.collection}"
        )
    if not (a.n_bytes and b.n_bytes):
        raise ValueError(f"normal forms of at least one byte expected, not of {a.n_bytes} and {b.n_bytes} bytes")


def compare(arriving: Signature, others: Sequence[Comparable]) -> bytes:
    """Compare a text with others of its collection and return the estimates, packed."""
    ties = bytes([tie(arriving, other) for other in others])
    return native.compare(fields_of(arriving), tuple(map(text_of, others)), ties, reach_table, unrelated_costs())


def estimate(a: Signature, b: Signature) -> Estimate:
    """Estimate all numbers about two texts.

    The order of the arguments does not matter. Whole signatures and those that an index keeps give equal numbers.
    """
    refuse_incomparable(a, b)
    return unpack_estimates(compare(a, [b]))[0]


def text_of(document: Comparable) -> TextFields | PackedText:
    """Return the text of a document, as C reads it."""
    if isinstance(document, Recorded):
        return document.text
    fields: TextFields = fields_of(document)
    return fields


def reach_table(rate: int) -> bytes:
    """Return the bytes from the next window to the expected end of a block.

    The table is float64, indexed by the bytes r from the last window of the block to the next window.

    The first difference lies after the last window of a block and before the end of the next sampled window, which is r
    bytes on. One in `rate` windows is sampled, and windows that differ are sampled in each text separately, so a
    difference x bytes on is as likely as exp(x / rate). On average it lies at r / (1 - exp(-r / rate)) - rate.
    """
    return _reach_table(min(rate, _COARSEST_RATE))


@cache
def _reach_table(rate: int) -> bytes:
    rooms = range(_FARTHEST_RATES * rate + 1)
    per_byte = -max(rate, 1)
    return array("d", ((r + _TINY) / -expm1((r + _TINY) / per_byte) - rate - r for r in rooms)).tobytes()


@cache
def unrelated_costs() -> bytes:
    """Return the costs of unrelated text by the ratio of two lengths, interpolated linearly, in float64."""
    costs = array("d")
    for step in range(_RATIO_STEPS + 1):
        ratio = step / _RATIO_STEPS
        (low, cost), (high, next_cost) = next(pair for pair in pairwise(_UNRELATED) if ratio <= pair[1][0])
        costs.append((next_cost - cost) / (high - low) * (ratio - low) + cost)
    return costs.tobytes()
