"""Check the byte fields of a signature, and shorten them as an index keeps them.

C does this if it is installed, else numpy.
"""

import numpy as np

from nearstream.schemas.signature import Signature
from nearstream.streams.fingerprints.ld import kept_symbols, symbol_bits
from nearstream.streams.fingerprints.ld_encoding import unpack_words
from nearstream.streams.fingerprints.minhash import kept_sketch
from nearstream.streams.fingerprints.parameters import KEPT_SYMBOL_BITS
from nearstream.streams.native import native, required


def words_end_slowly(ld: bytes) -> tuple[int, int]:
    """Return the number of symbols in LD words, and the byte position of the last symbol.

    `pack_words` makes the words.

    Raises:
        ValueError: The length is not a multiple of 4, or no word follows the last escape.
    """
    gaps = unpack_words(ld)[1]
    return gaps.size, int(gaps.sum())


def ascends_slowly(anchors: bytes) -> bool:
    """Return whether numbers of 8 bytes are distinct and in ascending order.

    Raises:
        ValueError: The length is not a multiple of 8.
    """
    values = np.frombuffer(anchors, dtype="<u8")
    return bool(np.all(values[1:] > values[:-1]))


def kept_parts_slowly(signature: Signature) -> tuple[bytes, bytes]:
    """Return what an index keeps of the sketch and of the LD symbols."""
    return kept_sketch(signature.sketch), kept_symbols(signature)


def kept_parts_native(signature: Signature) -> tuple[bytes, bytes]:
    """Return what `kept_parts_slowly` returns, by C."""
    stored = symbol_bits(signature)
    return required().kept_parts(signature.sketch, signature.ld, stored, KEPT_SYMBOL_BITS[stored])


words_end = native.words_end if native else words_end_slowly
ascends = native.ascends if native else ascends_slowly
kept_parts = kept_parts_native if native else kept_parts_slowly
