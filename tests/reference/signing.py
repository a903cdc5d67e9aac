"""Signing, step by step in numpy."""

from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.fingerprints.parameters import SLOTS, AnchorRules, LdRules
from nearstream.streams.native import Context, Signed
from nearstream.streams.signing.scheme import Scheme, preset
from nearstream.streams.signing.signer import MAX_BYTES, Signer, of_rows, without_layout
from tests.reference.ld import pack_varints, pack_words
from tests.reference.normal_form import is_spaceless, normalized

Hashes = NDArray[np.uint64]
PUBLIC = HashKey.public()
_MASK = (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15  # added to the features in each round of a sketch


@cache
def signers(label: str = "fine", key: HashKey = PUBLIC) -> tuple[Signer, Signer]:
    """Return a signer of a preset in numpy, and one in C."""
    scheme = preset(label, key)
    return ReferenceSigner(scheme, key), Signer(scheme, key)


class ReferenceSigner(Signer):
    """A signer whose texts are signed in numpy."""

    def __init__(self, scheme: Scheme, key: HashKey, max_bytes: int = MAX_BYTES) -> None:
        """Prepare signing in numpy."""
        super().__init__(scheme, key, max_bytes)
        self._limit = max_bytes

    def _computed(self, plain: str, context: Context) -> Signed | None:
        signed = sign(plain, of_rows(self._scheme) if context is self._rows else self._scheme, self._key)
        return signed if signed[2][0] <= self._limit else None


def sign(text: str, scheme: Scheme, key: HashKey) -> Signed:
    """Return the digests of a text, and what its signature says of it."""
    characters = normalized(text, scheme.text)
    form, spaceless = characters.encode(), is_spaceless(characters, scheme.text)
    digests = key.digest(form), key.digest(without_layout(text))
    features = Features(form, spaceless, scheme, key)
    found = features.shingles()
    rate, ld, gaps, windows = ld_signature(form, scheme.ld, key)
    keys = [anchors(features.runs(scheme.anchors.words, scheme.anchors.window_bytes, key.anchor_salt), spaceless,
                    scheme.anchors)]  # fmt: skip
    if scheme.sampled and len(form) < scheme.sampled.below_bytes:
        usual = rate
        while len(form) > scheme.sampled.usual_keys * usual:
            usual *= 2
        keys.append(_at_most(windows, usual, scheme.sampled.max_keys))
    if scheme.noise:
        every = np.unique(mix(polynomials(features.values, scheme.noise.window_bytes, key.base, key.anchor_salt)))
        keys.append(_at_most(every, scheme.noise.rate, scheme.noise.max_keys))
    packed = np.unique(np.concatenate(keys)).astype("<u8").tobytes()
    sketched = sketch(found, scheme.sketch.bits)
    counts = len(form), len(characters), len(features.words), len(found), spaceless
    return (*digests, (*counts, sketched, rate, ld, gaps, packed))


class Features:
    """Hashes of words and bytes of a normal form, and of their runs."""

    def __init__(self, form: bytes, spaceless: bool, scheme: Scheme, key: HashKey) -> None:
        """Hash the words, each cut after so many bytes as the scheme says."""
        table = np.frombuffer(key.table_bytes, "<u8")
        self._firsts = np.flatnonzero(np.frombuffer(form, np.uint8) & 0xC0 != 0x80) if spaceless else None
        self._scheme, self._key = scheme, key
        self.values = table[np.frombuffer(form, np.uint8)]
        cut, numbers = scheme.text.word_bytes, table.tolist()
        pieces = [word[at : at + cut] for word in form.split() for at in range(0, len(word), cut)]
        self.words = fmix64(np.array([self._polynomial(piece, numbers) for piece in pieces], np.uint64))

    def runs(self, words: int, window_bytes: int, salt: int) -> Hashes:
        """Return the hash of each run of words, or of bytes from the start of a character in a spaceless text."""
        if self._firsts is None:
            return fmix64(polynomials(self.words, words, self._key.word_base, salt))
        found = fmix64(polynomials(self.values, window_bytes, self._key.base, salt))
        return found[self._firsts[self._firsts < found.size]]

    def shingles(self) -> Hashes:
        """Return the distinct shingles in ascending order. A shorter text has one shingle of all words."""
        rules, salt = self._scheme.sketch, self._key.sketch_salt
        found = self.runs(rules.shingle_words, rules.window_bytes, salt)
        if not found.size and self.words.size:
            width = min(rules.shingle_words, self.words.size)
            found = fmix64(polynomials(self.words, width, self._key.word_base, salt))
        return np.unique(found)

    def _polynomial(self, piece: bytes, table: list[int]) -> int:
        total = 0
        for byte in piece:
            total = (total * self._key.base + table[byte]) & _MASK
        return total


def polynomials(values: Hashes, width: int, base: int, salt: int) -> Hashes:
    """Return the salted polynomial of each run of `width` values, modulo 2**64."""
    count = max(0, values.size - width + 1)
    hashes = np.zeros(count, np.uint64)
    for place in range(width if count else 0):
        hashes = hashes * np.uint64(base) + values[place : place + count]
    return hashes + np.uint64(salt)


def fmix64(x: Hashes) -> Hashes:
    """Mix hashes with the finaliser of MurmurHash3."""
    x = (x ^ x >> np.uint64(33)) * np.uint64(0xFF51AFD7ED558CCD)
    x = (x ^ x >> np.uint64(33)) * np.uint64(0xC4CEB9FE1A85EC53)
    return x ^ x >> np.uint64(33)


def mix(x: Hashes) -> Hashes:
    """Mix the top bits of hashes."""
    return (x ^ x >> np.uint64(32)) * np.uint64(0xD6E8FEB86659FD93)


def sketch(features: Hashes, bits: int) -> bytes:
    """Return the sketch of distinct features: the first round, then all others if a slot is empty."""
    if not features.size:
        return b"\xff" * (SLOTS * bits // 8)
    slots = np.full(SLOTS, _MASK, np.uint64)
    _throw(features, features >> np.uint64(57), 0, slots)
    for turn in range(1, 2 * SLOTS):
        if not (slots == _MASK).any():
            break
        thrown = fmix64(features + np.uint64(turn * _STEP & _MASK))
        places = thrown >> np.uint64(57) if turn < SLOTS else np.full(thrown.size, turn - SLOTS)
        _throw(thrown, places, turn, slots)
    mixed = fmix64(np.arange(SLOTS, dtype=np.uint64) << np.uint64(57) | slots) >> np.uint64(32)
    return mixed.astype("<u4").view(np.uint8).reshape(SLOTS, 4)[:, : bits // 8].tobytes()


def _throw(thrown: Hashes, places: Hashes, turn: int, slots: Hashes) -> None:
    values = np.uint64(turn << 49) | (thrown & np.uint64((1 << 57) - 1)) >> np.uint64(8)
    np.minimum.at(slots, places.astype(np.int64), values)


def anchors(windows: Hashes, spaceless: bool, rules: AnchorRules) -> Hashes:
    """Return the minima of all runs of windows. The run is doubled as long as there are too many."""
    if not windows.size:
        return windows
    run = rules.run * rules.spaceless_factor if spaceless else rules.run
    run = min(windows.size, (run + 1) // 2 if windows.size < rules.dense_below else run)
    minima = sliding_window_view(windows, run).min(axis=1)
    while np.unique(minima).size > rules.max_anchors:
        shift = min(run, windows.size - run)
        minima = np.minimum(minima[: minima.size - shift], minima[shift:])
        run += shift
    return np.unique(minima)


def ld_signature(form: bytes, rules: LdRules, key: HashKey) -> tuple[int, bytes, bytes, Hashes]:
    """Return the rate, the LD signature, the gaps, and the hashes of all windows."""
    values = np.frombuffer(key.table_bytes, "<u8")[np.frombuffer(form, np.uint8)]
    hashes = mix(polynomials(values, rules.window_bytes, key.base, key.ld_salt))
    for rate in _doubled(rules.first_rate(len(form))):
        places = np.flatnonzero(hashes < np.uint64(min(_MASK, (1 << 64) // rate)))
        zeros = rate.bit_length() - 1
        symbols = hashes[places] << np.uint64(zeros) >> np.uint64(64 - rules.symbol_bits)
        changes = np.flatnonzero(np.append(True, symbols[1:] != symbols[:-1])[: symbols.size])
        if changes.size <= rules.max_symbols:
            break
    symbols, places = symbols[changes], places[changes]
    if rules.gap_bits:
        return rate, pack_words(symbols, np.diff(places, prepend=0)), b"", hashes
    steps = np.diff(places // (rate // rules.gap_steps), prepend=0)
    return rate, symbols.astype("<u2").tobytes(), pack_varints(steps), hashes


def _doubled(rate: int) -> Iterator[int]:
    while True:
        yield rate
        rate *= 2


def _at_most(windows: Hashes, rate: int, most: int) -> Hashes:
    """Return the windows of which one in `rate` is sampled, and half of them as long as there are too many."""
    for each in _doubled(rate):
        found = windows[windows < np.uint64(min(_MASK, (1 << 64) // each))]
        if found.size <= most:
            break
    return found
