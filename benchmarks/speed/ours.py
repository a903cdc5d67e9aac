"""The signer of this project as an entrant."""

from collections.abc import Callable
from datetime import UTC, datetime

from benchmarks.speed.peers import Entrant
from nearstream.schemas.documents.document import Document
from nearstream.schemas.documents.signature import Signature
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.signing.scheme import DEFAULT_LABEL, preset
from nearstream.streams.signing.signer import Signer

NAME = "nearstream"
KEY = HashKey.public()
_TIME = datetime(2020, 1, 1, tzinfo=UTC)


def document(text: str) -> Document:
    """Wrap a text in a document, as a producer sends it."""
    return Document(id="text", text=text, observed_at=_TIME)


def documents(texts: list[str]) -> list[Document]:
    """Wrap each text in a document."""
    return [document(text) for text in texts]


def signer() -> Callable[[Document], Signature]:
    """Return `Signer.sign` of a signer with the default scheme and the public key."""
    return Signer(preset(DEFAULT_LABEL, KEY), KEY).sign


def entrant() -> Entrant:
    """Return the way in which signing is timed, which computes a whole signature."""
    return Entrant("all", "own", "words", documents, signer())
