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
from nearstream.streams.native import TextFields, fastest, native
from nearstream.streams.store.numbers import append_number, signed, take_number, zigzag

DIGEST_BYTES = 8  # without the version
PACKED, SPACELESS, SPLIT = 1, 2, 4
_NUMBERS = 7
_STEP_LOW_BITS = 2  # for gaps that are separate from the symbols: their unit is an eighth of the rate


def pack_pairs_slowly(ld: bytes, gaps: bytes, symbol_bits: int, kept_bits: int, low_bits: int) -> bytes | None:
    """Return what `ld_compact.pack_pairs` does, and load numpy only then."""
    from nearstream.streams.fingerprints import ld_compact

    return ld_compact.pack_pairs(ld, gaps, symbol_bits, kept_bits, low_bits)


pack_pairs = fastest(native.pack_pairs, pack_pairs_slowly)


def pack_text(signature: Signature) -> bytes:
    """Return the text part of a signature. The version is left out."""
    stored = SPLIT_SYMBOL_BITS if signature.gaps else WORD_SYMBOL_BITS
    packed = pack_pairs(signature.ld, signature.gaps, *_pair_bits(stored, signature.rate))
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


def unpack_text_slowly(packed: bytes, start: int) -> TextFields:
    """Return the fields of a text part, which begins at `start` in a record.

    They are `digest` without the version, then those from `n_bytes` to `gaps` in the order of `Signature`.

    Raises:
        ValueError: The text part is not whole.
    """
    flags_at = start + DIGEST_BYTES
    try:
        flags = packed[flags_at]
        (n_bytes, words, rate, sketch_size, gaps_size, repeated, wide), at = _numbers(packed, flags_at + 1)
    except IndexError:
        raise ValueError("packed: a whole text part expected") from None
    gaps_at = at + sketch_size
    ld_at = gaps_at + gaps_size
    if ld_at > len(packed):
        raise ValueError("packed: a whole text part expected")
    ld, gaps = packed[ld_at:], packed[gaps_at:ld_at]
    if flags & PACKED:
        from nearstream.streams.fingerprints import ld_compact

        stored = SPLIT_SYMBOL_BITS if flags & SPLIT else WORD_SYMBOL_BITS
        ld, gaps = ld_compact.unpack_pairs(ld, *_pair_bits(stored, rate))
    return (
        packed[start:flags_at],
        n_bytes,
        n_bytes - signed(wide),
        words,
        words - signed(repeated),
        bool(flags & SPACELESS),
        packed[at:gaps_at],
        rate,
        ld,
        gaps,
    )


unpack_text = fastest(native.unpack_text, unpack_text_slowly)


def _numbers(packed: bytes, at: int) -> tuple[list[int], int]:
    """Return the numbers of a text part and where they end."""
    numbers = []
    for _ in range(_NUMBERS):
        number, at = take_number(packed, at)
        numbers.append(number)
    return numbers, at


def _pair_bits(stored: int, rate: int) -> tuple[int, int, int]:
    """Return the bits of a symbol, its kept bits, and the low bits of a gap.

    The low bits of a gap are written as they are, and their count follows Rice's rule for the mean of the gaps.
    """
    low = _STEP_LOW_BITS if stored == SPLIT_SYMBOL_BITS else min(max(rate.bit_length() - 2, 0), 5)
    return stored, KEPT_SYMBOL_BITS[stored], low
