"""The numbers of a scheme in groups."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TextRules:
    """Numbers of the normal form and of its words.

    Attributes:
        mark_run: Longest run of marks that is kept.
        word_bytes: Where a word is cut, counted from its start.
        spaceless_share: A text is spaceless if one in so many of its code points, or more, belongs to such a script.
    """

    mark_run: int = 30
    word_bytes: int = 64
    spaceless_share: int = 5


@dataclass(frozen=True)
class SketchRules:
    """Numbers of the sketch.

    Attributes:
        slots: Minima that are kept.
        bits: Bits of each slot in a signature.
        kept_bits: Bits of each slot in the index.
        shingle_words: Words of a shingle.
        window_bytes: Bytes of a shingle in a spaceless text.
    """

    slots: int = 128
    bits: int = 32
    kept_bits: int = 8
    shingle_words: int = 5
    window_bytes: int = 12


@dataclass(frozen=True)
class LdRules:
    """Numbers of the LD signature.

    Attributes:
        window_bytes: Bytes of a window.
        rates: First rate tried, in bytes per symbol: one more than `lengths`.
        lengths: Bytes of the normal form from which the next rate holds.
        symbol_bits: Bits of a symbol.
        gap_bits: Bits of a gap beside its symbol; 0: gaps stand apart, as numbers of variable length.
        gap_steps: Where gaps stand apart, their unit is rate / gap_steps bytes.
        max_symbols: The rate doubles until so many are left.
    """

    window_bytes: int = 16
    rates: tuple[int, ...] = (8, 16, 32, 64)
    lengths: tuple[int, ...] = (4_096, 16_384, 65_536)
    symbol_bits: int = 19
    gap_bits: int = 13
    gap_steps: int = 0
    max_symbols: int = 2_048

    def first_rate(self, n_bytes: int) -> int:
        """The finest rate for a normal form of so many bytes."""
        return self.rates[sum(n_bytes >= length for length in self.lengths)]


@dataclass(frozen=True)
class AnchorRules:
    """Numbers of the anchors.

    Attributes:
        words: Words of a window.
        window_bytes: Bytes of a window in a spaceless text.
        run: Windows of which the smallest hash is an anchor.
        spaceless_factor: Times `run` in a spaceless text.
        max_anchors: The run doubles until so many are left.
    """

    words: int = 8
    window_bytes: int = 40
    run: int = 32
    spaceless_factor: int = 2
    max_anchors: int = 512


@dataclass(frozen=True)
class BandRules:
    """Numbers of the bands.

    Attributes:
        bands: Bands of a sketch.
        rows: Slots of a band.
        min_words: A shorter text has no key but digest and lineage.
        min_spaceless_bytes: The same for spaceless texts.
    """

    bands: int = 25
    rows: int = 5
    min_words: int = 8
    min_spaceless_bytes: int = 40
