"""Check and shorten the byte fields of a signature with numpy, as C does (`packed_fields`)."""

import numpy as np

from nearstream.schemas.documents.signature import Signature
from nearstream.streams.fingerprints.ld import kept_symbols
from nearstream.streams.fingerprints.ld_encoding import unpack_words
from nearstream.streams.fingerprints.minhash import kept_sketch


def words_end(ld: bytes) -> tuple[int, int]:
    """Return the number of symbols in LD words, and the byte position of the last symbol.

    `pack_words` makes the words.

    Raises:
        ValueError: The length is not a multiple of 4, or no word follows the last escape.
    """
    gaps = unpack_words(ld)[1]
    return gaps.size, int(gaps.sum())


def ascends(anchors: bytes) -> bool:
    """Return whether numbers of 8 bytes are distinct and in ascending order.

    Raises:
        ValueError: The length is not a multiple of 8.
    """
    values = np.frombuffer(anchors, dtype="<u8")
    return bool(np.all(values[1:] > values[:-1]))


def kept_parts(signature: Signature) -> tuple[bytes, bytes]:
    """Return what an index keeps of the sketch and of the LD symbols."""
    return kept_sketch(signature.sketch), kept_symbols(signature)
