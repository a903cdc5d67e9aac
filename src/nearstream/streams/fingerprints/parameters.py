"""The parameters of a scheme, in groups."""

from dataclasses import dataclass

DEFAULT_LABEL = "fine"  # the preset to use unless a setting names another

# Estimates and verdicts use these numbers too, and assume them for every scheme. native/job.h repeats SLOTS and
# LD_WINDOW_BYTES for the C code.
SLOTS = 128
SHINGLE_WORDS = 5
SPACELESS_SHINGLE_BYTES = 12
LD_WINDOW_BYTES = 16
GAP_BITS = 13  # of a gap that is stored in one word with its symbol
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
    """Parameters of the normal form and of its words."""

    mark_run: int = 30  # longest run of marks that is kept
    word_bytes: int = 64  # bytes after which a word is cut
    # A text is spaceless if at least one in `spaceless_share` of its code points belongs to a script without spaces.
    # Spaces are not counted. 0: no text is spaceless.
    spaceless_share: int = 5
    # `plain/5` leaves out invisible characters and Arabic vowel marks, reads characters that imitate those of another
    # script, and then all as languages do (`plain_words.py`, `spelling.py`). Empty: every code point counts.
    spelling: str = ""
    signs: str = ""  # `signs/1` lets texts be equal only if their signs that mean something are. Empty: no sign counts.
    # `mail/1` masks what differs between personalised mails. `mail/2` also puts one word in the place of legal notices
    # and signature blocks. Empty: nothing is masked.
    masks: str = ""


@dataclass(frozen=True)
class SketchRules:
    """Parameters of the sketch."""

    slots: int = SLOTS  # number of minima
    bits: int = 32  # bits of each slot in a signature
    shingle_words: int = SHINGLE_WORDS  # words of a shingle
    window_bytes: int = SPACELESS_SHINGLE_BYTES  # bytes of a shingle in a spaceless text


@dataclass(frozen=True)
class LdRules:
    """Parameters of the LD signature."""

    window_bytes: int = LD_WINDOW_BYTES  # bytes of a window
    # First rate to try, by length of the text, in bytes of the normal form per symbol. There is one more rate than
    # `lengths`.
    rates: tuple[int, ...] = (8, 16, 32, 64)
    lengths: tuple[int, ...] = (4_096, 16_384, 65_536)  # bytes of the normal form from which the next rate is used
    symbol_bits: int = 19  # bits of a symbol
    # Bits of a gap that is stored with its symbol. 0: gaps are stored apart, as numbers of variable length.
    gap_bits: int = GAP_BITS
    gap_steps: int = 0  # if gaps are stored apart, their unit is rate / gap_steps bytes
    max_symbols: int = 2_048  # the rate is doubled until there are at most this many symbols

    def first_rate(self, n_bytes: int) -> int:
        """Return the rate to try first for a normal form."""
        return self.rates[sum(n_bytes >= length for length in self.lengths)]


@dataclass(frozen=True)
class AnchorRules:
    """Parameters of the anchors."""

    words: int = 8  # words of a window
    window_bytes: int = 40  # bytes of a window in a spaceless text
    run: int = 32  # number of windows of which the smallest hash is an anchor
    spaceless_factor: int = 2  # in a spaceless text, a run is this many times as long
    max_anchors: int = 512  # the run is doubled until there are at most this many anchors
    dense_below: int = 0  # in a text with fewer windows a run is half as long, because it has few anchors to share


# Of a document that names references every window is looked up, so that short items of references are found in it.
WINDOW_RULES = AnchorRules(run=1, max_anchors=8_192)
ITEM_WORDS = 60  # an item of a reference that is longer shares anchors with what it is in


@dataclass(frozen=True)
class NoiseRules:
    """Parameters of the sampled windows, which become keys in addition to anchors.

    Of windows of 12 bytes, a quarter is unchanged if a tenth of the characters is replaced.
    """

    window_bytes: int = 12  # bytes of a window
    rate: int = 16  # first rate to try: one in `rate` windows is sampled
    max_keys: int = 48  # the rate is doubled until there are at most this many windows


@dataclass(frozen=True)
class SampledRules:
    """Parameters of the LD windows that become keys in addition to anchors.

    Of windows of 16 bytes, a fifth is unchanged if a tenth of the characters is replaced.
    """

    below_bytes: int = 4_096  # only texts with fewer bytes in their normal form have such keys
    # One in `rate` windows is a key, where `rate` is the smallest power of two that gives a text of this length no more
    # keys on average. It is at least the rate of the LD signature.
    usual_keys: int = 24
    max_keys: int = 64  # that rate is doubled as long as there are more keys


@dataclass(frozen=True)
class BandRules:
    """Parameters of the bands."""

    bands: int = 25  # bands of a sketch
    rows: int = 5  # slots of a band
    min_words: int = MIN_WORDS  # a text with fewer words has no keys but digest and lineage
    # A spaceless text with fewer bytes has no keys but digest and lineage.
    min_spaceless_bytes: int = MIN_SPACELESS_BYTES


@dataclass(frozen=True)
class RowRules:
    """Parameters of lists and tables of short rows, whose sketch is one of rows."""

    run: int = 4  # number of rows, in the order of the alphabet, of which the smallest hash becomes a key
    keys: int = 24  # the run is doubled until there are at most this many keys
