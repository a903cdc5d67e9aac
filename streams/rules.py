"""The numbers of a scheme in groups."""

from dataclasses import dataclass

_MOST_POWER = 64
_MOST_RUN = 2_048
_MOST_SHARE = 4_096
_MOST_KEPT = 65_535
_MOST_RATE = 1 << 32

# What an index keeps of a signature; estimates read no more, whoever came first.
KEPT_SLOT_BITS = 4
KEPT_SYMBOL_BITS = {19: 16, 16: 13}  # from the first one bit on, by the bits of a symbol


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
        shingle_words: Words of a shingle.
        window_bytes: Bytes of a shingle in a spaceless text.
    """

    slots: int = 128
    bits: int = 32
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
        dense_below: In a text of fewer windows the run is half as long: it has few anchors to share.
    """

    words: int = 8
    window_bytes: int = 40
    run: int = 32
    spaceless_factor: int = 2
    max_anchors: int = 512
    dense_below: int = 0


@dataclass(frozen=True)
class NoiseRules:
    """Numbers of the windows that become keys beside anchors: of 12 bytes a quarter survives if a tenth is replaced.

    Attributes:
        window_bytes: Bytes of a window.
        rate: Bytes for each window that is kept, at first.
        max_keys: The rate doubles until so many are left.
    """

    window_bytes: int = 12
    rate: int = 16
    max_keys: int = 48


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


def unsound(
    text: TextRules,
    sketch: SketchRules,
    ld: LdRules | None,
    anchors: AnchorRules | None,
    noise: NoiseRules | None = None,
) -> str:
    """The first number that signing cannot do, with what it can; an empty string if there is none."""
    checks = [
        ("word_bytes: 2 to 64", 2 <= text.word_bytes <= _MOST_POWER),
        ("mark_run: 1 to 64", 1 <= text.mark_run <= _MOST_POWER),
        ("spaceless_share: 0 to 4,096", 0 <= text.spaceless_share <= _MOST_SHARE),
        ("slots: 128", sketch.slots == 128),
        ("bits: 8, 16 or 32", sketch.bits in (8, 16, 32)),
        ("shingle_words: 1 to 64", 1 <= sketch.shingle_words <= _MOST_POWER),
        ("sketch window_bytes: 1 to 64", 1 <= sketch.window_bytes <= _MOST_POWER),
        *(_ld_checks(ld) if ld else ()),
        *(_anchor_checks(anchors) if anchors else ()),
        *(_noise_checks(noise) if noise else ()),
    ]
    return next((expected for expected, holds in checks if not holds), "")


def _ld_checks(rules: LdRules) -> list[tuple[str, bool]]:
    rates, lengths = rules.rates, rules.lengths
    return [
        ("rates: 1 to 8, none below the one before", 1 <= len(rates) <= 8 and list(rates) == sorted(rates)),
        ("rates: powers of two, 2 to 2**32", all(map(_is_rate, rates))),
        (
            "lengths: ascending, one less than rates",
            len(lengths) + 1 == len(rates) and list(lengths) == sorted(lengths),
        ),
        ("symbol_bits, gap_bits, gap_steps: 19, 13, 0 or 16, 0, 8", _layout(rules) in ((19, 13, 0), (16, 0, 8))),
        ("ld window_bytes: 1 to 64", 1 <= rules.window_bytes <= _MOST_POWER),
        ("max_symbols: 1 to 65,535", 1 <= rules.max_symbols <= _MOST_KEPT),
    ]


def _anchor_checks(rules: AnchorRules) -> list[tuple[str, bool]]:
    return [
        ("anchor words: 1 to 64", 1 <= rules.words <= _MOST_POWER),
        ("anchor window_bytes: 1 to 64", 1 <= rules.window_bytes <= _MOST_POWER),
        ("run times spaceless_factor: 1 to 2,048", 1 <= rules.run <= rules.run * rules.spaceless_factor <= _MOST_RUN),
        ("max_anchors: 1 to 65,535", 1 <= rules.max_anchors <= _MOST_KEPT),
        ("dense_below: 0 to 65,535", 0 <= rules.dense_below <= _MOST_KEPT),
    ]


def _noise_checks(rules: NoiseRules) -> list[tuple[str, bool]]:
    return [
        ("noise window_bytes: 1 to 64", 1 <= rules.window_bytes <= _MOST_POWER),
        ("noise rate: a power of two, 2 to 2**32", _is_rate(rules.rate)),
        ("max_keys: 1 to 65,535", 1 <= rules.max_keys <= _MOST_KEPT),
    ]


def _is_rate(rate: int) -> bool:
    return 2 <= rate <= _MOST_RATE and rate & (rate - 1) == 0


def _layout(rules: LdRules) -> tuple[int, int, int]:
    return rules.symbol_bits, rules.gap_bits, rules.gap_steps
