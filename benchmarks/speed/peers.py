"""Other libraries, each used in the fastest way that users would write."""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import mmh3
import numpy as np
from numpy.typing import NDArray

from nearstream.streams.fingerprints.normalize import normalize

SLOTS = 128
_WORDS = re.compile(r"\w+")
_SHINGLE_WORDS = 5
_SHINGLE_CHARACTERS = 4


@dataclass(frozen=True)
class Entrant:
    """One way to sign a text."""

    outputs: str  # what it computes
    # `own`, `usual` (NFKC, casefold, words by regular expression), or `ours, free`, which is our normaliser outside of
    # the measured time.
    normaliser: str
    shingles: str  # what shingles are made of, `words` or `characters`
    # Converts raw texts to items for `run`, each of one text or of several. Its time is not measured.
    prepare: Callable[[list[str]], list[Any]]  # Any: only passed from `prepare` to `run`
    run: Callable[[Any], Any]  # the function that is timed


Digest = Callable[[list[Any]], Any]  # Any: each peer has its own types of token and digest


def usual_words(text: str) -> list[str]:
    """Split a text into words as most pipelines do."""
    return _WORDS.findall(unicodedata.normalize("NFKC", text).casefold())


def word_shingles(words: list[Any]) -> list[Any]:
    """Return the runs of 5 words, which are str or bytes.

    A shorter text is one shingle.
    """
    if len(words) < _SHINGLE_WORDS:
        return [b" ".join(words) if words and isinstance(words[0], bytes) else " ".join(words)]
    space = b" " if isinstance(words[0], bytes) else " "
    return list(map(space.join, zip(*(words[start:] for start in range(_SHINGLE_WORDS)), strict=False)))


def character_shingles(text: str) -> list[str]:
    """Return the runs of 4 characters of a text."""
    return [text[start : start + _SHINGLE_CHARACTERS] for start in range(len(text) - _SHINGLE_CHARACTERS + 1)]


def entrants(digest: Digest) -> list[Entrant]:
    """Return a peer with both normalisers and both kinds of shingles."""
    return [
        Entrant("sketch", "ours, free", "words", _forms, lambda form: digest(word_shingles(form.split()))),
        Entrant("sketch", "usual", "words", list, lambda text: digest(word_shingles(usual_words(text)))),
        Entrant("sketch", "ours, free", "characters", _forms, lambda form: digest(character_shingles(form))),
        Entrant(
            "sketch", "usual", "characters", list, lambda text: digest(character_shingles(" ".join(usual_words(text))))
        ),
    ]


def datasketch() -> Digest:
    """Return MinHash of datasketch 2 with affine32 and mmh3.

    All sketches share their permutations.
    """
    kind = import_module("datasketch").MinHash
    shared = kind(num_perm=SLOTS, scheme="affine32").permutations
    hashed = mmh3.mmh3_32_uintdigest

    def run(shingles: list[Any]) -> Any:  # noqa: ANN401 - see Digest
        sketch = kind(num_perm=SLOTS, permutations=shared, scheme="affine32", hashfunc=hashed)
        sketch.update_batch([shingle.encode() for shingle in shingles])
        return sketch.digest()

    return run


def rensa() -> Digest:
    """Return RMinHash of rensa."""
    kind = import_module("rensa").RMinHash

    def run(shingles: list[Any]) -> Any:  # noqa: ANN401 - see Digest
        sketch = kind(num_perm=SLOTS, seed=42)
        sketch.update(shingles)
        return sketch.digest()

    return run


def fastsketchlsh() -> Digest:
    """Return FastSimilaritySketch of FastSketchLSH."""
    run: Digest = import_module("FastSketchLSH").FastSimilaritySketch(size=SLOTS)
    return run


def rho() -> Digest:
    """Return the rho mode of rensa.

    It is not raced, because it hashes only a sample of longer texts.
    """
    kind = import_module("rensa").RMinHash
    return lambda shingles: np.asarray(kind.digest_matrix_from_token_sets_rho([shingles], SLOTS, 42).to_rows()[0])


def one_permutation() -> Digest:
    """Return one permutation hashing, which is not raced.

    It puts one hash into bins and marks empty bins by a negative number. Source: Li, Owen and Zhang, One Permutation
    Hashing (2012).
    """
    return _bins


def _bins(shingles: list[Any]) -> NDArray[np.int64]:
    hashes = np.array([mmh3.mmh3_x64_128_uintdigest(shingle.encode()) & ((1 << 62) - 1) for shingle in shingles])
    slots = np.full(SLOTS, np.iinfo(np.int64).max)
    np.minimum.at(slots, hashes % SLOTS, hashes // SLOTS)
    empty = slots == np.iinfo(np.int64).max
    slots[empty] = -1
    return slots


def _forms(texts: list[str]) -> list[str]:
    return [normalize(text).data.decode() for text in texts]


RACED: dict[str, Callable[[], Digest]] = {"datasketch": datasketch, "rensa": rensa, "fastsketchlsh": fastsketchlsh}
UNRACED: dict[str, Callable[[], Digest]] = {"rensa-rho": rho, "one-permutation": one_permutation}
