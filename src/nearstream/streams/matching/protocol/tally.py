"""Counts the keys that earlier states share with a document, and chooses the states to look at."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from struct import Struct

from nearstream.streams.native import native
from nearstream.streams.store.buckets import BUCKET, place_of, split
from nearstream.streams.store.limits import BAND_CAP, HEADS, LINEAGE_CAP, IndexLimits
from nearstream.streams.store.messages import ANCHOR, BAND, DIGEST, KEY_BYTES, LINEAGE
from nearstream.streams.store.registration import NUMBER_BYTES

UNIT = 100  # weight of an anchor that one earlier document has
BAND_ANCHORS = 4  # a shared band weighs as much as this many shared anchors
WEIGHT_MAX = 65_535
RARE_BELOW = 5  # a key is rare if fewer earlier documents have it
# Shared keys show more than common text if so many of them, and a quarter of them, are rare. One may be a date beside
# the frame of a page, and a few more the edges of that frame.
RARE_KEYS, RARE_PART = 2, 4
COPY_PERCENT = 70  # a document that shares this many of the anchors with another may be its copy
COMMON_READS = 8  # states that are looked at though they share only what many documents have
LOOKS = 128  # states that are looked at for one document, digest and lineage matches apart

ROW = Struct("<QHHHBB")  # number, weight, anchors, rare, bands, flags: how C returns what a state shares
_BY_DIGEST, _BY_LINEAGE, _IN_FULL_BUCKET = 1, 2, 4

Found = Sequence[tuple[bytes, bytes]]  # keys, and what their buckets held, as `Store.enter` returns it


@dataclass(slots=True)
class Shared:
    """The keys that an earlier state shares with an arriving document."""

    weight: int = 0  # sum of the weights of shared anchors and bands, at most `WEIGHT_MAX`
    anchors: int = 0  # number of shared anchor keys
    bands: int = 0  # number of shared band keys, at most 255
    rare: int = 0  # number of these that fewer than `RARE_BELOW` earlier states have
    by_digest: bool = False  # it shares the digest
    by_lineage: bool = False  # it shares the lineage
    in_full_bucket: bool = False  # a shared bucket was full

    @property
    def is_direct(self) -> bool:
        """Whether it shares the digest or the lineage."""
        return self.by_digest or self.by_lineage

    @property
    def shares_rare(self) -> bool:
        """Whether the shared keys show more than common text."""
        return self.rare >= RARE_KEYS and self.rare * RARE_PART >= self.bands + self.anchors

    def heir(self) -> "Shared":
        """Return these keys for who represents the family of the state."""
        return replace(self, by_digest=False, by_lineage=False)


@dataclass(slots=True)
class Shortlist:
    """The states that are worth a look."""

    # The shared keys by number of the earlier state, the best first.
    shared: dict[int, Shared] = field(default_factory=dict)
    full_buckets: int = 0  # number of buckets that were full
    is_cut: bool = False  # there are more


def shortlist(found: Found, own: int, anchors: int, limits: IndexLimits) -> Shortlist:
    """Return the states to look at, the best first.

    These are all digest and lineage matches, and up to `LOOKS` others by the weight of the shared keys. Of those that
    share only what many documents have, these are the first `COMMON_READS`.
    """
    numbers = (own, anchors, BAND_CAP, LINEAGE_CAP, limits.bucket_cap, *_CONSTANTS)
    packed, full_buckets, is_cut = native.shortlist(found, numbers)
    chosen = Shortlist(full_buckets=full_buckets, is_cut=bool(is_cut))
    for number, weight, shared_anchors, rare, bands, flags in ROW.iter_unpack(packed):
        chosen.shared[number] = Shared(
            weight,
            shared_anchors,
            bands,
            rare,
            bool(flags & _BY_DIGEST),
            bool(flags & _BY_LINEAGE),
            bool(flags & _IN_FULL_BUCKET),
        )
    return chosen


_CONSTANTS = (UNIT, BAND_ANCHORS, RARE_BELOW, RARE_KEYS, RARE_PART, COPY_PERCENT, LOOKS, COMMON_READS)


def is_telling(shared: Shared, anchors: int) -> bool:
    """Return whether two documents share rare keys, or `COPY_PERCENT` of the anchors of one of them.

    `anchors` is the number of anchors of that one.
    """
    return shared.shares_rare or 100 * shared.anchors >= COPY_PERCENT * anchors


def crowded_keys(found: Found, numbers: Collection[int], kinds: bytes) -> bytes:
    """Return keys whose buckets held at least `HEADS` entries, and at least two of these numbers."""
    if len(numbers) < 2:
        return b""
    some = frozenset(numbers)
    return b"".join(key for key, held in held_by(found, HEADS) if key[0] in kinds and len(some.intersection(held)) > 1)


def unseen(found: Found, family: Collection[int], anchor_cap: int) -> set[int]:
    """Return the states of all buckets that hold no member of a family.

    Later states in such a bucket may not have met the family. A full bucket may have dropped its members.
    """
    most = caps(anchor_cap)
    return {
        number
        for key, numbers in held_by(found)
        if len(numbers) < most[key[:1]] and not any(map(family.__contains__, numbers))
        for number in numbers
    }


def caps(anchor_cap: int) -> dict[bytes, int]:
    """Return how many numbers a bucket of each kind holds."""
    return {DIGEST: BAND_CAP, LINEAGE: LINEAGE_CAP, BAND: BAND_CAP, ANCHOR: anchor_cap}


def keys_without(keys: bytes, some: bytes) -> bytes:
    """Return keys without some of them."""
    left_out = frozenset(split(some))
    return b"".join([key for key in split(keys) if key not in left_out]) if some else keys


def without(found: Found, keys: bytes) -> list[tuple[bytes, bytes]]:
    """Return what buckets held, without some keys that are asked for again."""
    again = frozenset(split(keys))
    return [
        (each, b"".join(bucket for key, bucket in _buckets_of(each, reply) if key not in again))
        for each, reply in found
    ]


def keys_that_hold(found: Found, number: int, kinds: bytes) -> bytes:
    """Return the keys of some kinds whose buckets held a number."""
    wanted, held = number.to_bytes(NUMBER_BYTES, "big"), list[bytes]()
    for keys, reply in found:
        at, place = 0, reply.find(wanted)
        while at < len(reply) and place >= 0:
            index, count = BUCKET.unpack_from(reply, at)
            start, at = at + BUCKET.size, at + BUCKET.size + NUMBER_BYTES * count
            if place < at:
                key = keys[KEY_BYTES * index : KEY_BYTES * (index + 1)]
                is_whole = (place - start) % NUMBER_BYTES == 0 or place_of(wanted, reply[start:at]) >= 0
                if is_whole and key[0] in kinds:
                    held.append(key)
                place = reply.find(wanted, at)
    return b"".join(held)


def held_by(found: Found, least: int = 1) -> Iterator[tuple[bytes, list[int]]]:
    """Yield each key whose bucket held at least so many numbers, and these."""
    for keys, reply in found:
        for key, bucket in _buckets_of(keys, reply):
            starts = range(BUCKET.size, len(bucket), NUMBER_BYTES)
            if len(starts) >= least:
                yield key, [int.from_bytes(bucket[start : start + NUMBER_BYTES], "big") for start in starts]


def _buckets_of(keys: bytes, reply: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield each key whose bucket held numbers, and this bucket as the reply has it."""
    at = 0
    while at < len(reply):
        index, count = BUCKET.unpack_from(reply, at)
        end = at + BUCKET.size + NUMBER_BYTES * count
        yield keys[KEY_BYTES * index : KEY_BYTES * (index + 1)], reply[at:end]
        at = end
