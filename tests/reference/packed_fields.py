"""Byte fields of a signature: their check, what an index keeps of them, and short keys."""

import mmh3
import numpy as np

from nearstream.schemas.documents.signature import Signature
from tests.reference.ld import kept_symbols, unpack_words
from tests.reference.minhash import kept_sketch


def words_end(ld: bytes) -> tuple[int, int]:
    """Return the number of symbols in LD words, and the byte position of the last symbol.

    `pack_words` makes the words.
    """
    gaps = unpack_words(ld)[1]
    return gaps.size, int(gaps.sum())


def ascends(anchors: bytes) -> bool:
    """Return whether numbers of 8 bytes are distinct and in ascending order."""
    values = np.frombuffer(anchors, dtype="<u8")
    return bool(np.all(values[1:] > values[:-1]))


def kept_parts(signature: Signature) -> tuple[bytes, bytes]:
    """Return what an index keeps of the sketch and of the LD symbols."""
    return kept_sketch(signature.sketch), kept_symbols(signature)


def small_keys(permutation: bytes, prefix: bytes, payloads: bytes, width: int) -> tuple[bytes, ...]:
    """Return the first 8 bytes of `HashKey.small_key` of each payload, for a key with this permutation."""
    first, rest = prefix.translate(permutation), payloads.translate(permutation)
    whole = [first + rest[start : start + width] for start in range(0, len(rest), width)]
    return tuple([mmh3.mmh3_x64_128_digest(each, 0)[:8] for each in whole])
