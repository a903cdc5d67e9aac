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
