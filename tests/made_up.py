"""Texts of a made-up language, signed under the standard scheme."""

from datetime import UTC, datetime
from random import Random

from schemas.document import Document
from schemas.signature import Signature
from streams.hashing import HashKey
from streams.scheme import preset
from streams.signer import Signer

KEY = HashKey.public()
STANDARD = preset("standard", KEY)
SIGNER = Signer(STANDARD, KEY)
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def words(seed: int, count: int) -> list[str]:
    """Frequent ones often."""
    random = Random(seed)
    language = Random(7)
    vocabulary = ["".join(language.choices("etaoinshrdlu", k=language.randint(2, 9))) for _ in range(4000)]
    return [vocabulary[int(4000 * random.random() ** 2)] for _ in range(count)]


def with_noise(text: str, share: float, seed: int) -> str:
    """The text with so many of its characters replaced, none of them a space."""
    random = Random(seed)
    return "".join(random.choice("abcdefghij") if random.random() < share and c != " " else c for c in text)


def sign(text: list[str] | str, name: str = "a", signer: Signer = SIGNER, **fields: object) -> Signature:
    """The signature of a text or of its words, observed at noon unless the fields say otherwise."""
    text = text if isinstance(text, str) else " ".join(text)
    return signer.sign(Document(**{"id": name, "text": text, "observed_at": NOON, **fields}))
