"""Feature hashes of normal forms."""

from collections.abc import Sequence
from itertools import accumulate
from operator import sub
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streams.folding import SPACE
from streams.hashing import HashKey, Rolling, constant, distinct_rows, fmix64
from streams.normalize import NormalForm
from streams.rules import AnchorRules, SketchRules
from streams.runs import Rows

Hashes = NDArray[np.uint64]
Places = NDArray[np.int64]
# Without dimensions, as numpy would make them in each call.
_LARGEST = constant((1 << 64) - 1)
_SPACE, _ONE = np.array(SPACE, dtype=np.uint8), np.array(1, dtype=np.int64)


class Joined(NamedTuple):
    """Several normal forms with a space between them.

    Attributes:
        data: All bytes.
        prefix: Prefix sums over them, one more than bytes.
        starts: Of each form the place of its first byte.
        stops: Of each form the place after its last byte.
    """

    data: NDArray[np.uint8]
    prefix: Hashes
    starts: list[int]
    stops: list[int]


class Features(NamedTuple):
    """What runs of words, or of bytes, are hashed from.

    Attributes:
        joined: The bytes.
        words_prefix: Prefix sums over the hashes of all words, one more than words.
        first_words: Of each form the number of its first word; at last the number of all words.
        firsts: Where code points start, of spaceless texts; else None.
    """

    joined: Joined
    words_prefix: Hashes
    first_words: list[int]
    firsts: Places | None


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

    def joined(self, forms: Sequence[bytes | memoryview]) -> Joined:
        """Normal forms, of which none but the only one may be empty."""
        stops = list(accumulate(map(len, forms), lambda stop, size: stop + 1 + size))
        data = np.frombuffer(b" ".join(forms), dtype=np.uint8)
        starts = list(map(sub, stops, map(len, forms)))
        return Joined(data, self.over_bytes.prefix(self._table.take(data)), starts, stops)

    def features(self, forms: Sequence[NormalForm]) -> Features:
        """Prefix sums of normal forms with at least one byte each, all of them spaceless or none."""
        joined = self.joined([form.data.data for form in forms])
        begins, ends = word_bounds(joined.data, self._word_bytes)
        words = fmix64(self.over_bytes.runs(joined.prefix, begins, ends))
        first_words = begins.searchsorted([*joined.starts, joined.data.size]).tolist()
        firsts = (joined.data & 0xC0 != 0x80).nonzero()[0] if forms[0].spaceless else None
        return Features(joined, self._over_words.prefix(words), first_words, firsts)

    def shingles(self, features: Features, rules: SketchRules) -> list[Hashes]:
        """Distinct shingles of each form, ascending: at least one, of all words if there is no longer run."""
        rows = self._windows(features, rules.shingle_words, rules.window_bytes, self._sketch_salt).each()
        for number, row in enumerate(rows):
            if not row.size:
                rows[number] = self._few_words(features, number, rules.shingle_words)
        return distinct_rows(rows)

    def anchor_windows(self, features: Features, rules: AnchorRules) -> Rows:
        """Anchor windows in order of the text; none of a form that is shorter than one."""
        return self._windows(features, rules.words, rules.window_bytes, self._anchor_salt)

    def byte_windows(self, joined: Joined, width: int, salt: int) -> Rows:
        """Mixed hashes of the windows from every byte on, in order; those that no form holds whole are the largest."""
        hashes = self.over_bytes.mixed_windows(joined.prefix, width, salt)
        for stop in joined.stops[:-1]:
            hashes[max(0, stop - (width - 1)) : stop + 1] = _LARGEST
        return Rows(hashes, joined.starts, joined.stops)

    def _windows(self, features: Features, words: int, window_bytes: int, salt: Hashes) -> Rows:
        if features.firsts is None:
            hashes = self._over_words.windows(features.words_prefix, words)
            starts = features.first_words[:-1]
            stops = [stop - (words - 1) for stop in features.first_words[1:]]
        else:
            last = [stop - window_bytes for stop in features.joined.stops]
            begins = features.firsts[: features.firsts.searchsorted(last[-1], side="right")]
            hashes = self.over_bytes.runs(features.joined.prefix, begins, begins + window_bytes)
            starts, stops = (
                begins.searchsorted(features.joined.starts).tolist(),
                begins.searchsorted(last, "right").tolist(),
            )
        return Rows(_salted(hashes, salt), starts, list(map(max, starts, stops)))

    def _few_words(self, features: Features, number: int, width: int) -> Hashes:
        start, stop = features.first_words[number : number + 2]
        width = min(width, stop - start)
        places = np.arange(start, stop - width + 1)
        return _salted(self._over_words.runs(features.words_prefix, places, places + width), self._sketch_salt)


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
