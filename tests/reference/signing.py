"""Signing in numpy: the part of a signature that depends on the text alone."""

from collections.abc import Sequence
from functools import cache
from itertools import compress
from operator import sub
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.fingerprints.parameters import NoiseRules, SampledRules, TextRules
from nearstream.streams.native import Content, Signed
from nearstream.streams.signing.scheme import Scheme, preset
from nearstream.streams.signing.signer import MAX_BYTES, Signer
from tests.reference.ld import ld_signatures
from tests.reference.minhash import NONE, sketch, sketches
from tests.reference.normal_form import NormalForm, normal_forms
from tests.reference.polynomials import distinct
from tests.reference.shingles import FeatureHasher
from tests.reference.winnowing import anchors, sampled_symbols, sampled_windows

PUBLIC = HashKey.public()

_ANCHOR = np.dtype("<u8")
_ANCHORS: Final = 9  # index of the anchors in Content


class NumpySigning:
    """Sign texts with numpy.

    Most numpy calls work on several texts at once, because for a short text the call itself takes longest. The tables
    of powers that it keeps take up to 48 bytes for each byte of the longest normal form.
    """

    def __init__(self, scheme: Scheme, key: HashKey) -> None:
        """Prepare hashing under a scheme and its key."""
        self._scheme = scheme
        self._key = key
        self._hasher = FeatureHasher(key, scheme.text.word_bytes)
        self._noise = Noise(scheme.noise, key) if scheme.noise else None

    def sign_many(self, texts: Sequence[str], max_bytes: int) -> list[Signed | None]:
        """Return the digests and the content of each text's signature.

        The result for a text is None if its normal form has more than `max_bytes` bytes.
        """
        forms = normal_forms(texts, self._scheme.text)
        fitting = [form.data.size <= max_bytes for form in forms]
        contents = iter(self.contents(list(compress(forms, fitting))))
        digest = self._key.digest
        signed: list[tuple[Signed, memoryview]] = [
            ((digest(form.data.data), digest(text.encode("utf-8", "surrogatepass")), next(contents)), form.data.data)
            for text, form in compress(zip(texts, forms, strict=True), fitting)
        ]
        results = iter(self._noise.add(signed) if self._noise else [result for result, _ in signed])
        return [next(results) if fits else None for fits in fitting]

    def contents(self, forms: Sequence[NormalForm]) -> list[Content]:
        """Return the content of the signature of each normal form.

        A form may be empty. Forms are computed in groups, by whether they are empty, whether they are spaceless, and
        their rate.
        """
        kinds = [(form.data.size > 0, form.spaceless, self._first_rate(form.data.size)) for form in forms]
        groups: dict[tuple[bool, bool, int], list[NormalForm]] = {}
        for form, kind in zip(forms, kinds, strict=True):
            groups.setdefault(kind, []).append(form)
        contents = {kind: iter(self._contents_of_kind(group, *kind)) for kind, group in groups.items()}
        return [next(contents[kind]) for kind in kinds]

    def _contents_of_kind(self, forms: list[NormalForm], has_text: bool, spaceless: bool, rate: int) -> list[Content]:
        scheme, hasher = self._scheme, self._hasher
        if not has_text:
            return [(0, 0, 0, 0, False, sketch(NONE, scheme.sketch), rate, b"", b"", b"")] * len(forms)
        features = hasher.features(forms)
        shingles = hasher.shingles(features, scheme.sketch)
        slots = sketches(shingles, scheme.sketch)
        windows = hasher.byte_windows(features.joined, scheme.ld.window_bytes, self._key.ld_salt)
        ld = ld_signatures(windows, rate, scheme.ld)
        found = anchors(hasher.anchor_windows(features, scheme.anchors), spaceless, scheme.anchors)
        if scheme.sampled:
            sampled = zip(forms, found, windows.each(), ld, strict=True)
            found = [
                _with_sampled(form, packed, row, signature.rate, scheme.sampled)
                for form, packed, row, signature in sampled
            ]
        words = map(sub, features.first_words[1:], features.first_words)
        rows = zip(forms, words, shingles, slots, ld, found, strict=True)
        return [
            (form.data.size, form.characters, n_words, hashes.size, spaceless, slot_bytes, *ld_signature, anchor_bytes)
            for form, n_words, hashes, slot_bytes, ld_signature, anchor_bytes in rows
        ]

    def _first_rate(self, n_bytes: int) -> int:
        return self._scheme.ld.first_rate(n_bytes)


def _with_sampled(
    form: NormalForm, anchors: bytes, windows: NDArray[np.uint64], rate: int, rules: SampledRules
) -> bytes:
    """Return the anchors of a form, with its sampled LD windows if it is short enough."""
    size = form.data.size
    if size >= rules.below_bytes:
        return anchors
    while size > rules.usual_keys * rate:
        rate *= 2
    return _together(anchors, sampled_symbols(windows, rate, rules.max_keys))


def _together(anchors: bytes, sampled: NDArray[np.uint64]) -> bytes:
    """Return anchors and sampled windows, distinct and in ascending order."""
    hashes = distinct(np.concatenate((np.frombuffer(anchors, _ANCHOR), sampled)))
    return hashes.astype(_ANCHOR, copy=False).tobytes()


class Noise:
    """Add sampled windows to the anchors of signatures, for the `noise` preset."""

    def __init__(self, rules: NoiseRules, key: HashKey) -> None:
        """Prepare hashing under the rules of the sampled windows and the key."""
        self._rules = rules
        self._salt = key.anchor_salt
        self._hasher = FeatureHasher(key, TextRules.word_bytes)

    def add(self, signed: Sequence[tuple[Signed, bytes | memoryview]]) -> list[Signed]:
        """Add the sampled windows of each text to its anchors.

        Args:
            signed: What was signed, each with its normal form, which may be empty.
        """
        joined = self._hasher.joined([form for _, form in signed if form])
        rows = iter(self._hasher.byte_windows(joined, self._rules.window_bytes, self._salt).each())
        return [self._with_windows(result, next(rows)) if form else result for result, form in signed]

    def _with_windows(self, signed: Signed, windows: NDArray[np.uint64]) -> Signed:
        digest, raw_digest, content = signed
        sampled = sampled_windows(windows, self._rules)
        return digest, raw_digest, (*content[:_ANCHORS], _together(content[_ANCHORS], sampled))


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
        self._numpy = NumpySigning(scheme, key)

    def _computed(self, plain: str) -> Signed | None:
        return self._numpy.sign_many([plain], self._max_bytes)[0]
