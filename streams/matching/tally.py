"""Counting what the buckets of a document held: who shares how many keys with it."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from nearstream.streams.store.buckets import BUCKET
from nearstream.streams.store.limits import BAND_CAP, LINEAGE_CAP
from nearstream.streams.store.messages import ANCHOR, BAND, DIGEST, KEY_BYTES, LINEAGE
from nearstream.streams.store.registration import NUMBER_BYTES

UNIT = 100  # weight of an anchor that one earlier document has
BAND_ANCHORS = 4  # a shared band weighs as much as this many shared anchors
WEIGHT_MAX = 65_535
RARE_BELOW = 5  # a key is rare if fewer earlier documents have it
# Shared keys show more than common text if so many of them, and a quarter of them, are rare. One may be a date beside
# the frame of a page, and a few more the edges of that frame.
RARE_KEYS, RARE_PART = 2, 4

Found = Sequence[tuple[bytes, bytes]]  # keys, and what their buckets held, as `Store.enter` returns it


@dataclass(slots=True)
class Shared:
    """The keys that an earlier state shares with an arriving document.

    Attributes:
        weight: Sum of the weights of shared anchors and bands, at most `WEIGHT_MAX`.
        anchors: Number of shared anchor keys.
        bands: Number of shared band keys.
        rare: Number of these that fewer than `RARE_BELOW` earlier states have.
        by_digest: It shares the digest.
        by_lineage: It shares the lineage.
        in_full_bucket: A shared bucket was full.
    """

    weight: int = 0
    anchors: int = 0
    bands: int = 0
    rare: int = 0
    by_digest: bool = False
    by_lineage: bool = False
    in_full_bucket: bool = False

    @property
    def is_direct(self) -> bool:
        """Whether it shares the digest or the lineage."""
        return self.by_digest or self.by_lineage

    @property
    def shares_rare(self) -> bool:
        """Whether the shared keys show more than common text."""
        return self.rare >= max(RARE_KEYS, (self.bands + self.anchors) / RARE_PART)

    def heir(self) -> "Shared":
        """Return these keys for who represents the family of the state."""
        return replace(self, by_digest=False, by_lineage=False)


@dataclass(slots=True)
class Tally:
    """What the buckets of a document held.

    Attributes:
        shared: The shared keys by number of the earlier state.
        full_buckets: Number of buckets that were full.
        unseen: States in buckets that did not hold the document yet, so they may not have seen it.
    """

    shared: dict[int, Shared] = field(default_factory=dict)
    full_buckets: int = 0
    unseen: set[int] = field(default_factory=set)

    def ranked(self) -> list[int]:
        """Return all numbers, the best first.

        Digest and lineage matches come before the others. Both are sorted by weight, ties by number.
        """
        shared = self.shared
        return sorted(shared, key=lambda number: (not shared[number].is_direct, -shared[number].weight, number))


def weight(others: int) -> int:
    """Return the weight of a shared anchor.

    This is `UNIT` / sqrt(others), rounded down, because a rare anchor says more than a frequent one.

    Args:
        others: Number of earlier documents that have the anchor, at least 1.
    """
    return int(UNIT / math.sqrt(others))


def tally(found: Found, own: int, anchor_cap: int) -> Tally:
    """Count the shared keys of every earlier state.

    Args:
        found: The keys of a document, and what their buckets held.
        own: Its number.
        anchor_cap: Most entries of an anchor bucket.
    """
    caps = {DIGEST: BAND_CAP, LINEAGE: LINEAGE_CAP, BAND: BAND_CAP, ANCHOR: anchor_cap}
    counted = Tally()
    for key, numbers in _buckets(found):
        kind, others = key[:1], [number for number in numbers if number != own]
        if len(others) == len(numbers):
            counted.unseen.update(others)
        is_full = len(others) >= caps[kind]
        counted.full_buckets += is_full
        for number in others:
            shared = counted.shared.setdefault(number, Shared())
            shared.in_full_bucket |= is_full
            if kind == DIGEST:
                shared.by_digest = True
            elif kind == LINEAGE:
                shared.by_lineage = True
            else:
                _count(shared, kind, len(others))
    return counted


def _count(shared: Shared, kind: bytes, others: int) -> None:
    shared.rare += others < RARE_BELOW
    if kind == BAND:
        shared.bands += 1
    else:
        shared.anchors += 1
    shared.weight = min(shared.weight + (BAND_ANCHORS if kind == BAND else 1) * weight(others), WEIGHT_MAX)


def keys_that_hold(found: Found, number: int, own: int, kinds: bytes) -> tuple[bytes, bytes]:
    """Return the keys whose buckets held a number: those that held the document too, and those that did not.

    Args:
        found: The keys of a document, and what their buckets held.
        number: The number.
        own: Number of the document.
        kinds: Letters of the kinds of keys that are wanted.
    """
    both: list[bytes] = []
    one: list[bytes] = []
    for key, numbers in _buckets(found):
        if key[0] in kinds and number in numbers:
            (both if own in numbers else one).append(key)
    return b"".join(both), b"".join(one)


def _buckets(found: Found) -> Iterator[tuple[bytes, list[int]]]:
    for keys, reply in found:
        at = 0
        while at < len(reply):
            index, count = BUCKET.unpack_from(reply, at)
            at += BUCKET.size
            end = at + NUMBER_BYTES * count
            numbers = [
                int.from_bytes(reply[start : start + NUMBER_BYTES], "big") for start in range(at, end, NUMBER_BYTES)
            ]
            yield keys[KEY_BYTES * index : KEY_BYTES * (index + 1)], numbers
            at = end
