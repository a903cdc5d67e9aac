"""Entrants for the signer of this project, with either implementation."""

from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module

from benchmarks.speed.peers import SLOTS, Entrant
from nearstream.schemas.documents.document import Document
from nearstream.schemas.documents.signature import Signature
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.fingerprints.normalize import NormalForm, normal_forms
from nearstream.streams.fingerprints.shingles import FeatureHasher
from nearstream.streams.signing.numpy_backend import Implementation, NumpySigning
from nearstream.streams.signing.scheme import Scheme, preset
from nearstream.streams.signing.signer import MAX_BYTES, Signer, Unsigned

IMPLEMENTATIONS = ("native", "numpy")
TOGETHER = "all, texts together"
KEY = HashKey.public()
_TIME = datetime(2020, 1, 1, tzinfo=UTC)


def absence(implementation: str) -> str | None:
    """Return why this implementation is not available, or None if it is."""
    try:
        implemented(implementation, preset("standard", KEY))
    except ImportError as error:
        return str(error)
    return None


def implemented(implementation: str, scheme: Scheme) -> Implementation:
    """Create the implementation of this name.

    Raises:
        ImportError: The C twin was not built.
    """
    if implementation == "numpy":
        return NumpySigning(scheme, KEY)
    native: Implementation = import_module("nearstream.streams.signing.native_backend").NativeSigning(scheme, KEY)
    return native


def document(text: str) -> Document:
    """Wrap a text in a document, as a producer sends it."""
    return Document(id="text", text=text, observed_at=_TIME)


def documents(texts: list[str]) -> list[Document]:
    """Wrap each text in a document."""
    return [document(text) for text in texts]


def signer(implementation: str, label: str = "standard") -> Callable[[Document], Signature]:
    """Return `Signer.sign` of a signer with the public key."""
    return _signer(implementation, label).sign


def entrants(implementation: str) -> list[Entrant]:
    """Return the ways in which an implementation is timed.

    It computes all outputs of texts one by one, all outputs of all texts at once, and the sketch alone, which is what
    the peers compute.
    """
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
    sign_many = (
        import_module("nearstream.streams.signing.native_backend").NativeSigning(scheme, KEY, digest_bytes=0).sign_many
    )
    return lambda text: sign_many((text,), MAX_BYTES)


def feeding_fastsketchlsh() -> Entrant:
    """Return FastSketchLSH fed with our shingle hashes from numpy.

    This is not how the library is normally used.
    """
    rules = preset("standard", KEY)
    hasher = FeatureHasher(KEY, rules.text.word_bytes)
    sketch = import_module("FastSketchLSH").FastSimilaritySketch(size=SLOTS)

    def run(form: NormalForm) -> object:
        return sketch(hasher.shingles(hasher.features([form]), rules.sketch)[0], prehashed=True)

    return Entrant("sketch", "ours, free", "our hashes", normal_forms, run)
