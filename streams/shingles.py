"""Feature hashes of a normal form."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streams.folding import SPACE
from streams.hashing import HashKey, Rolling, constant, distinct, fmix64
from streams.normalize import NormalForm
from streams.rules import AnchorRules, SketchRules

Hashes = NDArray[np.uint64]
Places = NDArray[np.int64]
NONE: Hashes = np.empty(0, dtype=np.uint64)
# Without dimensions, as numpy would make them in each call.
_SPACE, _ONE = np.array(SPACE, dtype=np.uint8), np.array(1, dtype=np.int64)


@dataclass(frozen=True)
class Features:
    """What runs of words, or of bytes, are hashed from.

    Attributes:
        bytes_prefix: Prefix sums over the bytes of the normal form, one more than bytes.
        words_prefix: Prefix sums over the hashes of its words, one more than words.
        firsts: Where code points start, of a spaceless text; else None.
    """

    bytes_prefix: Hashes
    words_prefix: Hashes
    firsts: Places | None

    @property
    def words(self) -> int:
        """How many words there are."""
        return self.words_prefix.size - 1


class FeatureHasher:
    """Hashes runs of words (Broder 1997), in spaceless texts runs of bytes that start with a code point."""

    def __init__(self, key: HashKey, word_bytes: int) -> None:
        """Takes the key, with the bytes after which a word is cut."""
        self.over_bytes = Rolling(key.base)
        self._over_words = Rolling(key.word_base)
        self._table = key.table
        self._sketch_salt = constant(key.sketch_salt)
        self._anchor_salt = constant(key.anchor_salt)
        self._word_bytes = word_bytes

    def features(self, form: NormalForm) -> Features:
        """Prefix sums of a normal form with at least one byte."""
        prefix = self.over_bytes.prefix(self._table.take(form.data))
        words = fmix64(self.over_bytes.runs(prefix, *word_bounds(form.data, self._word_bytes)))
        firsts = (form.data & 0xC0 != 0x80).nonzero()[0] if form.spaceless else None
        return Features(prefix, self._over_words.prefix(words), firsts)

    def shingles(self, features: Features, rules: SketchRules) -> Hashes:
        """Distinct shingles, ascending: at least one, of all words if there is no longer run."""
        hashes = self._byte_windows(features, rules.window_bytes)
        if not hashes.size:
            hashes = self._over_words.windows(features.words_prefix, min(rules.shingle_words, features.words))
        return distinct(_salted(hashes, self._sketch_salt))

    def anchor_windows(self, features: Features, rules: AnchorRules) -> Hashes:
        """Anchor windows in order of the text; none if it is shorter than one."""
        if features.firsts is None:
            hashes = self._over_words.windows(features.words_prefix, rules.words)
        else:
            hashes = self._byte_windows(features, rules.window_bytes)
        return _salted(hashes, self._anchor_salt)

    def _byte_windows(self, features: Features, width: int) -> Hashes:
        if features.firsts is None:
            return NONE
        last = features.bytes_prefix.size - 1 - width
        starts = features.firsts[: features.firsts.searchsorted(last, side="right")]
        return self.over_bytes.runs(features.bytes_prefix, starts, starts + width)


def word_bounds(data: NDArray[np.uint8], cut: int) -> tuple[Places, Places]:
    """Starts and ends of words: runs without a space, cut every `cut` bytes from their start.

    The cut is a rule of safety: long polynomials modulo 2**64 collide on Thue-Morse strings whatever the base.
    """
    spaces = (data == _SPACE).nonzero()[0]
    starts = np.empty(spaces.size + 1, dtype=np.int64)
    ends = np.empty(spaces.size + 1, dtype=np.int64)
    starts[0], ends[-1] = 0, data.size
    np.add(spaces, _ONE, out=starts[1:])
    ends[:-1] = spaces
    lengths = ends - starts
    if lengths.max() <= cut:
        return starts, ends
    pieces = -(-lengths // cut)
    before = np.cumsum(pieces) - pieces
    starts = np.repeat(starts - cut * before, pieces) + cut * np.arange(pieces.sum())
    return starts, np.minimum(starts + cut, np.repeat(ends, pieces))


def _salted(hashes: Hashes, salt: Hashes) -> Hashes:
    hashes += salt
    return fmix64(hashes)
