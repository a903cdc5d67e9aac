"""What a signature says about the text alone."""

from collections.abc import Sequence
from itertools import compress
from operator import sub
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from streams.anchors import anchors, sampled_windows
from streams.hashing import HashKey, distinct
from streams.ld import LdSignature, ld_signatures
from streams.minhash import NONE, sketch, sketches
from streams.normalize import NormalForm, normal_forms
from streams.rules import NoiseRules, TextRules
from streams.scheme import Scheme
from streams.shingles import FeatureHasher

_NO_LD = LdSignature(0, b"", b"")

Content = tuple[int, int, int, int, bool, bytes, int, bytes, bytes, bytes]
"""The fields of `Signature` from `n_bytes` to `anchors`, in its order."""
Signed = tuple[bytes, bytes, Content]
"""`digest` and `raw_digest`, beside the content."""


class Implementation(Protocol):
    """How texts are computed on; every one gives the same bytes."""

    name: str

    def sign_many(self, texts: Sequence[str], max_bytes: int) -> list[Signed | None]:
        """What signatures say about texts, empty ones included; None where a normal form has too many bytes."""


class NumpySigning:
    """The reference; keeps tables of up to 48 bytes for each byte of the longest normal form.

    Most calls of numpy take several texts at once: for a short one the call itself takes longest.
    """

    name = "numpy"

    def __init__(self, scheme: Scheme, key: HashKey) -> None:
        """Takes the scheme with its key."""
        self._scheme = scheme
        self._key = key
        self._hasher = FeatureHasher(key, scheme.text.word_bytes)
        self._noise = Noise(scheme.noise, key) if scheme.noise else None

    def sign_many(self, texts: Sequence[str], max_bytes: int) -> list[Signed | None]:
        """As `Implementation.sign_many`."""
        forms = normal_forms(texts, self._scheme.text)
        fitting = [form.data.size <= max_bytes for form in forms]
        contents = iter(self.contents(list(compress(forms, fitting))))
        digest = self._key.digest
        signed: list[tuple[Signed, memoryview]] = [
            ((digest(form.data.data), digest(text.encode("utf-8", "surrogatepass")), next(contents)), form.data.data)
            for text, form in compress(zip(texts, forms, strict=True), fitting)
        ]
        told = iter(self._noise.added(signed) if self._noise else [each for each, _ in signed])
        return [next(told) if fits else None for fits in fitting]

    def contents(self, forms: Sequence[NormalForm]) -> list[Content]:
        """What signatures say about normal forms, empty ones included."""
        kinds = [(form.data.size > 0, form.spaceless, self._first_rate(form.data.size)) for form in forms]
        alike: dict[tuple[bool, bool, int], list[NormalForm]] = {}
        for form, kind in zip(forms, kinds, strict=True):
            alike.setdefault(kind, []).append(form)
        contents = {kind: iter(self._alike(alike[kind], *kind)) for kind in alike}
        return [next(contents[kind]) for kind in kinds]

    def _alike(self, forms: list[NormalForm], filled: bool, spaceless: bool, rate: int) -> list[Content]:
        scheme, hasher = self._scheme, self._hasher
        if not filled:
            return [(0, 0, 0, 0, False, sketch(NONE, scheme.sketch), rate, b"", b"", b"")] * len(forms)
        features = hasher.features(forms)
        shingles = hasher.shingles(features, scheme.sketch)
        slots = sketches(shingles, scheme.sketch)
        ld, found = [_NO_LD] * len(forms), [b""] * len(forms)
        if scheme.ld:
            windows = hasher.byte_windows(features.joined, scheme.ld.window_bytes, self._key.ld_salt)
            ld = ld_signatures(windows, rate, scheme.ld)
        if scheme.anchors:
            found = anchors(hasher.anchor_windows(features, scheme.anchors), spaceless, scheme.anchors)
        words = map(sub, features.first_words[1:], features.first_words)
        rows = zip(forms, words, shingles, slots, ld, found, strict=True)
        return [
            (form.data.size, form.characters, count, row.size, spaceless, own, *signature, keys)
            for form, count, row, own, signature, keys in rows
        ]

    def _first_rate(self, n_bytes: int) -> int:
        return self._scheme.ld.first_rate(n_bytes) if self._scheme.ld else 0


class Noise:
    """Sampled windows among the anchors of what is signed."""

    def __init__(self, rules: NoiseRules, key: HashKey) -> None:
        """Takes which windows are kept, with the key."""
        self._rules = rules
        self._salt = key.anchor_salt
        self._hasher = FeatureHasher(key, TextRules.word_bytes)

    def added(self, signed: Sequence[tuple[Signed, bytes | memoryview]]) -> list[Signed]:
        """The same with the windows of its normal form, each."""
        filled = [form for _, form in signed if form]
        joined = self._hasher.joined(filled)
        rows = iter(self._hasher.byte_windows(joined, self._rules.window_bytes, self._salt).each())
        return [self._with(each, next(rows)) if form else each for each, form in signed]

    def _with(self, signed: Signed, windows: NDArray[np.uint64]) -> Signed:
        digest, raw_digest, content = signed
        sampled = sampled_windows(windows, self._rules)
        together = distinct(np.concatenate((np.frombuffer(content[9], "<u8"), sampled)))
        return digest, raw_digest, (*content[:9], together.astype("<u8", copy=False).tobytes())
