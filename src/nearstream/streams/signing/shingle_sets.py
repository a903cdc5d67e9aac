"""Whole sets of shingles, to measure what sketches lose."""

import numpy as np

from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.fingerprints.normalize import NormalForm, normal_forms
from nearstream.streams.fingerprints.rewriting import rewritten
from nearstream.streams.fingerprints.shingles import FeatureHasher, Hashes
from nearstream.streams.signing.scheme import Scheme

NO_SHINGLES: Hashes = np.empty(0, dtype=np.uint64)


def normal_form(text: str, scheme: Scheme) -> NormalForm:
    """Return the normal form that the signer reads: of a rewritten text, where the scheme rewrites."""
    return normal_forms([rewritten(text, scheme.text)], scheme.text)[0]


def shingle_set(text: str, scheme: Scheme, key: HashKey) -> Hashes:
    """Return the distinct shingles of a text in ascending order, as the signer hashes them."""
    form = normal_form(text, scheme)
    if not form.data.size:
        return NO_SHINGLES
    hasher = FeatureHasher(key, scheme.text.word_bytes)
    (found,) = hasher.shingles(hasher.features([form]), scheme.sketch)
    return found


def exact_resemblance(one: Hashes, other: Hashes) -> float:
    """Return common over all shingles of two ascending sets, 0 if both are empty."""
    common = np.intersect1d(one, other, assume_unique=True).size
    return common / max(1, one.size + other.size - common)
