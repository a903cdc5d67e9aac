"""The text part of an index record, read in Python."""

from nearstream.streams.fingerprints.parameters import SPLIT_SYMBOL_BITS, WORD_SYMBOL_BITS
from nearstream.streams.native import TextFields
from nearstream.streams.store.record import DIGEST_BYTES, PACKED, SPACELESS, SPLIT, pair_bits, signed, take_number
from tests.reference import ld_compact

_NUMBERS = 7


def unpack_text(packed: bytes, start: int) -> TextFields:
    """Return the fields of a text part, which begins at `start` in a record.

    They are `digest` without the version, then those from `n_bytes` to `gaps` in the order of `Signature`.
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
        stored = SPLIT_SYMBOL_BITS if flags & SPLIT else WORD_SYMBOL_BITS
        ld, gaps = ld_compact.unpack_pairs(ld, *pair_bits(stored, rate))
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


def _numbers(packed: bytes, at: int) -> tuple[list[int], int]:
    """Return the numbers of a text part and where they end."""
    numbers = []
    for _ in range(_NUMBERS):
        number, at = take_number(packed, at)
        numbers.append(number)
    return numbers, at
