"""Sketch of a set of features: its minima, by which two sets are compared."""

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from schemas.signature import Signature
from streams.hashing import constant, fmix64
from streams.rules import KEPT_SLOT_BITS, SketchRules
from streams.runs import starts_run

_SLOTS = 128
_VALUE_BITS = 49
_SLOT_SHIFT, _SPARE_BITS = constant(57), constant(8)
_BELOW_SLOT = constant((1 << 57) - 1)
_EMPTY = constant((1 << 64) - 1)
_EDGES = np.arange(_SLOTS, dtype=np.uint64) << _SLOT_SHIFT
# What is added to the features in each round.
_STEPS = np.arange(2 * _SLOTS, dtype=np.uint64)[:, None] * constant(0x9E3779B97F4A7C15)
# About so many throws at once, which mostly fill all slots.
_THROWS = 8 * _SLOTS
_LITTLE_ENDIAN = np.dtype("<u8")
_CHANCE = 2.0**-KEPT_SLOT_BITS
_KEPT_BYTES = _SLOTS * KEPT_SLOT_BITS // 8
NONE = np.empty(0, dtype=np.uint64)


def sketch(features: NDArray[np.uint64], rules: SketchRules) -> bytes:
    """128 slots, little-endian; all ones if there are no features.

    Fast similarity sketching (Dahlgaard, Knudsen, Thorup, FOCS 2017): in each round every feature throws
    a value into one slot, at random in the first 128 rounds, into the next slot in order in the 128 rounds after
    these. A slot keeps its smallest value, which always comes from its earliest round; rounds go on until no slot is
    empty, and more of them change nothing.

    Args:
        features: Feature hashes, ascending, each once.
        rules: Bits of a slot.
    """
    return sketches([features], rules)[0] if features.size else b"\xff" * (_SLOTS * rules.bits // 8)


def sketches(rows: Sequence[NDArray[np.uint64]], rules: SketchRules) -> list[bytes]:
    """The same of several sets, none of them empty, which are worked on as one."""
    slots = _fill(rows).reshape(-1, _SLOTS)
    slots |= _EDGES
    mixed = fmix64(slots).astype(_LITTLE_ENDIAN, copy=False)
    packed = mixed.view(np.uint8).reshape(-1, 8)[:, 4 : 4 + rules.bits // 8].tobytes()
    size = _SLOTS * rules.bits // 8
    return [packed[start : start + size] for start in range(0, len(packed), size)]


def resemblance(a: Signature, b: Signature) -> float:
    """Estimated share of common shingles |A and B| / |A or B|, in [0, 1]; sd .037 at .8.

    Reads 4 bits of each slot on both sides, whole signatures and those kept by an index alike: b-bit minwise hashing
    (Li and Koenig, WWW 2010), corrected for slots that agree by chance. Texts with and without spaces share no
    shingle.
    """
    if a.spaceless != b.spaceless:
        return 0.0
    one, other = a.sketch, b.sketch
    if len(one) != len(other):
        one, other = kept_sketch(one), kept_sketch(other)
    # The lowest bit of each slot tells whether any of its four does.
    differing = int.from_bytes(one, "little") ^ int.from_bytes(other, "little")
    differing |= differing >> 1
    differing |= differing >> 2
    equal = 1 - (differing & _lowest_bits(len(one))).bit_count() / _SLOTS
    return max(0.0, (equal - _CHANCE) / (1.0 - _CHANCE))


def kept_sketch(sketch: bytes) -> bytes:
    """The low 4 bits of each slot, of slots of any width, two in a byte."""
    if len(sketch) == _KEPT_BYTES:
        return sketch
    slots = np.frombuffer(sketch, dtype=np.uint8)[:: len(sketch) // _SLOTS] & 15
    return (slots[::2] | slots[1::2] << 4).tobytes()


@cache
def _lowest_bits(size: int) -> int:
    """The lowest bit of each slot in a sketch of so many bytes."""
    return ((1 << 8 * size) - 1) // ((1 << 8 * size // _SLOTS) - 1)


def _fill(rows: Sequence[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    """The smallest value of each slot, 128 for each row; the round stands above its 49 low bits."""
    features = np.concatenate(rows)
    # Where the slots of each feature's row begin.
    edges = np.arange(0, len(rows) * _SLOTS, _SLOTS).repeat([row.size for row in rows])
    slots = np.full(len(rows) * _SLOTS, _EMPTY)
    _throw_first(features, edges, slots)
    done = 1
    while done < _SLOTS:
        empty = slots == _EMPTY
        if not np.count_nonzero(empty):
            return slots
        lacking = empty.reshape(-1, _SLOTS).any(axis=1)
        left = int(np.count_nonzero(lacking))
        if left < lacking.size:
            throwing = lacking.take(edges // _SLOTS)
            features, edges = features[throwing], edges[throwing]
        stop = min(_SLOTS, done + max(1, left * _THROWS // features.size))
        _throw(features, edges, range(done, stop), slots, empty)
        done = stop
    for row, own in zip(rows, slots.reshape(-1, _SLOTS), strict=True):
        _throw_in_order(row, own)
    return slots


def _throw_first(features: NDArray[np.uint64], edges: NDArray[np.int64], slots: NDArray[np.uint64]) -> None:
    """Ascending features are grouped by their top bits, the slot of the first round, smallest value first."""
    places = (features >> _SLOT_SHIFT).view(np.int64)
    places += edges
    first = starts_run(places).nonzero()[0]
    slots[places.take(first)] = _values(features.take(first))


def _throw(
    features: NDArray[np.uint64],
    edges: NDArray[np.int64],
    rounds: range,
    slots: NDArray[np.uint64],
    empty: NDArray[np.bool_],
) -> None:
    """Rounds at random; only throws into empty slots count, for values of earlier rounds are smaller."""
    # One dimension: numpy finds and takes elements three times as fast as in two.
    mixed = fmix64((features + _STEPS[rounds.start : rounds.stop]).ravel())
    places = ((mixed >> _SLOT_SHIFT).view(np.int64).reshape(len(rounds), -1) + edges).ravel()
    counted = empty.take(places).nonzero()[0]
    values = _values(mixed.take(counted))
    values |= (counted // features.size + rounds.start << _VALUE_BITS).view(np.uint64)
    np.minimum.at(slots, places.take(counted), values)


def _throw_in_order(features: NDArray[np.uint64], slots: NDArray[np.uint64]) -> None:
    """The last 128 rounds, each of which throws everything into one slot: only those of empty slots count."""
    places = (slots == _EMPTY).nonzero()[0]
    if places.size:
        values = _values(fmix64(features + _STEPS[places + _SLOTS])).min(axis=1)
        slots[places] = values | (places + _SLOTS << _VALUE_BITS).view(np.uint64)


def _values(mixed: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The 49 bits below the slot's number."""
    values: NDArray[np.uint64] = (mixed & _BELOW_SLOT) >> _SPARE_BITS
    return values
