"""The parts of an arriving text that an earlier text contains, found in Python."""

from nearstream.schemas.documents.signature import Signature
from nearstream.streams.estimates.passages import Cover
from tests.reference.alignment import align
from tests.reference.pair import pair

_LEADS = 2.0  # the least length of a block, in times of four words
_ROUNDS = 8  # text that comes in another order or several times is found by aligning what is left


def cover(arriving: Signature, other: Signature) -> Cover:
    """Return the parts of a text that an earlier text contains."""
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
