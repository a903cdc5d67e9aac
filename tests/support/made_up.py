"""Texts of a made-up language, signed under the default scheme."""

from datetime import UTC, datetime
from random import Random

from nearstream.schemas.documents.document import Document
from nearstream.schemas.documents.signature import Signature
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.signing.scheme import DEFAULT_LABEL, preset
from nearstream.streams.signing.signer import Signer

KEY = HashKey.public()
STANDARD = preset(DEFAULT_LABEL, KEY)
SIGNER = Signer(STANDARD, KEY)
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
_LANGUAGE = Random(7)
_VOCABULARY = ["".join(_LANGUAGE.choices("etaoinshrdlu", k=_LANGUAGE.randint(2, 9))) for _ in range(4000)]


def words(seed: int, count: int) -> list[str]:
    """Return random words, of which some are much more frequent than others."""
    random = Random(seed)
    return [_VOCABULARY[int(4000 * random.random() ** 2)] for _ in range(count)]


TEXT = words(1, 600)
OTHER = words(3, 600)


def near(seed: int) -> list[str]:
    """Return a near copy of `TEXT`."""
    return [*TEXT[:300], *words(seed, 12), *TEXT[300:]]


NEAR = near(2)


def with_noise(text: str, share: float, seed: int) -> str:
    """Return the text with this share of its characters replaced, but no spaces."""
    random = Random(seed)
    return "".join(random.choice("abcdefghij") if random.random() < share and c != " " else c for c in text)


def sign(text: list[str] | str, name: str = "a", signer: Signer = SIGNER, **fields: object) -> Signature:
    """Sign a text or its words. Unless the fields say otherwise, it was observed at noon."""
    text = text if isinstance(text, str) else " ".join(text)
    return signer.sign(Document(**{"id": name, "text": text, "observed_at": NOON, **fields}))
