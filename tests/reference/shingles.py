"""Feature hashes: shingles and windows of normal forms."""

from collections.abc import Sequence
from itertools import accumulate
from operator import sub
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.fingerprints.parameters import AnchorRules, SketchRules
from nearstream.streams.fingerprints.unicode_tables import SPACE
from tests.reference.normal_form import NormalForm
from tests.reference.polynomials import Rolling, constant, distinct_rows, fmix64
from tests.reference.ragged import RaggedRows

Hashes = NDArray[np.uint64]
Positions = NDArray[np.int64]
# Arrays without dimensions, because numpy would convert Python numbers in each call.
_LARGEST = constant((1 << 64) - 1)
_SPACE, _ONE = np.array(SPACE, dtype=np.uint8), np.array(1, dtype=np.int64)


class Joined(NamedTuple):
    """Several normal forms, joined by a space.

    Attributes:
        data: All bytes.
        prefix: Prefix sums over all bytes, with one element more than `data`.
        starts: Index of the first byte of each form.
        stops: Index after the last byte of each form.
    """

    data: NDArray[np.uint8]
    prefix: Hashes
    starts: list[int]
    stops: list[int]


class Features(NamedTuple):
    """Prefix sums from which runs of words or bytes are hashed.

    Attributes:
        joined: The bytes of all forms.
        words_prefix: Prefix sums over the hashes of all words, with one element more than there are words.
        first_words: Index of the first word of each form, then the number of all words.
        firsts: Indices of bytes at which code points start if the texts are spaceless, else None.
    """

    joined: Joined
    words_prefix: Hashes
    first_words: list[int]
    firsts: Positions | None


class FeatureHasher:
    """A hasher of shingles and windows under one key.

    Shingles are runs of words (Broder 1997). In spaceless texts they are runs of bytes that start with a code point.

    Attributes:
        over_bytes: Hashes of runs of bytes.
    """

    def __init__(self, key: HashKey, word_bytes: int) -> None:
        """Prepare hashing under a key.

        Args:
            key: The key of the scheme.
            word_bytes: Bytes after which a word is cut.
        """
        self.over_bytes = Rolling(key.base)
        self._over_words = Rolling(key.word_base)
        self._table = np.frombuffer(key.table_bytes, "<u8").astype(np.uint64)
        self._sketch_salt = constant(key.sketch_salt)
        self._anchor_salt = constant(key.anchor_salt)
        self._word_bytes = word_bytes

    def joined(self, forms: Sequence[bytes | memoryview]) -> Joined:
        """Join normal forms.

        Args:
            forms: A form may be empty only if there is no other.
        """
        stops = list(accumulate(map(len, forms), lambda stop, size: stop + 1 + size))
        data = np.frombuffer(b" ".join(forms), dtype=np.uint8)
        starts = list(map(sub, stops, map(len, forms)))
        return Joined(data, self.over_bytes.prefix(self._table.take(data)), starts, stops)

    def features(self, forms: Sequence[NormalForm]) -> Features:
        """Return the prefix sums of some normal forms.

        Args:
            forms: Forms of at least one byte each. Either all or none are spaceless.
        """
        joined = self.joined([form.data.data for form in forms])
        begins, ends = word_bounds(joined.data, self._word_bytes)
        words = fmix64(self.over_bytes.runs(joined.prefix, begins, ends))
        first_words = begins.searchsorted([*joined.starts, joined.data.size]).tolist()
        firsts = (joined.data & 0xC0 != 0x80).nonzero()[0] if forms[0].spaceless else None
        return Features(joined, self._over_words.prefix(words), first_words, firsts)

    def shingles(self, features: Features, rules: SketchRules) -> list[Hashes]:
        """Return the distinct shingles of each form in ascending order.

        There is at least one. A form with fewer words than a shingle has one of all its words.
        """
        rows = self._windows(features, rules.shingle_words, rules.window_bytes, self._sketch_salt).each()
        for index, row in enumerate(rows):
            if not row.size:
                rows[index] = self._few_words(features, index, rules.shingle_words)
        return distinct_rows(rows)

    def anchor_windows(self, features: Features, rules: AnchorRules) -> RaggedRows:
        """Return the hashes of the anchor windows of each form.

        They are in the order of the text. A form that is shorter than a window has none.
        """
        return self._windows(features, rules.words, rules.window_bytes, self._anchor_salt)

    def byte_windows(self, joined: Joined, width: int, salt: int) -> RaggedRows:
        """Return mixed hashes of the windows that start at each byte.

        A window that does not fit into one form gets the largest hash, so that it is never sampled.
        """
        hashes = self.over_bytes.mixed_windows(joined.prefix, width, salt)
        for stop in joined.stops[:-1]:
            hashes[max(0, stop - (width - 1)) : stop + 1] = _LARGEST
        return RaggedRows(hashes, joined.starts, joined.stops)

    def _windows(self, features: Features, words: int, window_bytes: int, salt: Hashes) -> RaggedRows:
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
        return RaggedRows(_salted(hashes, salt), starts, list(map(max, starts, stops)))

    def _few_words(self, features: Features, index: int, width: int) -> Hashes:
        start, stop = features.first_words[index : index + 2]
        width = min(width, stop - start)
        starts = np.arange(start, stop - width + 1)
        return _salted(self._over_words.runs(features.words_prefix, starts, starts + width), self._sketch_salt)


def word_bounds(data: NDArray[np.uint8], cut: int) -> tuple[Positions, Positions]:
    """Return the starts and ends of words, as indices of bytes.

    A word is a run without spaces. For safety it is cut every `cut` bytes from its start, because long polynomials
    modulo 2**64 collide on Thue-Morse strings, whatever the base.
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
