"""The keys that earlier states share with a document, counted in Python."""

import math

from nearstream.streams.matching.protocol.tally import (
    BAND_ANCHORS,
    COMMON_READS,
    LOOKS,
    RARE_BELOW,
    UNIT,
    WEIGHT_MAX,
    Found,
    Shared,
    Shortlist,
    caps,
    held_by,
    is_telling,
)
from nearstream.streams.store.limits import IndexLimits
from nearstream.streams.store.messages import BAND, DIGEST, LINEAGE


def shortlist(found: Found, own: int, anchors: int, limits: IndexLimits) -> Shortlist:
    """Return the states to look at, the best first.

    These are all digest and lineage matches, and up to `LOOKS` others by the weight of the shared keys. Of those that
    share only what many documents have, these are the first `COMMON_READS`.
    """
    counted = _counted(found, own, limits)
    chosen = Shortlist(full_buckets=counted.full_buckets)
    others = common = 0
    shared = counted.shared
    for number in sorted(shared, key=lambda each: (not shared[each].is_direct, -shared[each].weight, each)):
        if not shared[number].is_direct:
            is_common = not is_telling(shared[number], anchors)
            if is_common and common == COMMON_READS:
                continue
            if others == LOOKS:
                chosen.is_cut = True
                break
            common += is_common
            others += 1
        chosen.shared[number] = shared[number]
    return chosen


def weight(others: int) -> int:
    """Return the weight of a shared anchor.

    This is `UNIT` / sqrt(others), rounded down, because a rare anchor says more than a frequent one.
    """
    return int(UNIT / math.sqrt(others))


def _counted(found: Found, own: int, limits: IndexLimits) -> Shortlist:
    """Count the shared keys of every earlier state, in no order.

    A full digest bucket hides nobody, because equal texts are one family.
    """
    most = caps(limits.bucket_cap)
    counted = Shortlist()
    for key, numbers in held_by(found):
        kind, others = key[:1], [number for number in numbers if number != own]
        is_full = len(others) >= most[kind] and kind != DIGEST
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
        shared.bands = min(shared.bands + 1, 0xFF)
    else:
        shared.anchors += 1
    shared.weight = min(shared.weight + (BAND_ANCHORS if kind == BAND else 1) * weight(others), WEIGHT_MAX)
