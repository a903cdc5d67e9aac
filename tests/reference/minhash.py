"""Sketches of which an index keeps 4 bits of each slot."""

import numpy as np

from nearstream.schemas.documents.signature import Signature
from nearstream.streams.fingerprints.parameters import KEPT_SLOT_BITS, SLOTS

_CHANCE = 2.0**-KEPT_SLOT_BITS


def resemblance(a: Signature, b: Signature) -> float:
    """Estimate the resemblance of two texts from the low 4 bits of the slots of their sketches."""
    if a.spaceless != b.spaceless:
        return 0.0
    one, other = (np.frombuffer(kept_sketch(each.sketch), np.uint8) for each in (a, b))
    differing = one ^ other
    equal = 1 - int(np.count_nonzero(differing & 15) + np.count_nonzero(differing >> 4)) / SLOTS
    return max(0.0, (equal - _CHANCE) / (1.0 - _CHANCE))


def kept_sketch(sketch: bytes) -> bytes:
    """Return the low 4 bits of each slot, two slots per byte."""
    if len(sketch) == SLOTS * KEPT_SLOT_BITS // 8:
        return sketch
    slots = np.frombuffer(sketch, dtype=np.uint8)[:: len(sketch) // SLOTS] & 15
    return (slots[::2] | slots[1::2] << 4).tobytes()
