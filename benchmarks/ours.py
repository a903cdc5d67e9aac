"""This project's signer, with either implementation, as an entrant beside its peers."""

from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module

from benchmarks.peers import SLOTS, Entrant
from schemas.document import Document
from schemas.signature import Signature
from streams.content import Implementation, NumpySigning
from streams.hashing import HashKey
from streams.normalize import NormalForm, normal_forms
from streams.scheme import Scheme, preset
from streams.shingles import FeatureHasher
from streams.signer import MAX_BYTES, Signer, Unsigned

IMPLEMENTATIONS = ("native", "numpy")
TOGETHER = "all, texts together"
KEY = HashKey.public()
_TIME = datetime(2020, 1, 1, tzinfo=UTC)


def absence(implementation: str) -> str | None:
    """Why this implementation cannot be had, None if it can."""
    try:
        implemented(implementation, preset("standard", KEY))
    except ImportError as error:
        return str(error)
    return None


def implemented(implementation: str, scheme: Scheme) -> Implementation:
    """The implementation of this name.

    Raises:
        ImportError: The C twin was not built.
    """
    if implementation == "numpy":
        return NumpySigning(scheme, KEY)
    native: Implementation = import_module("streams.native").NativeSigning(scheme, KEY)
    return native


def document(text: str) -> Document:
    """The text as a producer sends it."""
    return Document(id="text", text=text, observed_at=_TIME)


def documents(texts: list[str]) -> list[Document]:
    """All of them."""
    return [document(text) for text in texts]


def signer(implementation: str, label: str = "standard") -> Callable[[Document], Signature]:
    """`Signer.sign` under the public key."""
    return _signer(implementation, label).sign


def entrants(implementation: str) -> list[Entrant]:
    """All outputs, of texts one by one and of all at once; then what peers give, the sketch alone."""
    sign_many = _signer(implementation, "standard").sign_many
    return [
        Entrant("all", "own", "words", documents, signer(implementation)),
        Entrant(
            TOGETHER,
            "own",
            "words",
            lambda texts: [documents(texts)],
            lambda each: list(sign_many(map(Unsigned, each))),
        ),
        Entrant("sketch", "own", "words", list, _sketching(implementation)),
    ]


def _signer(implementation: str, label: str) -> Signer:
    scheme = preset(label, KEY)
    return Signer(scheme, KEY, computing=implemented(implementation, scheme))


def _sketching(implementation: str) -> Callable[[str], object]:
    scheme = preset("bands-only", KEY)
    if implementation == "numpy":
        contents = NumpySigning(scheme, KEY).contents
        return lambda text: contents(normal_forms((text,)))
    sign_many = import_module("streams.native").NativeSigning(scheme, KEY, digest_bytes=0).sign_many
    return lambda text: sign_many((text,), MAX_BYTES)


def feeding_fastsketchlsh() -> Entrant:
    """FastSketchLSH fed with our shingle hashes, as numpy makes them: nobody's normal use."""
    rules = preset("standard", KEY)
    hasher = FeatureHasher(KEY, rules.text.word_bytes)
    sketch = import_module("FastSketchLSH").FastSimilaritySketch(size=SLOTS)

    def run(form: NormalForm) -> object:
        return sketch(hasher.shingles(hasher.features([form]), rules.sketch)[0], prehashed=True)

    return Entrant("sketch", "ours, free", "our hashes", normal_forms, run)
