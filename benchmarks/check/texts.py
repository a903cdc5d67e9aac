"""Texts of 3-5 KB that are made quickly, some of which are copies of earlier ones."""

import random
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from nearstream.schemas.documents.document import Document
from nearstream.schemas.documents.signature import Origin
from nearstream.schemas.topics.codec import decode_document
from nearstream.schemas.topics.table import DOCUMENTS
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.matching.arriving import Arrival
from nearstream.streams.signing.scheme import Scheme
from nearstream.streams.signing.signer import Signer
from nearstream.streams.store.store import Position

_EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "documents.jsonl"
_START = datetime(2026, 1, 1, tzinfo=UTC)
_COPIES, _EXACT, _EDITED = 0.35, 0.05, 0.03  # shares: of copies, of exact ones, of the words that a copy replaces
_WORDS = (480, 800)
_NEAR = 20_000  # a copy is of one of this many documents before it


@lru_cache(maxsize=1)
def _words() -> list[str]:
    """Return the words of all long example texts in order, each with the blanks after it."""
    texts = [decode_document(line).text or "" for line in _EXAMPLES.read_bytes().splitlines()]
    return [word for each in texts if len(each) > 5_000 for word in re.findall(r"\S+\s*", each)]


def text(number: int) -> str:
    """Return the text of a document, which depends only on its number.

    It is a slice of the examples in which every second word is replaced by a random one, or a copy of an earlier text
    with some words replaced.
    """
    return "".join(_of(number))


def _of(number: int) -> list[str]:
    rng, words = random.Random(number), _words()
    kind = rng.random() if number > 1 else 1.0
    if kind < _COPIES:
        earlier = _of(max(0, number - 1 - rng.randrange(min(number, _NEAR))))
        if kind >= _EXACT:
            for _ in range(round(_EDITED * len(earlier))):
                earlier[rng.randrange(len(earlier))] = rng.choice(words)
        return earlier
    count = rng.randrange(*_WORDS)
    start = rng.randrange(len(words) - count)
    taken = words[start : start + count]
    taken[::2] = rng.choices(words, k=len(taken[::2]))
    return taken


def arrivals(scheme: Scheme, key: HashKey, numbers: Iterable[int], partition: int) -> Iterator[Arrival]:
    """Yield the documents of these numbers as they arrive at a worker."""
    signer = Signer(scheme, key)
    for number in numbers:
        document = Document(id=f"page-{number:09}", text=text(number), observed_at=_START)
        signature = signer.sign(document, Origin(DOCUMENTS.name, partition, number))
        yield Arrival(signature.document_key, signature, Position(partition, number))
