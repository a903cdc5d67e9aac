"""Check the byte fields of a signature, and shorten them as an index keeps them.

C does this if it is installed, else numpy, which is loaded only then.
"""

from nearstream.schemas.documents.signature import Signature
from nearstream.streams.fingerprints.parameters import KEPT_SYMBOL_BITS, SPLIT_SYMBOL_BITS, WORD_SYMBOL_BITS
from nearstream.streams.native import fastest, native


def words_end_numpy(ld: bytes) -> tuple[int, int]:
    """Return the number of symbols in LD words, and the byte position of the last symbol.

    `pack_words` makes the words.

    Raises:
        ValueError: The length is not a multiple of 4, or no word follows the last escape.
    """
    from nearstream.streams.fingerprints.ld_encoding import unpack_words

    gaps = unpack_words(ld)[1]
    return gaps.size, int(gaps.sum())


def ascends_numpy(anchors: bytes) -> bool:
    """Return whether numbers of 8 bytes are distinct and in ascending order.

    Raises:
        ValueError: The length is not a multiple of 8.
    """
    import numpy as np

    values = np.frombuffer(anchors, dtype="<u8")
    return bool(np.all(values[1:] > values[:-1]))


def kept_parts_numpy(signature: Signature) -> tuple[bytes, bytes]:
    """Return what an index keeps of the sketch and of the LD symbols."""
    from nearstream.streams.fingerprints.ld import kept_symbols
    from nearstream.streams.fingerprints.minhash import kept_sketch

    return kept_sketch(signature.sketch), kept_symbols(signature)


def kept_parts_native(signature: Signature) -> tuple[bytes, bytes]:
    """Return what `kept_parts_numpy` does, in C."""
    stored = SPLIT_SYMBOL_BITS if signature.gaps else WORD_SYMBOL_BITS
    return native.kept_parts(signature.sketch, signature.ld, stored, KEPT_SYMBOL_BITS[stored])


words_end = fastest(native.words_end, words_end_numpy)
ascends = fastest(native.ascends, ascends_numpy)
kept_parts = fastest(kept_parts_native, kept_parts_numpy)
