"""The part of an index record that depends on the normal form of the text alone.

It is the end of a record. Records of equal texts have equal text parts.

    digest    8 bytes: the digest without the version
    flags     1 byte: a sum of PACKED, SPACELESS and SPLIT
    numbers   unsigned LEB128: n_bytes, words, rate, length of the sketch, length of the gaps; then zigzag LEB128: words
              minus shingles, n_bytes minus characters
    sketch    as in a signature
    gaps      as in a signature. None if PACKED is set
    ld        up to the end of the record: as in a signature, or with the gaps as `ld_compact.py` packs them if PACKED
              is set. SPLIT says that the signature has the gaps apart
"""

from nearstream.schemas.documents.signature import VERSION_BYTES, Signature
from nearstream.streams.fingerprints.parameters import KEPT_SYMBOL_BITS, SPLIT_SYMBOL_BITS, WORD_SYMBOL_BITS
from nearstream.streams.native import native
from nearstream.streams.store.numbers import append_number, zigzag

DIGEST_BYTES = 8  # without the version
PACKED, SPACELESS, SPLIT = 1, 2, 4
_STEP_LOW_BITS = 2  # for gaps that are separate from the symbols: their unit is an eighth of the rate


def pack_text(signature: Signature) -> bytes:
    """Return the text part of a signature. The version is left out."""
    stored = SPLIT_SYMBOL_BITS if signature.gaps else WORD_SYMBOL_BITS
    packed = native.pack_pairs(signature.ld, signature.gaps, *pair_bits(stored, signature.rate))
    ld, gaps = (signature.ld, signature.gaps) if packed is None else (packed, b"")
    flags = PACKED * (packed is not None) | SPACELESS * signature.spaceless | SPLIT * bool(signature.gaps)
    numbers = (
        signature.n_bytes,
        signature.words,
        signature.rate,
        len(signature.sketch),
        len(gaps),
        zigzag(signature.words - signature.shingles),
        zigzag(signature.n_bytes - signature.characters),
    )
    head = bytearray((*signature.digest[VERSION_BYTES:], flags))
    for number in numbers:
        append_number(head, number)
    return b"".join((head, signature.sketch, gaps, ld))


def pair_bits(stored: int, rate: int) -> tuple[int, int, int]:
    """Return the bits of a symbol, its kept bits, and the low bits of a gap.

    The low bits of a gap are written as they are, and their count follows Rice's rule for the mean of the gaps.
    """
    low = _STEP_LOW_BITS if stored == SPLIT_SYMBOL_BITS else min(max(rate.bit_length() - 2, 0), 5)
    return stored, KEPT_SYMBOL_BITS[stored], low
