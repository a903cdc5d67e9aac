"""Documents of 3-5 KB, some of which are copies."""

import random
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from nearstream.schemas.documents.document import Document
from nearstream.schemas.topics.codec import decode_document

NOW = datetime(2026, 1, 1, tzinfo=UTC)
_EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "documents.jsonl"


@lru_cache(maxsize=1)
def _sources() -> tuple[list[list[str]], list[str]]:
    """Return the words of each example text, and all words together.

    Each word includes the blanks after it.
    """
    texts = [decode_document(line).text or "" for line in _EXAMPLES.read_bytes().splitlines()]
    pieces = [re.findall(r"\S+\s*", text) for text in texts if len(text) > 5_000]
    return pieces, [word for each in pieces for word in each]


def text(number: int) -> str:
    """Return the text of a document, which depends only on its number."""
    rng = random.Random(number)
    kind = rng.random() if number > 1 else 1.0
    if kind < 0.35:
        earlier = text(max(number - 1 - int(rng.expovariate(1 / 20_000)), rng.randrange(number)))
        return earlier if kind < 0.05 else _edited(earlier, rng, 0.03)
    pieces, words = _sources()
    source = rng.choice(pieces)
    size = rng.randrange(3_000, 5_000)
    start = rng.randrange(len(source))
    taken: list[str] = []
    while size > 0:
        word = source[start % len(source)] if rng.random() < 0.5 else rng.choice(words)
        taken.append(word)
        size -= len(word)
        start += 1
    return "".join(taken)


def _edited(earlier: str, rng: random.Random, share: float) -> str:
    words = _sources()[1]
    return "".join(rng.choice(words) if rng.random() < share else each for each in re.findall(r"\S+\s*", earlier))


def documents(count: int) -> Iterator[Document]:
    """Yield the first documents."""
    for number in range(count):
        page = f"https://example.org/section/{number % 97}/page-{number}.html"
        yield Document(id=f"page-{number:012}", text=text(number), observed_at=NOW, url=page, lineage=page)
