"""The parameters of a scheme, in groups."""

from dataclasses import dataclass

DEFAULT_LABEL = "fine"  # the preset to use unless a setting names another

# Estimates and verdicts use these numbers too, and assume them for every scheme. native/job.h repeats SLOTS and
# LD_WINDOW_BYTES for the C code.
SLOTS = 128
SHINGLE_WORDS = 5
SPACELESS_SHINGLE_BYTES = 12
LD_WINDOW_BYTES = 16
GAP_STEPS = 8  # steps per rate in gaps that are stored apart from their symbols
MIN_WORDS = 8
MIN_SPACELESS_BYTES = 40

# Bits that an index keeps of a signature. Estimates use no more, so they do not depend on which document came first.
KEPT_SLOT_BITS = 4
WORD_SYMBOL_BITS, SPLIT_SYMBOL_BITS = 19, 16  # of a stored symbol, in one word with its gap or apart from it
# Bits from the first one bit on, by the stored bits of a symbol.
KEPT_SYMBOL_BITS = {WORD_SYMBOL_BITS: 16, SPLIT_SYMBOL_BITS: 13}

# Upper limits of what signing can do. The C code (native/job.h) allows at least these.
_MAX_POWER = 64
_MAX_RUN = 2_048
_MAX_SHARE = 4_096
_MAX_KEPT = 65_535
_MAX_RATE = 1 << 32
_MAX_SAMPLED = 1_024
_MAX_SAMPLED_BYTES = 1 << 24


@dataclass(frozen=True)
class TextRules:
    """Parameters of the normal form and of its words.

    Attributes:
        mark_run: Longest run of marks that is kept.
        word_bytes: Bytes after which a word is cut.
        spaceless_share: A text is spaceless if at least one in `spaceless_share` of its code points belongs to a script
            without spaces. Spaces are not counted. 0: no text is spaceless.
        spelling: `plain/2` leaves out invisible characters and Arabic vowel marks, reads letters that imitate those of
            another script, and then letters as languages do (`plain_words.py`). Empty: every code point counts.
        signs: `signs/1` lets texts be equal only if their signs that mean something are. Empty: no sign counts.
        masks: `mail/1` masks what differs between personalised mails. `mail/2` also puts one word in the place of legal
            notices and signature blocks. Empty: nothing is masked.
    """

    mark_run: int = 30
    word_bytes: int = 64
    spaceless_share: int = 5
    spelling: str = ""
    signs: str = ""
    masks: str = ""


@dataclass(frozen=True)
class SketchRules:
    """Parameters of the sketch.

    Attributes:
        slots: Number of minima.
        bits: Bits of each slot in a signature.
        shingle_words: Words of a shingle.
        window_bytes: Bytes of a shingle in a spaceless text.
    """

    slots: int = SLOTS
    bits: int = 32
    shingle_words: int = SHINGLE_WORDS
    window_bytes: int = SPACELESS_SHINGLE_BYTES


@dataclass(frozen=True)
class LdRules:
    """Parameters of the LD signature.

    Attributes:
        window_bytes: Bytes of a window.
        rates: First rate to try, by length of the text, in bytes of the normal form per symbol. There is one more rate
            than `lengths`.
        lengths: Bytes of the normal form from which the next rate is used.
        symbol_bits: Bits of a symbol.
        gap_bits: Bits of a gap that is stored with its symbol. 0: gaps are stored apart, as numbers of variable length.
        gap_steps: If gaps are stored apart, their unit is rate / gap_steps bytes.
        max_symbols: The rate is doubled until there are at most this many symbols.
    """

    window_bytes: int = LD_WINDOW_BYTES
    rates: tuple[int, ...] = (8, 16, 32, 64)
    lengths: tuple[int, ...] = (4_096, 16_384, 65_536)
    symbol_bits: int = 19
    gap_bits: int = 13
    gap_steps: int = 0
    max_symbols: int = 2_048

    def first_rate(self, n_bytes: int) -> int:
        """Return the rate to try first for a normal form.

        Args:
            n_bytes: Bytes of the normal form.
        """
        return self.rates[sum(n_bytes >= length for length in self.lengths)]


@dataclass(frozen=True)
class AnchorRules:
    """Parameters of the anchors.

    Attributes:
        words: Words of a window.
        window_bytes: Bytes of a window in a spaceless text.
        run: Number of windows of which the smallest hash is an anchor.
        spaceless_factor: In a spaceless text, a run is this many times as long.
        max_anchors: The run is doubled until there are at most this many anchors.
        dense_below: In a text with fewer windows a run is half as long, because it has few anchors to share.
    """

    words: int = 8
    window_bytes: int = 40
    run: int = 32
    spaceless_factor: int = 2
    max_anchors: int = 512
    dense_below: int = 0


@dataclass(frozen=True)
class NoiseRules:
    """Parameters of the sampled windows, which become keys in addition to anchors.

    Of windows of 12 bytes, a quarter is unchanged if a tenth of the characters is replaced.

    Attributes:
        window_bytes: Bytes of a window.
        rate: First rate to try: one in `rate` windows is sampled.
        max_keys: The rate is doubled until there are at most this many windows.
    """

    window_bytes: int = 12
    rate: int = 16
    max_keys: int = 48


