"""Best-match distance between the blocks of two signatures.

Source: Peter Coates, "Super Fast Estimates of Levenshtein Distance" (blog), on texts whose parts come in another order.
"""

from rapidfuzz.distance import Levenshtein


def cross_distance(one: str, other: str, block: int, best: int | None = None) -> int:
    """Return the sum, over the blocks of the shorter signature, of the distance to the nearest block of the other.

    Args:
        one: A signature.
        other: Another one.
        block: Symbols of a block. The last block may have fewer.
        best: Only this many of the nearest blocks count. The source takes all, or all but two.

    Raises:
        ValueError: A signature is empty, or a block has no symbols.
    """
    shorter, longer = sorted((one, other), key=len)
    if not shorter or block < 1:
        raise ValueError("signatures and blocks of at least one symbol expected")
    targets = _blocks(longer, block)
    nearest = sorted(min(Levenshtein.distance(each, target) for target in targets) for each in _blocks(shorter, block))
    return sum(nearest[:best])


def _blocks(signature: str, size: int) -> list[str]:
    return [signature[start : start + size] for start in range(0, len(signature), size)]
