"""What a signature says about the text alone."""

from typing import Protocol

import numpy as np

from streams.anchors import anchors, sampled_windows
from streams.hashing import HashKey, Rolling
from streams.ld import LdSignature, ld_signature
from streams.minhash import sketch
from streams.normalize import NormalForm, normalize
from streams.rules import NoiseRules, TextRules
from streams.scheme import Scheme
from streams.shingles import NONE, FeatureHasher

_NO_LD = LdSignature(0, b"", b"")

Content = tuple[int, int, int, int, bool, bytes, int, bytes, bytes, bytes]
"""The fields of `Signature` from `n_bytes` to `anchors`, in its order."""
Signed = tuple[bytes, bytes, Content]
"""`digest` and `raw_digest`, beside the content."""


class Implementation(Protocol):
    """How texts are computed on; every one gives the same bytes."""

    name: str

    def sign(self, text: str, max_bytes: int) -> Signed | None:
        """What a signature says about a text, an empty one included; None if its normal form has too many bytes."""


class NumpySigning:
    """The reference; keeps tables of up to 48 bytes for each byte of the longest normal form."""

    name = "numpy"

    def __init__(self, scheme: Scheme, key: HashKey) -> None:
        """Takes the scheme with its key."""
        self._scheme = scheme
        self._key = key
        self._hasher = FeatureHasher(key, scheme.text.word_bytes)

    def sign(self, text: str, max_bytes: int) -> Signed | None:
        """As `Implementation.sign`."""
        form = normalize(text, self._scheme.text)
        if form.data.size > max_bytes:
            return None
        digest = self._key.digest
        return digest(form.data.data), digest(text.encode("utf-8", "surrogatepass")), self.content(form)

    def content(self, form: NormalForm) -> Content:
        """What a signature says about a normal form, an empty one included."""
        scheme = self._scheme
        n_bytes = form.data.size
        if not n_bytes:
            rate = scheme.ld.first_rate(0) if scheme.ld else 0
            return 0, 0, 0, 0, False, sketch(NONE, scheme.sketch), rate, b"", b"", b""
        hasher = self._hasher
        features = hasher.features(form)
        shingles = hasher.shingles(features, scheme.sketch)
        slots = sketch(shingles, scheme.sketch)
        ld = _NO_LD
        if scheme.ld:
            ld = ld_signature(features.bytes_prefix, self._key.ld_salt, hasher.over_bytes, scheme.ld)
        found = b""
        if scheme.anchors:
            found = anchors(hasher.anchor_windows(features, scheme.anchors), form.spaceless, scheme.anchors)
        counts = n_bytes, form.characters, features.words, shingles.size
        return *counts, form.spaceless, slots, ld.rate, ld.ld, ld.gaps, found


class NoiseSigning:
    """Another implementation, with sampled windows among its anchors."""

    def __init__(self, inner: Implementation, key: HashKey, text: TextRules, rules: NoiseRules) -> None:
        """Takes what computes all else, the key, the rules of the normal form, and which windows are kept."""
        self.name = inner.name
        self._inner = inner
        self._key = key
        self._text = text
        self._rules = rules
        self._over_bytes = Rolling(key.base)

    def sign(self, text: str, max_bytes: int) -> Signed | None:
        """As `Implementation.sign`."""
        signed = self._inner.sign(text, max_bytes)
        if signed is None:
            return None
        digest, raw_digest, content = signed
        form = normalize(text, self._text)
        prefix = self._over_bytes.prefix(self._key.table.take(form.data))
        sampled = sampled_windows(prefix, self._key.anchor_salt, self._over_bytes, self._rules)
        together = np.union1d(np.frombuffer(content[9], "<u8"), sampled).astype("<u8").tobytes()
        return digest, raw_digest, (*content[:9], together)