@dataclass(frozen=True)
class SampledRules:
    """Parameters of the LD windows that become keys in addition to anchors.

    Of windows of 16 bytes, a fifth is unchanged if a tenth of the characters is replaced.

    Attributes:
        below_bytes: Only texts with fewer bytes in their normal form have such keys.
        usual_keys: One in `rate` windows is a key, where `rate` is the smallest power of two that gives a text of this
            length no more keys on average. It is at least the rate of the LD signature.
        max_keys: That rate is doubled as long as there are more keys.
    """

    below_bytes: int = 4_096
    usual_keys: int = 24
    max_keys: int = 64

    def first_rate(self, n_bytes: int, rate: int) -> int:
        """Return the rate to try first for a normal form.

        Args:
            n_bytes: Bytes of the normal form.
            rate: Rate of its LD signature.
        """
        while n_bytes > self.usual_keys * rate:
            rate *= 2
        return rate


@dataclass(frozen=True)
class BandRules:
    """Parameters of the bands.

    Attributes:
        bands: Bands of a sketch.
        rows: Slots of a band.
        min_words: A text with fewer words has no keys but digest and lineage.
        min_spaceless_bytes: A spaceless text with fewer bytes has no keys but digest and lineage.
    """

    bands: int = 25
    rows: int = 5
    min_words: int = MIN_WORDS
    min_spaceless_bytes: int = MIN_SPACELESS_BYTES


def invalid_parameters(
    text: TextRules,
    sketch: SketchRules,
    ld: LdRules | None,
    anchors: AnchorRules | None,
    noise: NoiseRules | None = None,
    sampled: SampledRules | None = None,
) -> str:
    """Return the first parameter that signing cannot use, with its range.

    Returns:
        Text such as `bits: 8, 16 or 32`, or an empty string if all parameters are valid.
    """
    checks = [
        ("word_bytes: 2 to 64", 2 <= text.word_bytes <= _MAX_POWER),
        ("mark_run: 1 to 64", 1 <= text.mark_run <= _MAX_POWER),
        ("spaceless_share: 0 to 4,096", 0 <= text.spaceless_share <= _MAX_SHARE),
        ("spelling: plain/2 or none", text.spelling in ("", "plain/2")),
        ("signs: signs/1 or none", text.signs in ("", "signs/1")),
        ("masks: mail/1, mail/2 or none", text.masks in ("", "mail/1", "mail/2")),
        ("slots: 128", sketch.slots == SLOTS),
        ("bits: 8, 16 or 32", sketch.bits in (8, 16, 32)),
        ("shingle_words: 1 to 64", 1 <= sketch.shingle_words <= _MAX_POWER),
        ("sketch window_bytes: 1 to 64", 1 <= sketch.window_bytes <= _MAX_POWER),
        *(_ld_checks(ld) if ld else ()),
        *(_anchor_checks(anchors) if anchors else ()),
        *(_noise_checks(noise) if noise else ()),
        (
            "sampled below_bytes: 1 to 2**24, usual_keys: 1 to max_keys, max_keys: to 1,024, beside an LD signature",
            not sampled or _are_sampled(sampled, ld),
        ),
    ]
    return next((expected for expected, holds in checks if not holds), "")


def _ld_checks(rules: LdRules) -> list[tuple[str, bool]]:
    rates, lengths = rules.rates, rules.lengths
    return [
        ("rates: 1 to 8, none below the one before", 1 <= len(rates) <= 8 and list(rates) == sorted(rates)),
        ("rates: powers of two, to 2**32", all(map(_is_rate, rates))),
        (
            "lengths: ascending, one less than rates",
            len(lengths) + 1 == len(rates) and list(lengths) == sorted(lengths),
        ),
        (
            "symbol_bits, gap_bits, gap_steps: 19, 13, 0 or 16, 0, 8",
            _layout(rules) in ((19, 13, 0), (16, 0, GAP_STEPS)),
        ),
        ("ld window_bytes: 1 to 64", 1 <= rules.window_bytes <= _MAX_POWER),
        ("max_symbols: 1 to 65,535", 1 <= rules.max_symbols <= _MAX_KEPT),
    ]


def _anchor_checks(rules: AnchorRules) -> list[tuple[str, bool]]:
    return [
        ("anchor words: 1 to 64", 1 <= rules.words <= _MAX_POWER),
        ("anchor window_bytes: 1 to 64", 1 <= rules.window_bytes <= _MAX_POWER),
        ("run times spaceless_factor: 1 to 2,048", 1 <= rules.run <= rules.run * rules.spaceless_factor <= _MAX_RUN),
        ("max_anchors: 1 to 65,535", 1 <= rules.max_anchors <= _MAX_KEPT),
        ("dense_below: 0 to 65,535", 0 <= rules.dense_below <= _MAX_KEPT),
    ]


def _noise_checks(rules: NoiseRules) -> list[tuple[str, bool]]:
    return [
        ("noise window_bytes: 1 to 64", 1 <= rules.window_bytes <= _MAX_POWER),
        ("noise rate: a power of two, 2 to 2**32", _is_rate(rules.rate) and rules.rate > 1),
        ("max_keys: 1 to 1,024", 1 <= rules.max_keys <= _MAX_SAMPLED),
    ]


def _are_sampled(rules: SampledRules, ld: LdRules | None) -> bool:
    return (
        ld is not None
        and 1 <= rules.below_bytes <= _MAX_SAMPLED_BYTES
        and 1 <= rules.usual_keys <= rules.max_keys <= _MAX_SAMPLED
    )


def _is_rate(rate: int) -> bool:
    return 1 <= rate <= _MAX_RATE and rate & (rate - 1) == 0


def _layout(rules: LdRules) -> tuple[int, int, int]:
    return rules.symbol_bits, rules.gap_bits, rules.gap_steps
