"""Sketches of sets: minima by which two sets are compared (MinHash)."""

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from nearstream.schemas.documents.signature import Signature
from nearstream.streams.fingerprints.parameters import KEPT_SLOT_BITS, SLOTS, SketchRules
from tests.reference.polynomials import constant, fmix64
from tests.reference.ragged import starts_run

_VALUE_BITS = 49
_SLOT_SHIFT, _SPARE_BITS = constant(57), constant(8)
_BELOW_SLOT = constant((1 << 57) - 1)
_EMPTY = constant((1 << 64) - 1)
_EDGES = np.arange(SLOTS, dtype=np.uint64) << _SLOT_SHIFT
# Added to the features in each round.
_STEPS = np.arange(2 * SLOTS, dtype=np.uint64)[:, None] * constant(0x9E3779B97F4A7C15)
# About this many throws are computed at once, which usually fill all slots.
_THROWS = 8 * SLOTS
_LITTLE_ENDIAN = np.dtype("<u8")
_CHANCE = 2.0**-KEPT_SLOT_BITS
_KEPT_BYTES = SLOTS * KEPT_SLOT_BITS // 8
NONE = np.empty(0, dtype=np.uint64)


def sketch(features: NDArray[np.uint64], rules: SketchRules) -> bytes:
    """Return the sketch of a set of features: 128 slots, little-endian.

    All bits are ones if there are no features.

    This is fast similarity sketching (Dahlgaard, Knudsen, Thorup, FOCS 2017). In each round, every feature throws a
    value into one slot. In the first 128 rounds the slot is random. In the next 128 rounds all features throw into the
    first slot, then all into the second, and so on. A slot keeps its smallest value, which always comes from the
    earliest round that reached the slot. The rounds end when no slot is empty, because more would change nothing.

    Args:
        features: Distinct feature hashes in ascending order.
        rules: Bits of a slot.
    """
    return sketches([features], rules)[0] if features.size else b"\xff" * (SLOTS * rules.bits // 8)


def sketches(rows: Sequence[NDArray[np.uint64]], rules: SketchRules) -> list[bytes]:
    """Return the sketch of each set of features.

    numpy works on all sets at once, which is faster for small ones.

    Args:
        rows: Sets of features, none of them empty. Each has distinct feature hashes in ascending order.
        rules: Bits of a slot.
    """
    slots = _fill(rows).reshape(-1, SLOTS)
    slots |= _EDGES
    mixed = fmix64(slots).astype(_LITTLE_ENDIAN, copy=False)
    packed = mixed.view(np.uint8).reshape(-1, 8)[:, 4 : 4 + rules.bits // 8].tobytes()
    size = SLOTS * rules.bits // 8
    return [packed[start : start + size] for start in range(0, len(packed), size)]


def resemblance(a: Signature, b: Signature) -> float:
    """Estimate the resemblance of two texts from their sketches.

    It is |A and B| / |A or B| of their sets of shingles, in [0, 1]. The standard deviation at .8 is .037. Only 4 bits
    of each slot are compared, because an index keeps no more, so the result does not depend on which signature comes
    from an index. This is b-bit minwise hashing (Li and Koenig, WWW 2010), corrected for slots that agree by chance.
    Texts with and without spaces have no common shingles.
    """
    if a.spaceless != b.spaceless:
        return 0.0
    one, other = a.sketch, b.sketch
    if len(one) != len(other):
        one, other = kept_sketch(one), kept_sketch(other)
    # Collect in the lowest bit of each slot whether any of its bits differs.
    differing = int.from_bytes(one, "little") ^ int.from_bytes(other, "little")
    differing |= differing >> 1
    differing |= differing >> 2
    equal = 1 - (differing & _lowest_bits(len(one))).bit_count() / SLOTS
    return max(0.0, (equal - _CHANCE) / (1.0 - _CHANCE))


def kept_sketch(sketch: bytes) -> bytes:
    """Return the low 4 bits of each slot, two slots per byte.

    Args:
        sketch: A sketch with slots of any width, also one that was reduced to 4 bits before.
    """
    if len(sketch) == _KEPT_BYTES:
        return sketch
    slots = np.frombuffer(sketch, dtype=np.uint8)[:: len(sketch) // SLOTS] & 15
    return (slots[::2] | slots[1::2] << 4).tobytes()


@cache
def _lowest_bits(size: int) -> int:
    """Return a mask for the lowest bit of each slot.

    Args:
        size: Bytes of the sketch.
    """
    return ((1 << 8 * size) - 1) // ((1 << 8 * size // SLOTS) - 1)


def _fill(rows: Sequence[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    """Return the smallest value of each slot, 128 for each row.

    The low 49 bits are the value thrown, the bits above are the round.
    """
    features = np.concatenate(rows)
    # Index of the first slot of each feature's row.
    edges = np.arange(0, len(rows) * SLOTS, SLOTS).repeat([row.size for row in rows])
    slots = np.full(len(rows) * SLOTS, _EMPTY)
    _throw_first(features, edges, slots)
    done = 1
    while done < SLOTS:
        empty = slots == _EMPTY
        if not np.count_nonzero(empty):
            return slots
        lacking = empty.reshape(-1, SLOTS).any(axis=1)
        left = int(np.count_nonzero(lacking))
        if left < lacking.size:
            throwing = lacking.take(edges // SLOTS)
            features, edges = features[throwing], edges[throwing]
        stop = min(SLOTS, done + max(1, left * _THROWS // features.size))
        _throw(features, edges, range(done, stop), slots, empty)
        done = stop
    for row, own in zip(rows, slots.reshape(-1, SLOTS), strict=True):
        _throw_in_order(row, own)
    return slots


def _throw_first(features: NDArray[np.uint64], edges: NDArray[np.int64], slots: NDArray[np.uint64]) -> None:
    """Throw the features of the first round.

    The slot is in the top bits of a feature, so ascending features are grouped by slot, and the first feature of a
    group has its smallest value.
    """
    indices = (features >> _SLOT_SHIFT).view(np.int64)
    indices += edges
    first = starts_run(indices).nonzero()[0]
    slots[indices.take(first)] = _values(features.take(first))


def _throw(
    features: NDArray[np.uint64],
    edges: NDArray[np.int64],
    rounds: range,
    slots: NDArray[np.uint64],
    empty: NDArray[np.bool_],
) -> None:
    """Throw the features of some random rounds.

    Only throws into empty slots count, because the values of earlier rounds are smaller.
    """
    # In one dimension numpy finds and takes elements three times as fast as in two.
    mixed = fmix64((features + _STEPS[rounds.start : rounds.stop]).ravel())
    indices = ((mixed >> _SLOT_SHIFT).view(np.int64).reshape(len(rounds), -1) + edges).ravel()
    counted = empty.take(indices).nonzero()[0]
    values = _values(mixed.take(counted))
    values |= (counted // features.size + rounds.start << _VALUE_BITS).view(np.uint64)
    np.minimum.at(slots, indices.take(counted), values)


def _throw_in_order(features: NDArray[np.uint64], slots: NDArray[np.uint64]) -> None:
    """Throw the features of the last 128 rounds.

    Each of these rounds fills one slot. Only the rounds of empty slots count.
    """
    indices = (slots == _EMPTY).nonzero()[0]
    if indices.size:
        values = _values(fmix64(features + _STEPS[indices + SLOTS])).min(axis=1)
        slots[indices] = values | (indices + SLOTS << _VALUE_BITS).view(np.uint64)


def _values(mixed: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the 49 bits below those that give the slot."""
    values: NDArray[np.uint64] = (mixed & _BELOW_SLOT) >> _SPARE_BITS
    return values
