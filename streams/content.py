"""What a signature says about the text alone."""

from typing import NamedTuple, Protocol

from streams.anchors import anchors
from streams.hashing import HashKey
from streams.ld import LdSignature, ld_signature
from streams.minhash import sketch
from streams.normalize import NormalForm, normalize
from streams.scheme import Scheme
from streams.shingles import NONE, FeatureHasher

_NO_LD = LdSignature(0, b"", b"")


class Content(NamedTuple):
    """The fields of `Signature` of the same names."""

    words: int
    shingles: int
    sketch: bytes
    rate: int
    ld: bytes
    gaps: bytes
    anchors: bytes


class Implementation(Protocol):
    """How texts are computed on; every one gives the same bytes."""

    name: str

    def normalize(self, text: str, raw: bytes) -> NormalForm:
        """The normal form of a text, which is also given as UTF-8 in which surrogates may stand."""

    def content(self, form: NormalForm) -> Content:
        """What the signature of a normal form says, an empty one included."""


class NumpySigning:
    """The reference; keeps tables of up to 48 bytes for each byte of the longest normal form."""

    name = "numpy"

    def __init__(self, scheme: Scheme, key: HashKey) -> None:
        """Takes the scheme with its key."""
        self._scheme = scheme
        self._key = key
        self._hasher = FeatureHasher(key, scheme.text.word_bytes)

    def normalize(self, text: str, raw: bytes) -> NormalForm:
        """As `Implementation.normalize`."""
        return normalize(text, self._scheme.text)

    def content(self, form: NormalForm) -> Content:
        """As `Implementation.content`."""
        scheme = self._scheme
        if not form.data.size:
            rate = scheme.ld.first_rate(0) if scheme.ld else 0
            return Content(0, 0, sketch(NONE, scheme.sketch), rate, b"", b"", b"")
        hasher = self._hasher
        features = hasher.features(form)
        shingles = hasher.shingles(features, scheme.sketch)
        ld = _NO_LD
        if scheme.ld:
            ld = ld_signature(features.bytes_prefix, self._key.ld_salt, hasher.over_bytes, scheme.ld)
        found = b""
        if scheme.anchors:
            found = anchors(hasher.anchor_windows(features, scheme.anchors), form.spaceless, scheme.anchors)
        return Content(features.words, shingles.size, sketch(shingles, scheme.sketch), ld.rate, ld.ld, ld.gaps, found)
